#include "cluster/join/head/head_channels.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"

namespace motley {
namespace {

constexpr double kSentInterval_s = 0.2;

Error out_of_place(const JoinFrame& frame) {
  return {ErrorCode::kPeer, "it violates the protocol",
          fmt::format("a message of kind {} out of place", static_cast<int>(frame.kind)),
          "use the same version of Motley on every machine"};
}

}  // namespace

HeadChannel::HeadChannel(OwnedFd client, TlsLink& link, std::uint32_t channel)
    : client_(std::move(client)), link_(link), channel_(channel) {}

void HeadChannel::answer(const JoinExit& exit) {
  if (is_over_) return;
  // The socket has room: it has got at most one message before.
  (void)send_local(client_, join_text(exit));
  is_over_ = true;
}

void HeadChannel::abandon() {
  if (is_over_) return;
  link_.send(JoinKind::kKill, channel_, "");
  is_over_ = true;
}

CommandChannel::CommandChannel(OwnedFd client,
                               std::vector<OwnedFd> streams,
                               TlsLink& link,
                               std::uint32_t channel,
                               const JoinWords& command)
    : HeadChannel(std::move(client), link, channel),
      input_(std::move(streams[0]), {&link, JoinKind::kInput, "input", channel}),
      output_(std::move(streams[1]), {&link, JoinKind::kOutput, "output", channel}),
      errors_(std::move(streams[2]), {&link, JoinKind::kErrors, "errors", channel}) {
  link.send(JoinKind::kStart, channel, join_text(command));
}

void CommandChannel::watch(PollSet& polled) {
  if (exit_ && output_.is_drained() && errors_.is_drained()) return answer(*exit_);
  polled.watch(client().get(), POLLIN, [this] { hear_client(); });
  input_.watch(polled);
  output_.watch(polled);
  errors_.watch(polled);
}

// It sends nothing more, so this is its end.
void CommandChannel::hear_client() {
  abandon();
}

Result<void> CommandChannel::take(const JoinFrame& frame) {
  switch (frame.kind) {
    case JoinKind::kOutput:
    case JoinKind::kErrors: {
      StreamSink& sink = frame.kind == JoinKind::kOutput ? output_ : errors_;
      if (!sink.take(frame.content)) return out_of_place(frame);
      return {};
    }
    case JoinKind::kCredit: {
      MOTLEY_ASSIGN(const StreamCredit credit, read_join_text<StreamCredit>(frame.content));
      if (credit.stream != "input") return out_of_place(frame);
      input_.grant(credit.bytes);
      return {};
    }
    case JoinKind::kExit: {
      MOTLEY_ASSIGN(const JoinExit exit, read_join_text<JoinExit>(frame.content));
      exit_ = exit;  // answered once the output has been passed on
      return {};
    }
    default:
      return out_of_place(frame);
  }
}

FilesChannel::FilesChannel(OwnedFd client, TlsLink& link, std::uint32_t channel)
    : HeadChannel(std::move(client), link, channel) {}

void FilesChannel::watch(PollSet& polled) {
  polled.watch(client().get(), POLLIN, [this] { hear_client(); });
}

void FilesChannel::hear_client() {
  const auto message = receive_local(client());
  if (!message) return abandon();
  const auto part = read_join_text<ManifestPart>(message->text);
  if (!part.ok()) return abandon();
  files_.insert(files_.end(), part->files.begin(), part->files.end());
  link().send(JoinKind::kManifest, channel(), message->text);
}

Result<void> FilesChannel::take(const JoinFrame& frame) {
  if (frame.kind == JoinKind::kExit) {
    MOTLEY_ASSIGN(const JoinExit exit, read_join_text<JoinExit>(frame.content));
    report();
    answer(exit);
    return {};
  }
  if (frame.kind != JoinKind::kWant) return out_of_place(frame);
  MOTLEY_ASSIGN(const WantedPiece want, read_join_text<WantedPiece>(frame.content));
  if (want.file >= files_.size()) return out_of_place(frame);
  send_piece(want);
  return {};
}

void FilesChannel::send_piece(const WantedPiece& want) {
  const OfferedFile& file = files_[want.file];
  if (!fd_.open() || open_file_ != want.file) {
    fd_ = OwnedFd(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
    open_file_ = want.file;
  }
  std::string piece(want.bytes, '\0');
  const ssize_t count =
      fd_.open() ? ::pread(fd_.get(), piece.data(), piece.size(), static_cast<off_t>(want.offset))
                 : -1;
  if (count <= 0) {
    const char* const cause = count < 0 ? std::strerror(errno) : "it has become shorter";
    answer({.problem = fmt::format("cannot read {} here: {}", file.path, cause)});
    link().send(JoinKind::kKill, channel(), "");
    return;
  }
  piece.resize(static_cast<std::size_t>(count));
  link().send(JoinKind::kPiece, channel(), piece);
  sent_bytes_ += piece.size();
  if (now_s() - reported_at_s_ >= kSentInterval_s) report();
}

// The client may be slow to read it.
void FilesChannel::report() {
  reported_at_s_ = now_s();
  (void)send_local(client(), join_text(StreamCredit{"output", sent_bytes_}));
}

}  // namespace motley
