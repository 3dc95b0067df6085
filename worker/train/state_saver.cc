#include "worker/train/state_saver.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "checkpoint/save/finite.h"
#include "checkpoint/save/shard_report.h"
#include "protocol/shard_message.h"

namespace motley {
namespace {

std::uint64_t bytes_of(const std::vector<TensorView>& views) {
  std::uint64_t bytes = 0;
  for (const TensorView& view : views) bytes += view.values.size_bytes();
  return bytes;
}

std::vector<OwnedTensor> copies_of(const std::vector<TensorView>& views) {
  std::vector<OwnedTensor> copies;
  for (const TensorView& view : views) {
    copies.push_back({view.name, view.shape, {view.values.begin(), view.values.end()}});
  }
  return copies;
}

}  // namespace

Result<void> StateSaver::save() {
  parts_.writer.finish();  // a disk slower than the steps delays them
  parts_.timer.restart();  // after that wait, or saves on such a disk would always be due
  // Between steps the gradients are 0, so their buffers can hold the residuals. With two kinds of
  // residuals, the first is copied regardless of free memory.
  ShardContents contents;
  if (parts_.add_feedback(FeedbackKind::kVelocity)) {
    contents.residuals = copies_of(parts_.state.velocity_views());
    parts_.state.clear_gradients();
  }
  std::vector<TensorView> residuals;
  if (parts_.add_feedback(FeedbackKind::kResidual)) residuals = parts_.state.residual_views();
  const bool is_copied = bytes_of(residuals) <= parts_.spare_bytes();
  if (is_copied) {
    std::ranges::move(copies_of(residuals), std::back_inserter(contents.residuals));
    if (!residuals.empty()) parts_.state.clear_gradients();
  }
  contents.parameters = parts_.state.parameter_views();
  contents.moments = parts_.state.moment_views();
  if (parts_.round_views) {
    RoundViews of_rounds = parts_.round_views();
    std::ranges::move(of_rounds.state, std::back_inserter(contents.moments));
    if (of_rounds.parameters) contents.parameters = *std::move(of_rounds.parameters);
  }
  if (is_copied) return begin(std::move(contents));
  // The next step needs the gradient buffers at once.
  std::ranges::move(residuals, std::back_inserter(contents.moments));
  const Result<void> begun = begin(std::move(contents));
  parts_.writer.finish();
  parts_.state.clear_gradients();
  return begun;
}

Result<void> StateSaver::begin(ShardContents contents) {
  const CheckpointState& state = parts_.progress();
  last_step_ = state.step;
  const SaveLocation location{self_.run_dir, self_.launch, state.step};
  MOTLEY_TRY(
      agree_on_space(self_, state.step, parts_.link, parts_.deadline(), shard_bytes_max(contents)));
  MOTLEY_TRY(require_finite(contents.parameters));
  MOTLEY_TRY(confirm_launch());
  parts_.writer.begin(location, self_.rank.value, self_.rank_count, std::move(contents),
                      [this, location, state](const Result<Shard>& shard) {
                        parts_.events.send(saved_event(location, state, shard));
                      });
  return {};
}

Result<void> StateSaver::confirm_launch() const {
  return parts_.confirm_launch ? parts_.confirm_launch() : Result<void>();
}

Json StateSaver::saved_event(const SaveLocation& location,
                             const CheckpointState& state,
                             const Result<Shard>& shard) const {
  if (!shard.ok()) return shard_failed_event({state.step, shard.error()});
  const ShardReport report{state, *shard};
  Result<void> reported = confirm_launch();
  if (reported.ok()) reported = write_shard_report(location, self_.rank_count, report);
  return reported.ok() ? shard_event(report) : shard_failed_event({state.step, reported.error()});
}

}  // namespace motley
