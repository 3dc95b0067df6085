#include "measure/optimizer_bench.h"

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/median.h"
#include "measure/cache_eviction.h"
#include "training/optimizer/optimizer.h"
#include "training/stage_state.h"

namespace motley {
namespace {

constexpr std::int64_t kParametersMax = std::int64_t{1} << 23;  // 128 MiB with AdamW
constexpr int kRuns = 7;

}  // namespace

double measure_optimizer(const TrainConfig& train, std::int64_t parameters) {
  const std::int64_t count = std::clamp<std::int64_t>(parameters, 1, kParametersMax);
  std::vector<float> values(static_cast<std::size_t>(count), 0.5F);
  std::vector<float> gradients(values.size());
  ParameterSpec spec;
  spec.name = "measured";
  spec.shape = {count};
  spec.decayed = true;
  const HeldParameter held{.layer = 0, .spec = spec, .values = values, .gradients = gradients};
  StageState state({{ChunkId{0}, gradients, {held}, {0}}}, make_optimizer(train), "");
  const auto optimizer = make_optimizer(train);
  CacheEviction others(count * static_cast<std::int64_t>(sizeof(float)));
  std::vector<double> times_s;
  for (int run = -1; run < kRuns; ++run) {
    std::ranges::fill(gradients, 1e-3F);
    others.run();
    const double start_s = thread_cpu_s();
    [[maybe_unused]] const auto norms = state.layer_norms();
    state.update({1e-9, optimizer->corrections(run + 2)}, 1.0F);
    state.clear_gradients();
    if (run >= 0) times_s.push_back(thread_cpu_s() - start_s);
  }
  return median(std::move(times_s)) / static_cast<double>(count);
}

}  // namespace motley
