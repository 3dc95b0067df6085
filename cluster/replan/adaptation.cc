#include "cluster/replan/adaptation.h"

#include <fmt/format.h>

#include <utility>

#include "base/clock.h"

namespace motley {

Adaptation::Adaptation(PlanningInput input,
                       Plan plan,
                       AdaptationRules rules,
                       RoundingChange rounding_change,
                       const Log& log)
    : plan_(std::move(plan)),
      rules_(rules),
      rounding_change_(std::move(rounding_change)),
      log_(log),
      began_at_s_(now_s()),
      steps_(plan_),
      is_over_(input.profile.devices.empty()),
      search_(std::move(input)) {}

double Adaptation::least_gain() const {
  return rules_.least_gain * (1 + rules_.switches_done);
}

std::optional<std::string> Adaptation::on_step(Rank rank, const StepReport& report) {
  if (is_over_) return {};
  if (start_s_ == 0) start_s_ = now_s() - began_at_s_;
  // The search occupies a core of this machine: steps measured meanwhile are not representative.
  if (search_.is_busy()) {
    auto found = search_.take();
    if (!found) return {};
    steps_.restart_window();
    if (found->ok()) {
      return **found ? assess(**std::move(*found), report.step) : std::optional<std::string>();
    }
    log_.debug(
        fmt::format("the plan is not adapted: {}: {}", found->error().what, found->error().cause));
    is_over_ = true;
    return {};
  }
  auto measured = steps_.add(rank, report);
  if (!measured) return {};
  measured->plan = plan_;
  const Result<void> begun = search_.begin(*std::move(measured), least_gain());
  if (!begun.ok()) {
    log_.debug(fmt::format("{}: {}", begun.error().what, begun.error().cause));
    is_over_ = true;
  }
  return {};
}

std::optional<std::string> Adaptation::assess(BetterPlan better, std::int64_t step) {
  const double saved_s = (better.present_step_s - better.plan.predicted_step_s) *
                         static_cast<double>(rules_.last_step - step);
  if (saved_s < rules_.least_return * start_s_) return {};
  is_over_ = true;
  std::string shown = fmt::format(
      "predicted from measured steps: {} takes {:.3f} s a step; this plan, {}, takes {:.3f} s; "
      "gain {:.0f} %",
      cut_text(better.plan), better.plan.predicted_step_s, cut_text(plan_), better.present_step_s,
      better.gain() * 100);
  if (const auto change = rounding_change_(better.plan)) {
    shown += fmt::format(", with {}, which rounds sums differently", *change);
  }
  if (!rules_.switches) {
    return shown +
           "; to move the layers automatically, end the run (Ctrl-C) and continue it with --resume "
           "--adapt";
  }
  switch_ = std::move(better);
  return shown + "; the layers are moved after the current step is saved";
}

}  // namespace motley
