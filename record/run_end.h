// RunEnd: how a run ended, or the launch of it that a report describes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace motley {

struct RunEnd {
  std::int64_t last_step = 0;  // trained; 0 = none
  int status = 0;              // the exit status; 0: the run completed
  std::string what;            // the error's first line; "" if the run completed
  // Why it completed before its last step, if train.early_stopping ended it.
  std::string stopped_early = {};

  static constexpr std::size_t kWhatBytesMax = 400;

  // The end by an error, whose first line is shortened to kWhatBytesMax.
  [[nodiscard]] static RunEnd by(const Error& error, std::int64_t last_step) {
    return {last_step, static_cast<int>(error.code), excerpt(error.what, kWhatBytesMax)};
  }

  [[nodiscard]] bool has_completed() const { return status == 0; }

  friend bool operator==(const RunEnd&, const RunEnd&) = default;
};

}  // namespace motley
