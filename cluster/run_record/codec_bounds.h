// CodecBounds: upper bounds of the encoded size of values for a plan's codecs, for predictions.
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
  // The bounds of the plan's codecs and of "none", which is used for gradients inside a machine.
  // kConfig if a codec is unknown.
  [[nodiscard]] static Result<CodecBounds> of(const Plan& plan);

  // REQUIRES: `codec` is one of them.
  [[nodiscard]] double payload_bytes(const std::string& codec, std::int64_t values) const;

 private:
  std::map<std::string, std::unique_ptr<const Codec>> codecs_;
};

}  // namespace motley
