#include "worker/check/profile_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/system/system_cores.h"
#include "models/device/compute_device.h"
#include "models/device/dtype_support.h"
#include "models/device/product_type.h"
#include "profiling/cache_eviction.h"
#include "training/optimizer/parameter_rules.h"
#include "worker/check/libraries.h"

namespace motley {
namespace {

// The memory that a model's other layers access between two runs of one, rounded to a power of two:
// models of nearly equal size share profiles, as do all models larger than any cache.
std::int64_t elsewhere_bytes(const ModelSpec& model) {
  constexpr std::int64_t kBytesPerParameter = 8;  // values and gradients
  const std::int64_t bytes = std::clamp<std::int64_t>(
      kBytesPerParameter * model.parameter_count() + model.constant_bytes(), 1,
      CacheEviction::kBytesMax);
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)));
}

}  // namespace

ProfileKey profile_key(const Job& job, const ModelSpec& model, const ComputeDevice& computes) {
  ProfileKey key;
  key.device = job.device;
  key.processor = processor_model();
  if (const std::string card = device_model(job.device); !card.empty()) {
    key.processor += "; " + card;
  }
  key.threads = job.threads;
  // In hundredths: a quota is read as whole microseconds.
  key.cores = std::round(100 * usable_cores()) / 100;
  key.libraries = computing_libraries();
  key.compute_dtype = dtype_name(product_type(computes, job.config.train.precision));
  key.optimizer = job.config.train.optimizer;
  if (const double flops = matrix_flops_per_parameter(job.config.train, model); flops > 0) {
    key.optimizer += fmt::format(", {:.6g} operations per parameter", flops);
  }
  if (job.config.train.ema > 0) key.optimizer += ", average";
  key.transport =
      fmt::format("{}, {}", job.config.comm.transport, job.secret.empty() ? "plain" : "encrypted") +
      (job.local_shortcut ? ", inside the machine" : "");
  key.elsewhere_bytes = elsewhere_bytes(model);
  return key;
}

}  // namespace motley
