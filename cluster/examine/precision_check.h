// PrecisionCheck: which numbers the devices of a group compute their products in, where
// train.precision asks for bf16 or fp16. A device that has no units for them computes in fp32; that
// is said, and refused where it is so of all devices of a cluster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

namespace motley {

class PrecisionCheck {
 public:
  // `names`: of the devices, by worker, for people. `refuses`: they are all that a plan may use, so
  // that nobody could compute in these numbers where none of them can.
  PrecisionCheck(std::string wanted, std::vector<std::string> names, bool refuses);

  // A worker's "precision" event. Once the last has come: a line for people where some devices
  // compute in fp32; where all do that or, if it refuses, kConfig. REQUIRES: 0 <= worker < names.
  [[nodiscard]] Result<std::optional<std::string>> add(int worker, const Json& event);

 private:
  std::string wanted_;
  std::vector<std::string> names_;
  bool refuses_;
  std::vector<std::optional<bool>> has_;  // by worker: the numbers that are wanted
};

}  // namespace motley
