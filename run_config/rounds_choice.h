// The choice of parallel.rounds: synchronous steps, rounds of a given number of steps, or whichever
// the planner expects to be faster. And of parallel.rounds_overlap in the same form: none, a given
// number of steps, or the planner's choice.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "plan/rounds/rounds_plan.h"

namespace motley {

struct RoundsChoice {
  bool is_auto = false;
  std::int64_t steps = 0;  // of a round; 0 unless given

  [[nodiscard]] bool is_off() const { return !is_auto && steps == 0; }
};

// nullopt for a text other than off, auto or a number from 1 to kRoundStepsMax.
[[nodiscard]] inline std::optional<RoundsChoice> parse_rounds_choice(std::string_view text) {
  if (text == "off") return RoundsChoice{};
  if (text == "auto") return RoundsChoice{.is_auto = true};
  RoundsChoice choice;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, choice.steps);
  if (code != std::errc() || stop != end) return std::nullopt;
  if (choice.steps < 1 || choice.steps > kRoundStepsMax) return std::nullopt;
  return choice;
}

}  // namespace motley
