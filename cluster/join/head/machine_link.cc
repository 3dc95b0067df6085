#include "cluster/join/head/machine_link.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace motley {
namespace {

constexpr double kFarewellMax_s = 1;
// More are lost than a run needs.
constexpr std::size_t kChannelsMax = 4096;
constexpr int kNotStarted = 255;  // as ssh's own failures

}  // namespace

MachineLink::MachineLink(std::unique_ptr<TlsLink> link, const JoinWelcome& welcome)
    : link_(std::move(link)), silence_s_(welcome.silence_s) {
  link_->trust();
  link_->send(JoinKind::kWelcome, 0, join_text(welcome));
}

MachineLink::~MachineLink() {
  lose("the run has ended");
}

void MachineLink::start(OwnedFd client, std::vector<OwnedFd> streams, const JoinWords& words) {
  constexpr std::size_t kStreams = 3;
  const bool is_files = words.words == std::vector<std::string>{"files"};
  if (channels_.size() >= kChannelsMax || (!is_files && streams.size() != kStreams)) return;
  const std::uint32_t channel = ++last_channel_;
  if (is_files) {
    channels_[channel] = std::make_unique<FilesChannel>(std::move(client), *link_, channel);
  } else {
    channels_[channel] = std::make_unique<CommandChannel>(std::move(client), std::move(streams),
                                                          *link_, channel, words);
  }
}

void MachineLink::watch(PollSet& polled) {
  for (const auto& [number, channel] : channels_) channel->watch(polled);
  polled.watch(link_->fd(), link_->events(), [this] { advance(); });
}

void MachineLink::advance() {
  if (!state_.ok()) return;
  state_ = link_->advance();
  // What arrived before an error counts.
  for (;;) {
    Result<std::optional<JoinFrame>> frame = link_->next();
    if (frame.ok() && !*frame) return;
    Result<void> taken = frame.ok() ? take(**frame) : Result<void>(std::move(frame).error());
    if (taken.ok()) continue;
    state_ = std::move(taken);
    return;
  }
}

Result<void> MachineLink::take(const JoinFrame& frame) {
  if (frame.kind == JoinKind::kPing) return {};
  if (frame.kind == JoinKind::kLeave) {
    return Error{ErrorCode::kPeer, "it has left", "motley join was stopped there", ""};
  }
  const auto found = channels_.find(frame.channel);
  // Messages of a channel that has ended here may still be under way.
  if (found == channels_.end() || found->second->is_over()) return {};
  return found->second->take(frame);
}

Result<void> MachineLink::tend() {
  std::erase_if(channels_, [](const auto& channel) { return channel.second->is_over(); });
  if (!state_.ok()) return state_;
  const double silent_s = now_s() - link_->heard_at_s();
  if (silent_s > silence_s_) {
    return Error{ErrorCode::kPeer, "it does not answer", fmt::format("for {:.0f} s", silent_s), ""};
  }
  if (now_s() - pinged_at_s_ >= kJoinPing_s) {
    pinged_at_s_ = now_s();
    link_->send(JoinKind::kPing, 0, "");
  }
  if (link_->has_unsent()) state_ = link_->advance();
  return state_;
}

void MachineLink::end(const JoinExit& run) {
  if (!state_.ok()) return;
  link_->send(JoinKind::kEnd, 0, join_text(run));
  const Deadline deadline = Deadline::after_s(kFarewellMax_s);
  while (link_->has_unsent() && !deadline.passed() && link_->advance().ok()) {
    PollSet polled;
    polled.watch(link_->fd(), POLLOUT, [] {});
    polled.wait(deadline.left_s());
  }
}

void MachineLink::lose(const std::string& problem) {
  for (const auto& [number, channel] : channels_) {
    channel->answer({.status = kNotStarted, .problem = problem});
  }
  channels_.clear();
}

}  // namespace motley
