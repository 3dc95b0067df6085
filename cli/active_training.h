// The live training in a run folder, as other commands see it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace motley {

struct UnderWay {
  std::string launcher;        // "process 1234 on desk, since 2026-11-22 16:40:11 UTC"
  std::int64_t last_step = 0;  // finished; 0 = none
  std::int64_t steps = 0;      // train.steps; 0 = unknown

  // "process 1234 on desk, since …: step 57 of 300 is done".
  [[nodiscard]] std::string text() const;
};

// Nothing if no launcher appears to be active there.
[[nodiscard]] std::optional<UnderWay> active_training(const std::filesystem::path& run);

}  // namespace motley
