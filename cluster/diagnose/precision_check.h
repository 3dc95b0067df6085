// PrecisionCheck: the dtype of matrix products on each device of a group, if train.precision asks
// for bf16 or fp16. A device without hardware support computes in fp32. That is reported, and
// refused if it applies to all devices of a cluster or of a plan.
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
  // `names`: of the devices, by worker, for messages. `refuses`: they are all devices that may be
  // used, so a dtype that none of them supports is an error.
  PrecisionCheck(std::string wanted, std::vector<std::string> names, bool refuses);

  // Handles a worker's "precision" event. After the last one: a message for the user if some
  // devices compute in fp32; if all do and it refuses, kConfig. REQUIRES: 0 <= worker < names.
  [[nodiscard]] Result<std::optional<std::string>> add(int worker, const Json& event);

  // The dtype that the worker reported; fp32 if it reported none. REQUIRES: 0 <= worker < names.
  [[nodiscard]] std::string compute_dtype_of(std::size_t worker) const;

  // Whether add() has refused.
  [[nodiscard]] bool has_refused() const { return has_refused_; }

 private:
  std::string wanted_;
  std::vector<std::string> names_;
  bool refuses_;
  bool has_refused_ = false;
  std::vector<std::optional<std::string>> compute_dtypes_;  // by worker
};

// A device and the dtypes of its matrix products, if known.
struct DeviceDtype {
  std::string name;  // in messages
  std::vector<std::string> types;
};

// kConfig: no usable device computes in train.precision. Names what they support.
[[nodiscard]] Error unsupported_dtype(const std::string& wanted,
                                      const std::vector<DeviceDtype>& here);

// A message for the user if the plan's times and memory are for another train.precision; nothing
// for a plan without a prediction.
[[nodiscard]] std::optional<std::string> plan_of_other_precision(const std::string& wanted,
                                                                 const Plan& plan);

// kConfig if no rank of the plan computes in train.precision. If devices of the profile do, the
// error names them: the plan is faster without them.
[[nodiscard]] Result<void> check_plan_precision(const std::string& wanted,
                                                const Plan& plan,
                                                const Profile& profile);

}  // namespace motley
