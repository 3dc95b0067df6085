// RestartPolicy: decides what follows a launch that ended early (decide()), from the failed
// attempts of a run and the machines that answer. Queries the machines. Stores which of them are
// excluded for some time because they failed by themselves, and which are needed although they
// failed.
//
// Used by one thread.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cluster/supervisor/decide.h"
#include "plan/cluster.h"

namespace motley {

class RestartPolicy {
 public:
  using Query = std::function<Result<std::vector<Member>>(const std::set<std::string>& machines)>;
  using Clock = std::function<double()>;

  // cluster: all machines of the run. program: motley-stage. Both are borrowed.
  RestartPolicy(const Cluster& cluster,
                const std::filesystem::path& program,
                const RecoveryRules& rules);

  // With other answers than those of query_members(), and another clock than now_s().
  RestartPolicy(std::set<std::string> machines,
                const RecoveryRules& rules,
                Query query,
                Clock clock);

  [[nodiscard]] const RecoveryRules& rules() const { return rules_; }

  void add(FailedAttempt attempt) { attempts_.push_back(std::move(attempt)); }

  // REQUIRES: add() was called.
  [[nodiscard]] const FailedAttempt& last_attempt() const { return attempts_.back(); }

  // The decision after the last attempt. Asks all machines of the cluster, unless their
  // answers cannot change it. Errors as query_members(). REQUIRES: add() was called.
  [[nodiscard]] Result<Decision> decide_next();

  // The machines that did not answer decide_next(), and why, in one line.
  [[nodiscard]] const std::string& problems() const { return problems_; }

  // The last attempt failed by an outage: now too few machines answer. missing: machines without
  // which the run cannot continue; empty = any. REQUIRES: add() was called.
  void note_outage(std::vector<std::string> missing = {});

  // Excludes the machine from coming decisions, each time in a row for longer (exclusion_s()). Does
  // nothing for "".
  void exclude(const std::string& machine);

  // Excludes it for that time. Does not count as a failure.
  void exclude_for(const std::string& machine, double seconds);

  // The run cannot continue without all of these machines: the one of them that was excluded first
  // is no longer excluded, and counts as needed until note_progress().
  void require(const std::vector<std::string>& machines);

  // A launch has trained a step.
  void note_progress() { needed_.clear(); }

  // A launch on these machines has saved a step: their earlier failures no longer count.
  void note_saved(const std::set<std::string>& machines);

  // Until when the machine is excluded, as now_s(); 0 = it is not.
  [[nodiscard]] double excluded_until_s(const std::string& machine) const;

 private:
  struct Exclusion {
    double since_s = 0;  // as now_s()
    double until_s = 0;  // as now_s()
    int times = 0;       // in a row, by failures
  };

  void note_away(const std::vector<Member>& members);
  void set_states(std::vector<Member>& members);

  const std::set<std::string> machines_;
  const RecoveryRules rules_;
  const Query query_;
  const Clock clock_;
  std::vector<FailedAttempt> attempts_;
  std::map<std::string, Exclusion> exclusions_;  // by machine
  std::set<std::string> needed_;
  std::string problems_;
};

// Waits for wait_s seconds. A stop signal ends the wait and is the error (StopSignals::take).
[[nodiscard]] Result<void> wait_or_stop(double wait_s);

}  // namespace motley
