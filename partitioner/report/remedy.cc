#include "partitioner/report/remedy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "partitioner/report/what_if.h"
#include "plan/quantity_text.h"
#include "plan/schedule_facts.h"

namespace motley {
namespace {

// Machines beyond this number are not searched, to report the error soon.
constexpr std::size_t kMachinesTried = 16;

// Whether any plan fits. 1F1B needs no more memory than GPipe, and the smallest micro-batch needs
// least, so one shape answers for all if the shape is free.
bool fits(PlanningInput input) {
  if (input.options.schedule == "auto")
    input.options.schedule = schedule_facts(ScheduleKind::kOneFOneB).name;
  if (input.options.micro_batch == 0) input.options.micro_batch = 1;
  return make_plan(input).ok();
}

struct ExtraMemory {
  std::string machine;
  double now_gib = 0;
  double needed_gib = 0;

  [[nodiscard]] double extra_gib() const { return needed_gib - now_gib; }
};

// The least memory of one machine with which the model fits, to 1 % of the addition; nullopt if no
// memory of that machine is enough.
std::optional<ExtraMemory> least_memory(const PlanningInput& input, const std::string& machine) {
  constexpr double kMostGib = 1e6;
  constexpr double kLeastGib = 1e-6;
  const double now_gib = machine_memory_gib(input, machine);
  double extra_gib = std::max(kLeastGib, now_gib / 64);
  while (!fits(with_machine_memory(input, machine, now_gib + extra_gib))) {
    if (extra_gib > kMostGib) return std::nullopt;
    extra_gib *= 2;
  }
  double low_gib = extra_gib / 2;
  if (extra_gib <= std::max(kLeastGib, now_gib / 64)) low_gib = 0;
  while (extra_gib - low_gib > 0.01 * extra_gib) {
    const double middle_gib = (low_gib + extra_gib) / 2;
    (fits(with_machine_memory(input, machine, now_gib + middle_gib)) ? extra_gib : low_gib) =
        middle_gib;
  }
  return ExtraMemory{machine, now_gib, now_gib + extra_gib};
}

std::optional<ExtraMemory> least_extra_memory(const PlanningInput& input) {
  std::optional<ExtraMemory> least;
  const auto& machines = input.cluster.machines;
  for (std::size_t m = 0; m < std::min(machines.size(), kMachinesTried); ++m) {
    const auto found = least_memory(input, machines[m].name);
    if (found && (!least || found->extra_gib() < least->extra_gib())) least = found;
  }
  return least;
}

std::optional<std::string> more_memory(const PlanningInput& input) {
  std::optional<ExtraMemory> least = least_extra_memory(input);
  if (!least) return std::nullopt;
  least->needed_gib = rounded_up(least->needed_gib);
  const Machine& machine = *input.cluster.find(least->machine);
  const double free_gib = measured_memory_gib(input, least->machine);
  if (machine.memory_gib > 0 && free_gib >= least->needed_gib) {
    return fmt::format("set memory_gib of {} to {:.4g} ({:.4g} now; {:.4g} GiB are free there)",
                       machine.name, least->needed_gib, machine.memory_gib, free_gib);
  }
  const bool is_theirs = std::ranges::all_of(machine.devices, has_own_memory);
  return fmt::format("give {}{} {:.3g} GiB more memory ({:.4g} GiB in all)",
                     is_theirs ? "a device of " : "", least->machine,
                     rounded_up(least->extra_gib()), least->needed_gib);
}

std::optional<std::string> recomputation(const PlanningInput& input) {
  if (input.options.recompute != "none") return std::nullopt;
  PlanningInput recomputed = input;
  recomputed.options.recompute = "auto";
  if (!fits(recomputed)) return std::nullopt;
  return "set parallel.recompute = \"auto\"";
}

// The largest smaller micro-batch that fits.
std::optional<std::string> smaller_micro_batch(const PlanningInput& input) {
  PlanningInput smaller = input;
  for (int size = input.options.micro_batch - 1; size >= 1; --size) {
    if (input.options.global_batch % size != 0) continue;
    smaller.options.micro_batch = size;
    if (fits(smaller)) return fmt::format("set train.micro_batch = {}", size);
  }
  return std::nullopt;
}

std::optional<std::string> one_more_machine(const PlanningInput& input) {
  const auto& machines = input.cluster.machines;
  for (std::size_t m = 0; m < std::min(machines.size(), kMachinesTried); ++m) {
    if (fits(with_duplicate(input, machines[m].name))) {
      return fmt::format("add another machine like {}", machines[m].name);
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> changes_that_fit(const PlanningInput& input) {
  std::vector<std::string> changes;
  for (const auto& change : {more_memory(input), recomputation(input), smaller_micro_batch(input),
                             one_more_machine(input)}) {
    if (change) changes.push_back(*change);
  }
  return changes;
}

Result<Planning> plan_or_remedy(const PlanningInput& input) {
  Result<Planning> planning =
      plan_in_full(input.model, input.cluster, input.profile, input.options);
  if (planning.ok() || planning.error().code != ErrorCode::kInfeasible) return planning;
  Error error = std::move(planning).error();
  const std::vector<std::string> changes = changes_that_fit(input);
  if (!changes.empty()) error.remedy = fmt::format("{}", fmt::join(changes, ", or "));
  return error;
}

}  // namespace motley
