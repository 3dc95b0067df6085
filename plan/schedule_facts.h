// The schedules of a step and their properties: one entry each. Names stand only here.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

namespace motley {

enum class ScheduleKind { kGpipe, kOneFOneB, kSplit };

struct ScheduleFacts {
  ScheduleKind kind = ScheduleKind::kOneFOneB;
  const char* name = "";  // in plans and in parallel.schedule

  // Whether chunks limit their micro-batches between forward and backward, which a plan may set.
  bool limits_in_flight = false;

  // Whether backward runs in two parts: the profile must separate them, and a plan limits the
  // weight parts that a replica may queue.
  bool splits_backward = false;

  // The planner's search: the schedule whose candidates it tries, itself or a simpler one; the
  // longest warm-up that it searches (StepShape::warm_up); of schedules with equal steps the least
  // complex one is taken.
  ScheduleKind searched_as = ScheduleKind::kOneFOneB;
  int warm_up_max = 1;
  int complexity = 0;
};

// In the order of ScheduleKind, which is that of the documentation. Three in flight for each
// following stage hide hops as long as a stage's computing.
inline constexpr std::array<ScheduleFacts, 3> kSchedules = {{
    {.kind = ScheduleKind::kGpipe,
     .name = "gpipe",
     .searched_as = ScheduleKind::kGpipe,
     .complexity = 2},
    {.kind = ScheduleKind::kOneFOneB, .name = "1f1b", .limits_in_flight = true, .warm_up_max = 3},
    {.kind = ScheduleKind::kSplit,
     .name = "split",
     .limits_in_flight = true,
     .splits_backward = true,
     .warm_up_max = 3,
     .complexity = 1},
}};

[[nodiscard]] constexpr const ScheduleFacts& schedule_facts(ScheduleKind kind) {
  return kSchedules[static_cast<std::size_t>(kind)];
}

// nullptr if there is no schedule of that name.
[[nodiscard]] const ScheduleFacts* find_schedule(std::string_view name);

// Their names, and the values of parallel.schedule, which are "auto" and these names.
[[nodiscard]] std::vector<const char*> schedule_names();
[[nodiscard]] std::vector<const char*> schedule_choices();

// Whether parallel.schedule permits plans with this schedule: "auto" permits all.
[[nodiscard]] bool permits_schedule(std::string_view choice, ScheduleKind kind);

}  // namespace motley
