// JoinSession: a joined machine's side of one connection to the head: carries out its commands and
// receives its files, until the head ends, the connection is lost or this program is to stop.
// Leaves no process behind. One owner thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/process/stop_signals.h"
#include "base/result.h"
#include "cluster/join/machine/file_receiver.h"
#include "cluster/join/machine/join_home.h"
#include "cluster/join/machine/joined_command.h"
#include "cluster/join/tls_link.h"

namespace motley {

class JoinSession {
 public:
  // `programs`: the folder of this installation's programs. `say` displays a line.
  JoinSession(std::unique_ptr<TlsLink> link,
              const JoinHome& home,
              std::filesystem::path programs,
              double silence_s,
              std::function<void(const std::string& line)> say);
  ~JoinSession();
  JoinSession(const JoinSession&) = delete;
  JoinSession& operator=(const JoinSession&) = delete;

  // Returns once the head has ended the session, how the run has ended. The first stop signal asks
  // all commands to end, so that a training saves the current step; once they have ended and the
  // head has copied what only this machine has of the checkpoint, or at the second signal, the
  // session ends with kInterrupted or kTerminated, after the head was told.
  // Other errors: kPeer if the connection was lost or the head violates the protocol; the commands
  // have then had time to save a step.
  [[nodiscard]] Result<JoinExit> serve(StopSignals& signals);

 private:
  struct Transfer {
    FileReceiver receiver;
    double began_s;
  };

  [[nodiscard]] Result<JoinExit> exchange(StopSignals& signals);
  [[nodiscard]] Result<void> advance();
  [[nodiscard]] Result<void> take(const JoinFrame& frame);
  [[nodiscard]] Result<void> start(const JoinFrame& frame);
  void take_file_message(const JoinFrame& frame);
  void continue_transfer(std::uint32_t channel);
  void end_transfer(std::uint32_t channel, const Result<void>& outcome);
  void begin_to_leave(const Error& stop);
  [[nodiscard]] bool is_to_leave_now() const;
  void leave();
  // Ends all standard inputs, and waits until all commands have exited, at most that long or until
  // a signal (nullptr = none is heard).
  void end_inputs_and_wait(double seconds, StopSignals* signals);
  void end_commands();

  std::unique_ptr<TlsLink> link_;
  const JoinHome& home_;
  const std::filesystem::path programs_;
  const double silence_s_;
  const std::function<void(const std::string& line)> say_;
  std::map<std::uint32_t, std::unique_ptr<JoinedCommand>> commands_;
  std::map<std::uint32_t, std::unique_ptr<Transfer>> transfers_;
  std::uint32_t last_channel_ = 0;
  std::optional<JoinExit> end_;                     // sent by the head
  bool has_worked_ = false;                         // a command was started
  double idle_since_s_ = 0;                         // no command has ended later
  std::optional<Error> leaves_by_;                  // the first stop signal
  Deadline leave_deadline_ = Deadline::after_s(0);  // meaningful with leaves_by_
};

}  // namespace motley
