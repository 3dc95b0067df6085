// CodecBounds: the most bytes that the codecs of a plan make of values, for predictions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "compression/codec/codec.h"
#include "plan/plan.h"

namespace motley {

class CodecBounds {
 public:
  // Of those that the plan names, and of "none", as which gradients are summed inside a machine.
  // kConfig when one is unknown.
  [[nodiscard]] static Result<CodecBounds> of(const Plan& plan);

  // REQUIRES: `codec` is one of them.
  [[nodiscard]] double payload_bytes(const std::string& codec, std::int64_t values) const;

 private:
  std::map<std::string, std::unique_ptr<const Codec>> codecs_;
};

}  // namespace motley
