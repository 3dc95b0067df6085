#include "cluster/supervisor/begin_run.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cluster/launch/workers.h"
#include "cluster/prepare/prepare_run.h"
#include "cluster/supervisor/decide.h"
#include "cluster/supervisor/members.h"
#include "run_config/config_io.h"

namespace motley {
namespace {

// The request for the machines that answer. Unchanged if they are not enough or none may be left
// out: the error is then that of a new run. REQUIRES: request.resume.
Result<TrainingRequest> of_answering_machines(TrainingRequest request, const Log& log) {
  const PlanRequest& planning = request.planning;
  const auto machines =
      planning.plan ? machines_in_use(*planning.plan) : machine_names(planning.cluster);
  MOTLEY_ASSIGN(const std::vector<Member> members,
                query_members(planning.cluster, machines, request.machines.stage_program));
  const std::vector<FailedAttempt> failed_attempts = {{.at_s = now_s(), .code = ErrorCode::kPeer}};
  // Does not wait for an outage: the user knows whether the network is down.
  const RecoveryRules rules{.restarts = planning.config.run.restarts, .continue_alone_after_s = 0};
  const Decision decision = decide(failed_attempts.back().at_s, members, failed_attempts, rules);
  if (decision.next_action != NextAction::kRestart) return request;
  if (decision.without.empty()) {
    request.machines.have_answered = true;
    return request;
  }
  if (planning.plan) return request;
  log.warn(fmt::format("{} ({}); the run continues with the files of the others",
                       left_out_text(decision.without), problems_text(members)));
  request.planning = request_without(std::move(request.planning), decision.without);
  request.machines.have_answered = true;
  request.resume->away = decision.without;
  return request;
}

}  // namespace

Result<Launch> begin_run(const TrainingRequest& request, Log& log) {
  MOTLEY_TRY(validate_config(request.planning.config));
  const bool asks = request.resume && capabilities_of(request.planning.cluster).keeps_state;
  if (!asks) return prepare_run(request, log);
  MOTLEY_ASSIGN(const TrainingRequest possible, of_answering_machines(request, log));
  return prepare_run(possible, log);
}

}  // namespace motley
