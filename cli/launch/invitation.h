// The machines that a head waits for and adds to the cluster of its run: those that join by a
// printed ticket (motley launch --invite), or those that the head's own launcher of processes has
// started (--from-env).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/process/progress_line.h"
#include "base/result.h"
#include "cli/arguments.h"
#include "cli/launch/run_invitation.h"
#include "cli/launch/started_process.h"
#include "cli/training.h"
#include "cluster/join/head/join_head.h"
#include "cluster/run/training_request.h"

namespace motley {

inline constexpr double kInvitedValidDefault_s = 15 * 60;

// --invite, --listen and --valid.
[[nodiscard]] std::vector<OptionSpec> invite_options();

// The address ("" = all) and the port (0 = any, or the usual one) of --listen, and the seconds of
// --valid. kUsage if they are none.
struct ListenPlace {
  std::string address;
  std::uint16_t port = 0;
};

[[nodiscard]] Result<ListenPlace> listen_place(const Arguments& arguments);
[[nodiscard]] Result<double> valid_s(const Arguments& arguments);

// Process 0 of a launcher of processes.
struct GroupHead {
  StartedProcess process;
  std::string machine;  // its name in the cluster
  std::string secret;   // that all processes know; "" = the ticket is passed on in the run folder
};

class Invitation : public JoiningMachines {
 public:
  // `group`: nothing = by a ticket that is printed.
  Invitation(const Arguments& arguments, std::optional<GroupHead> group)
      : arguments_(arguments), group_(std::move(group)) {}

  // kUsage for wrong options; kPeer if the ticket expires first; kInterrupted and kTerminated.
  [[nodiscard]] Result<void> join(TrainingRequest& request,
                                  ProgressLine& line,
                                  const Log::Output& output) override;
  // Collects the run's newest checkpoint in the run's folder here, since the machines leave with
  // the run, and their parts with them; logs a warning if that fails. Then tells them the end.
  void end(const TrainingRequest& request,
           const Result<void>& outcome,
           ProgressLine& line,
           const Log& log) override;

 private:
  // Begins to listen, and makes the ticket known; returns its places.
  [[nodiscard]] Result<int> open(const TrainingRequest& request, const Log::Output& output);
  [[nodiscard]] Result<void> write_file(const std::filesystem::path& run_dir, InvitationText text);

  const Arguments& arguments_;
  std::optional<GroupHead> group_;
  std::optional<RunInvitation> file_;
  std::unique_ptr<JoinHead> head_;  // holds the machines' connections
};

}  // namespace motley
