// StepEffect: the result of a step after the vote, the same on every rank.
#pragma once

#include <cstdint>

namespace motley {

enum class StepEffect : std::uint8_t {
  kUpdated,        // the parameters were updated
  kSkipped,        // a gradient was not finite: nothing was updated
  kWithoutTargets  // the global batch has no target, so no gradient: nothing was updated
};

}  // namespace motley
