// Initial values of parameters, without tensors.
#pragma once

#include <cstdint>
#include <span>

#include "models/spec/model_spec.h"

namespace motley {

// Fills a parameter's initial values: a function of (seed, name, index) only, the same bits on
// every platform. REQUIRES: values.size() == spec.count().
void initialize_parameter(const ParameterSpec& spec, std::int64_t seed, std::span<float> values);

}  // namespace motley
