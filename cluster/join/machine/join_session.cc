#include "cluster/join/machine/join_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cluster/join/poll_set.h"

namespace motley {
namespace {

constexpr double kSessionTick_s = 0.25;
constexpr double kLeaveMax_s = 1;
// For a saved step; longer than a worker itself waits (worker/train/end_request.h).
constexpr double kSavedStepMax_s = 65;
// After the last command, for the head to copy what only this machine has of the checkpoint.
constexpr double kHandOver_s = 4;
// The workers of a machine end by themselves when their input has ended.
constexpr double kGrace_s = 0.5;
constexpr double kKillWait_s = 2;
constexpr std::size_t kCommandsMax = 1024;
constexpr std::size_t kTransfersMax = 16;
const std::string kStoreProgram = "motley-store";

Error head_violation(const std::string& cause) {
  return {ErrorCode::kPeer, "the head violates the protocol", cause,
          "use the same version of Motley on every machine"};
}

}  // namespace

JoinSession::JoinSession(std::unique_ptr<TlsLink> link,
                         const JoinHome& home,
                         std::filesystem::path programs,
                         double silence_s,
                         std::function<void(const std::string& line)> say)
    : link_(std::move(link)),
      home_(home),
      programs_(std::move(programs)),
      silence_s_(silence_s),
      say_(std::move(say)) {
  link_->trust();
}

JoinSession::~JoinSession() {
  end_commands();
}

Result<JoinExit> JoinSession::serve(StopSignals& signals) {
  Result<JoinExit> end = exchange(signals);
  // Workers save their step when they lose the head, as they do without a launcher of their own.
  if (!end.ok() && !is_stop(end.error())) end_inputs_and_wait(kSavedStepMax_s, &signals);
  return end;
}

Result<JoinExit> JoinSession::exchange(StopSignals& signals) {
  double pinged_at_s = 0;
  for (;;) {
    if (now_s() - pinged_at_s >= kJoinPing_s) {
      pinged_at_s = now_s();
      link_->send(JoinKind::kPing, 0, "");
    }
    PollSet polled;
    bool is_busy = false;
    polled.watch(signals.fd(), POLLIN, [] {});
    for (const auto& [channel, command] : commands_) command->watch(polled);
    for (const auto& [channel, transfer] : transfers_) {
      is_busy = is_busy || transfer->receiver.is_busy();
    }
    polled.watch(link_->fd(), link_->events(), [] {});
    polled.wait(is_busy ? 0 : kSessionTick_s);
    if (const auto stop = signals.take()) {
      if (leaves_by_) leave_deadline_ = Deadline::after_s(0);
      if (!leaves_by_) begin_to_leave(*stop);
    }
    if (is_to_leave_now()) {
      leave();
      return *leaves_by_;
    }
    const Result<void> advanced = advance();
    if (end_ && leaves_by_) return *leaves_by_;
    if (end_) return *end_;
    MOTLEY_TRY(advanced);
    if (std::erase_if(commands_, [](const auto& each) { return each.second->is_over(); }) > 0) {
      idle_since_s_ = now_s();
    }
    std::vector<std::uint32_t> under_way;
    for (const auto& [channel, transfer] : transfers_) under_way.push_back(channel);
    for (const std::uint32_t channel : under_way) continue_transfer(channel);
    const double silent_s = now_s() - link_->heard_at_s();
    if (silent_s > silence_s_) {
      return Error{ErrorCode::kPeer, "the head does not answer",
                   fmt::format("for {:.0f} s", silent_s), ""};
    }
  }
}

Result<void> JoinSession::advance() {
  const Result<void> state = link_->advance();
  // What arrived before the connection ended counts.
  while (!end_) {
    MOTLEY_ASSIGN(const std::optional<JoinFrame> frame, link_->next());
    if (!frame) break;
    MOTLEY_TRY(take(*frame));
  }
  return state;
}

Result<void> JoinSession::take(const JoinFrame& frame) {
  switch (frame.kind) {
    case JoinKind::kPing:
      return {};
    case JoinKind::kEnd: {
      MOTLEY_ASSIGN(end_, read_join_text<JoinExit>(frame.content));
      return {};
    }
    case JoinKind::kStart:
      return start(frame);
    case JoinKind::kManifest:
    case JoinKind::kPiece:
      take_file_message(frame);
      return {};
    default: {
      const auto command = commands_.find(frame.channel);
      if (command != commands_.end()) return command->second->take(frame);
      if (frame.kind == JoinKind::kKill) transfers_.erase(frame.channel);
      return {};  // of a channel that has ended here
    }
  }
}

Result<void> JoinSession::start(const JoinFrame& frame) {
  if (frame.channel <= last_channel_) return head_violation("a channel that was used before");
  last_channel_ = frame.channel;
  MOTLEY_ASSIGN(const JoinWords request, read_join_text<JoinWords>(frame.content));
  JoinedOrder order = joined_order(request.words, programs_);
  const bool is_for_files = std::ranges::find(request.words, kStoreProgram) != request.words.end();
  if (leaves_by_ && !is_for_files) {
    order = {{}, {.status = 255, .problem = "the machine leaves the run"}};
  }
  if (commands_.size() >= kCommandsMax) {
    order = {{}, {.status = 255, .problem = "too many commands at once"}};
  }
  if (!order.argv.empty()) {
    Result<Process> process = Process::start(order.argv);
    if (process.ok()) {
      has_worked_ = true;
      commands_[frame.channel] =
          std::make_unique<JoinedCommand>(std::move(process).value(), *link_, frame.channel);
      return {};
    }
    order.answer = {.status = 255,
                    .problem = fmt::format("{}: {}", process.error().what, process.error().cause)};
  }
  link_->send(JoinKind::kExit, frame.channel, join_text(order.answer));
  return {};
}

void JoinSession::take_file_message(const JoinFrame& frame) {
  if (frame.kind == JoinKind::kManifest && frame.channel > last_channel_ &&
      transfers_.size() < kTransfersMax) {
    last_channel_ = frame.channel;
    transfers_[frame.channel] =
        std::make_unique<Transfer>(Transfer{FileReceiver(home_.objects(), home_.files()), now_s()});
  }
  const auto found = transfers_.find(frame.channel);
  if (found == transfers_.end()) return;  // has ended here
  FileReceiver& receiver = found->second->receiver;
  Result<void> taken;
  if (frame.kind == JoinKind::kPiece) {
    taken = receiver.take(frame.content);
  } else {
    const auto part = read_join_text<ManifestPart>(frame.content);
    taken = part.ok() ? receiver.add(*part) : Result<void>(part.error());
  }
  if (!taken.ok()) end_transfer(frame.channel, taken);
}

void JoinSession::continue_transfer(std::uint32_t channel) {
  Transfer& transfer = *transfers_.at(channel);
  const auto wanted = transfer.receiver.advance();
  if (!wanted.ok()) return end_transfer(channel, wanted.error());
  for (const WantedPiece& each : *wanted) link_->send(JoinKind::kWant, channel, join_text(each));
  if (!transfer.receiver.is_done()) return;
  if (const auto bytes = transfer.receiver.received_bytes(); bytes > 0) {
    const double seconds = now_s() - transfer.began_s;
    say_(fmt::format("received {:.1f} MiB of files in {:.1f} s",
                     static_cast<double>(bytes) / (1 << 20), seconds));
  }
  end_transfer(channel, {});
}

void JoinSession::end_transfer(std::uint32_t channel, const Result<void>& outcome) {
  JoinExit exit;
  if (!outcome.ok()) {
    const Error& error = outcome.error();
    exit.status = static_cast<int>(error.code);
    exit.problem =
        error.cause.empty() ? error.what : fmt::format("{}: {}", error.what, error.cause);
    say_(exit.problem);
  }
  link_->send(JoinKind::kExit, channel, join_text(exit));
  transfers_.erase(channel);
}

void JoinSession::begin_to_leave(const Error& stop) {
  leaves_by_ = stop;
  leave_deadline_ = Deadline::after_s(kSavedStepMax_s);
  idle_since_s_ = now_s();
  for (const auto& [channel, command] : commands_) command->ask_to_end();
  if (commands_.empty()) return;
  say_(fmt::format("{}: the run saves its current step first; a second signal leaves at once",
                   stop.what));
}

bool JoinSession::is_to_leave_now() const {
  if (!leaves_by_) return false;
  const bool has_handed_over = !has_worked_ || now_s() - idle_since_s_ >= kHandOver_s;
  return leave_deadline_.passed() || (commands_.empty() && has_handed_over);
}

void JoinSession::leave() {
  end_commands();
  link_->send(JoinKind::kLeave, 0, "");
  const Deadline deadline = Deadline::after_s(kLeaveMax_s);
  while (link_->has_unsent() && !deadline.passed() && link_->advance().ok()) {
    PollSet polled;
    polled.watch(link_->fd(), POLLOUT, [] {});
    polled.wait(deadline.left_s());
  }
}

void JoinSession::end_inputs_and_wait(double seconds, StopSignals* signals) {
  for (const auto& [channel, command] : commands_) command->stop();
  const Deadline deadline = Deadline::after_s(seconds);
  const auto all_exited = [&] {
    return std::ranges::all_of(commands_, [](const auto& c) { return c.second->has_exited(); });
  };
  while (!all_exited() && !deadline.passed()) {
    PollSet polled;
    for (const auto& [channel, command] : commands_) command->watch(polled);
    if (signals != nullptr) polled.watch(signals->fd(), POLLIN, [] {});
    polled.wait(deadline.left_s());
    if (signals != nullptr && signals->take()) return;
  }
}

void JoinSession::end_commands() {
  end_inputs_and_wait(kGrace_s, nullptr);
  for (const auto& [channel, command] : commands_) {
    if (!command->has_exited()) command->kill();
  }
  end_inputs_and_wait(kKillWait_s, nullptr);
  commands_.clear();
}

}  // namespace motley
