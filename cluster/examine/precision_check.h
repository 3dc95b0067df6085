// PrecisionCheck: which numbers the devices of a group compute their products in, where
// train.precision asks for bf16 or fp16. A device that has no units for them computes in fp32; that
// is said, and refused where it is so of all devices of a cluster or of a plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "plan/plan.h"
#include "plan/profile.h"

namespace motley {

class PrecisionCheck {
 public:
  // `names`: of the devices, by worker, for people. `refuses`: they are all that may be used, so
  // that nobody could compute in these numbers where none of them can.
  PrecisionCheck(std::string wanted, std::vector<std::string> names, bool refuses);

  // A worker's "precision" event. Once the last has come: a line for people where some devices
  // compute in fp32; where all do that or, if it refuses, kConfig. REQUIRES: 0 <= worker < names.
  [[nodiscard]] Result<std::optional<std::string>> add(int worker, const Json& event);

  // What the worker said that it computes in; fp32 where nobody asked for anything else.
  // REQUIRES: 0 <= worker < names.
  [[nodiscard]] std::string numbers_of(std::size_t worker) const;

  // Whether add() has refused.
  [[nodiscard]] bool has_refused() const { return has_refused_; }

 private:
  std::string wanted_;
  std::vector<std::string> names_;
  bool refuses_;
  bool has_refused_ = false;
  std::vector<std::optional<std::string>> numbers_;  // by worker
};

// A device and the numbers that it multiplies matrices of, where that is known.
struct DeviceNumbers {
  std::string name;  // for people
  std::vector<std::string> types;
};

// kConfig: no device that may be used computes in what train.precision wants. Names what they have.
[[nodiscard]] Error nobody_computes_in(const std::string& wanted,
                                       const std::vector<DeviceNumbers>& here);

// A line for people where the plan's times and memory are those of another train.precision; nothing
// for a plan without a prediction.
[[nodiscard]] std::optional<std::string> plan_of_other_precision(const std::string& wanted,
                                                                 const Plan& plan);

// kConfig where no rank of the plan computes in what train.precision wants, although a device of
// the profile would: the plan is faster without that device.
[[nodiscard]] Result<void> check_plan_precision(const std::string& wanted,
                                                const Plan& plan,
                                                const Profile& profile);

}  // namespace motley
