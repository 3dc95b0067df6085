#include "worker/batches.h"

namespace motley {

Result<TrainedStep> Batches::run_step() {
  const std::uint64_t bytes_before = link_.wire_bytes();
  MOTLEY_ASSIGN(const RunTimes times,
                executor_.run(schedule_, {progress().step + 1, true, progress().samples}));
  return TrainedStep{voter_.outcome(), times, link_.wire_bytes() - bytes_before};
}

Result<std::optional<Evaluation>> HeldOutBatches::evaluate(std::int64_t step) {
  double loss_sum = 0;
  std::int64_t tokens = 0;
  for (int batch = 0; batch < count_; ++batch) {
    const auto first_sample =
        static_cast<std::uint64_t>(batch) * static_cast<std::uint64_t>(samples_);
    MOTLEY_ASSIGN([[maybe_unused]] const RunTimes times,
                  executor_.run(schedule_, {step, false, first_sample}));
    loss_sum += voter_.outcome().loss * static_cast<double>(voter_.outcome().tokens);
    tokens += voter_.outcome().tokens;
  }
  return std::optional(Evaluation{loss_sum / static_cast<double>(tokens), bytes_per_token_});
}

}  // namespace motley
