// A run on machines that fail, sleep and lose their network, on a simulated clock: the supervisor's
// decisions are real, all else is played. For supervisor_simulation_test.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/supervisor/absences.h"
#include "cluster/supervisor/restart_policy.h"

namespace motley {

// What happens to a machine, or to the network of the launcher's own.
enum class FaultKind { kAway, kWorkerDies, kLauncherOffline };

struct PlayedFault {
  FaultKind kind = FaultKind::kAway;
  std::string machine;
  double from_s = 0;
  double to_s = 0;

  [[nodiscard]] bool lasts_at(double time_s) const { return from_s <= time_s && time_s < to_s; }
};

// "desk", where the launcher runs, "box" and "lap", of which `least` must take part.
class PlayedNetwork {
 public:
  static constexpr double kFaultsEnd_s = 1800;

  explicit PlayedNetwork(std::uint64_t seed) : random_(seed), least_(draw(1, 2)) {
    const int count = draw(1, 6);
    for (int i = 0; i < count; ++i) {
      const auto kind = static_cast<FaultKind>(draw(0, 2));
      const double from_s = draw(5, static_cast<int>(kFaultsEnd_s) - 300);
      faults_.push_back({kind, draw(0, 1) == 0 ? "box" : "lap", from_s, from_s + draw(1, 300)});
    }
  }

  [[nodiscard]] const std::vector<PlayedFault>& faults() const { return faults_; }

  [[nodiscard]] std::size_t least() const { return static_cast<std::size_t>(least_); }

  [[nodiscard]] bool answers(const std::string& machine, double time_s) const {
    return machine == "desk" || !any(time_s, [&](const PlayedFault& fault) {
             return fault.kind == FaultKind::kLauncherOffline ||
                    (fault.kind == FaultKind::kAway && fault.machine == machine);
           });
  }

  [[nodiscard]] bool kills_worker(const std::string& machine, double time_s) const {
    return any(time_s, [&](const PlayedFault& fault) {
      return fault.kind == FaultKind::kWorkerDies && fault.machine == machine;
    });
  }

  // Whether the workers of too few machines lived at some moment shortly before: such a run may
  // end.
  [[nodiscard]] bool could_not_train_before(double time_s) const {
    constexpr double kTwoWaits_s = 120;  // the longest waits between two launches
    for (double at_s = time_s - kTwoWaits_s; at_s <= time_s; at_s += 1) {
      std::size_t living = 1;
      for (const char* machine : {"box", "lap"}) living += kills_worker(machine, at_s) ? 0 : 1;
      if (living < least()) return true;
    }
    return false;
  }

  // Whether the machine's worker has ever died by itself before.
  [[nodiscard]] bool has_killed_worker(const std::string& machine, double time_s) const {
    return std::ranges::any_of(faults_, [&](const PlayedFault& fault) {
      return fault.kind == FaultKind::kWorkerDies && fault.machine == machine &&
             fault.from_s <= time_s;
    });
  }

 private:
  [[nodiscard]] int draw(int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random_);
  }

  template <class Predicate>
  [[nodiscard]] bool any(double time_s, Predicate predicate) const {
    return std::ranges::any_of(faults_, [&](const PlayedFault& fault) {
      return fault.lasts_at(time_s) && predicate(fault);
    });
  }

  std::mt19937_64 random_;
  int least_;
  std::vector<PlayedFault> faults_;
};

// The run. Times are simulated; a step takes a second, a checkpoint is saved every ten steps, a
// start takes two seconds, and silence is found after the patience of 20 s.
class PlayedRun {
 public:
  explicit PlayedRun(const PlayedNetwork& network)
      : network_(network),
        policy_(
            {"box", "desk", "lap"},
            {},
            [this](const std::set<std::string>& machines) { return query(machines); },
            [this] { return time_s_; }) {}

  // Until this time, or until the run ends.
  void play(double until_s) {
    while (time_s_ < until_s && !has_ended_) {
      ++launches_;
      if (train(until_s)) continue;  // machines are back
      restart(until_s);
    }
  }

  [[nodiscard]] bool has_ended() const { return has_ended_; }

  [[nodiscard]] double time_s() const { return time_s_; }

  [[nodiscard]] double stepped_at_s() const { return stepped_at_s_; }

  [[nodiscard]] int launches() const { return launches_; }

