// Measures the work of a step per parameter outside of layers: the gradient's norm, the update, and
// zeroing the gradient.
#pragma once

#include <cstdint>

#include "models/device/compute_device.h"
#include "models/spec/model_spec.h"
#include "run_config/config.h"

namespace motley {

// Seconds of a Stopwatch per parameter, for the stage's own code on `parameters` parameters (fewer
// if more would exceed any cache anyway). The processor's caches are filled with other memory, as
// after a backward. `matrix_flops`: ParameterRules::matrix_flops_per_parameter() of the model;
// their rate is measured on one matrix.
[[nodiscard]] double measure_optimizer(const TrainConfig& train,
                                       std::int64_t parameters,
                                       const ComputeDevice& device = {},
                                       double matrix_flops = 0);

// The same for the parameters of a model.
[[nodiscard]] double measure_optimizer(const TrainConfig& train,
                                       const ModelSpec& model,
                                       const ComputeDevice& device);

}  // namespace motley
