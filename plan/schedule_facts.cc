#include "plan/schedule_facts.h"

#include <algorithm>

namespace motley {
namespace {

constexpr const char* kAuto = "auto";

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kSchedules.size(); ++i) {
    if (kSchedules[i].kind != static_cast<ScheduleKind>(i)) return false;
  }
  return true;
}

static_assert(is_in_order());

}  // namespace

const ScheduleFacts* find_schedule(std::string_view name) {
  const auto* const found = std::ranges::find(
      kSchedules, name, [](const ScheduleFacts& each) { return std::string_view(each.name); });
  return found == kSchedules.end() ? nullptr : found;
}

std::vector<const char*> schedule_names() {
  std::vector<const char*> names;
  for (const ScheduleFacts& each : kSchedules) names.push_back(each.name);
  return names;
}

std::vector<const char*> schedule_choices() {
  std::vector<const char*> choices = schedule_names();
  choices.insert(choices.begin(), kAuto);
  return choices;
}

bool permits_schedule(std::string_view choice, ScheduleKind kind) {
  return choice == kAuto || choice == schedule_facts(kind).name;
}

}  // namespace motley