  [[nodiscard]] const std::vector<std::string>& left_out() const { return absences_.left_out(); }

  // Machines left out because they failed by themselves, and when.
  [[nodiscard]] const std::vector<std::pair<std::string, double>>& excluded() const {
    return excluded_;
  }

 private:
  static constexpr double kStart_s = 2;
  static constexpr double kPatience_s = 20;
  static constexpr double kQuery_s = 8;
  static constexpr int kEvery = 10;
  static constexpr double kSlow_s = 60;  // steps long after the last fault, to play them in time

  [[nodiscard]] std::set<std::string> used() const {
    std::set<std::string> machines = {"box", "desk", "lap"};
    for (const std::string& machine : absences_.left_out()) machines.erase(machine);
    return machines;
  }

  Result<std::vector<Member>> query(const std::set<std::string>& machines) {
    std::vector<Member> members;
    bool all_answer = true;
    for (const std::string& machine : machines) {
      const bool answers = network_.answers(machine, time_s_);
      all_answer = all_answer && answers;
      members.push_back({.machine = machine, .problem = answers ? "" : "no answer"});
    }
    time_s_ += all_answer ? 1 : kQuery_s;
    return members;
  }

  // A launch; false if it failed, which is then noted.
  bool train(double until_s) {
    FailedAttempt attempt{.code = ErrorCode::kPeer};
    const std::set<std::string> machines = used();
    time_s_ += kStart_s;
    for (int step = 1; time_s_ < until_s; ++step) {
      for (const std::string& machine : machines) {
        if (network_.kills_worker(machine, time_s_)) return fail(attempt, {machine});
        if (network_.answers(machine, time_s_)) continue;
        const double silent_from_s = time_s_;
        while (time_s_ < silent_from_s + kPatience_s && !network_.answers(machine, time_s_)) {
          time_s_ += 1;
        }
        if (!network_.answers(machine, time_s_)) return fail(attempt, {machine});
      }
      time_s_ += time_s_ > PlayedNetwork::kFaultsEnd_s + kSlow_s ? kSlow_s : 1;
      stepped_at_s_ = time_s_;
      attempt.has_trained = true;
      policy_.note_progress();
      if (step % kEvery == 0) {
        attempt.has_saved = true;
        policy_.note_saved(machines);
      }
      if (take_in()) return true;
    }
    return true;
  }

  bool fail(FailedAttempt& attempt, std::vector<std::string> machines) {
    attempt.at_s = time_s_;
    attempt.fault.machines = std::move(machines);
    policy_.add(attempt);
    return false;
  }

  // As ReturnWatch; every return pays.
  bool take_in() {
    std::vector<AbsentMachine> absent = absences_.absent();
    for (AbsentMachine& each : absent) {
      if (network_.answers(each.machine, time_s_)) each.answers_since_s = time_s_;
    }
    const std::vector<std::string> back = returnable(time_s_, absent, {});
    if (back.empty()) return false;
    std::vector<std::string> without = absences_.left_out();
    std::erase_if(without, [&](const auto& each) { return std::ranges::count(back, each) > 0; });
    absences_.set(without, time_s_, policy_);
    return true;
  }

  // As Supervisor::restart().
  void restart(double until_s) {
    while (time_s_ < until_s) {
      const Decision decision = *policy_.decide_next();
      if (decision.next_action == NextAction::kEnd) {
        has_ended_ = true;
        return;
      }
      time_s_ += decision.wait_s;
      if (decision.next_action == NextAction::kQueryAgain) {
        if (decision.is_outage) policy_.note_outage();
        continue;
      }
      if (!decision.excluded.empty()) excluded_.emplace_back(decision.excluded, time_s_);
      policy_.exclude(decision.excluded);
      if (3 - decision.without.size() >= network_.least()) {
        absences_.set(decision.without, time_s_, policy_);
        return;
      }
      if (!decision.silent.empty()) {
        policy_.note_outage(decision.silent);
      } else {
        policy_.require(decision.without);
      }
    }
  }

  const PlayedNetwork& network_;
  double time_s_ = 0;
  double stepped_at_s_ = 0;
  int launches_ = 0;
  bool has_ended_ = false;
  Absences absences_;
  std::vector<std::pair<std::string, double>> excluded_;
  RestartPolicy policy_;
};

}  // namespace motley
