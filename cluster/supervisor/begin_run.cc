#include "cluster/supervisor/begin_run.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cluster/launch/workers.h"
#include "cluster/supervisor/decide.h"
#include "cluster/supervisor/members.h"
#include "run_config/config_io.h"

namespace motley {
namespace {

// The request for the machines that answer. Unchanged if they are not enough or none may be left
// out: the error is then that of a new run.
Result<TrainingRequest> of_answering_machines(TrainingRequest request, const Log& log) {
  const auto machines =
      request.plan ? machines_in_use(*request.plan) : machine_names(request.cluster);
  MOTLEY_ASSIGN(const std::vector<Member> members,
                query_members(request.cluster, machines, request.stage_program));
  const std::vector<FailedAttempt> failed_attempts = {{.at_s = now_s(), .code = ErrorCode::kPeer}};
  // Does not wait for an outage: the user knows whether the network is down.
  const RecoveryRules rules{.restarts = request.config.run.restarts, .continue_alone_after_s = 0};
  const Decision decision = decide(failed_attempts.back().at_s, members, failed_attempts, rules);
  if (decision.next_action != NextAction::kRestart) return request;
  if (decision.without.empty()) {
    request.have_answered = true;
    return request;
  }
  if (request.plan) return request;
  log.warn(fmt::format("{} ({}); the run continues with the files of the others",
                       left_out_text(decision.without), problems_text(members)));
  request = request_without(std::move(request), decision.without);
  request.have_answered = true;
  request.away = decision.without;
  return request;
}

}  // namespace

Result<PreparedRun> begin_run(const TrainingRequest& request, Log& log) {
  MOTLEY_TRY(validate_config(request.config));
  const bool asks = request.resume && capabilities_of(request.cluster).keeps_state;
  if (!asks) return prepare_run(request, log);
  MOTLEY_ASSIGN(const TrainingRequest possible, of_answering_machines(request, log));
  return prepare_run(possible, log);
}

}  // namespace motley
