// LinePipeline: a pipeline whose layers are straight lines, y = a·x + b for each value, so that the
// executor runs without LibTorch. Every layer also checks and passes on the micro-batch's exact
// bytes, which the data provides. Ranks are threads over the in-process transport.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "compression/make_codec.h"
#include "pipeline/execute/executor.h"
#include "pipeline/schedule/schedules.h"
#include "pipeline/schedule/validate.h"
#include "tests/support/rank_group.h"

namespace motley {

inline constexpr int kLineLayers = 6;
inline constexpr std::size_t kLineFloats = 5;  // of a micro-batch, at every boundary
inline constexpr std::size_t kLineExactBytes = 7;

using LineValues = std::vector<float>;
using LineBytes = std::array<std::byte, kLineExactBytes>;

// The exact bytes of a micro-batch in the step that begins with this sample. No codec preserves
// them.
inline LineBytes line_bytes(std::uint64_t first_sample, MicroId micro) {
  LineBytes bytes;
  std::uint64_t state = first_sample * 1'000'003 + static_cast<std::uint64_t>(micro.value) + 1;
  for (std::byte& byte : bytes) {
    state = state * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

struct LineLayer {
  float a = 0;
  float b = 0;
  float gradient_a = 0;
  float gradient_b = 0;

  friend bool operator==(const LineLayer&, const LineLayer&) = default;
};

class LineStage final : public StageCompute, public StageGradients, public StageVotes {
 public:
  LineStage(const Plan& plan, Rank self) : chunks_(plan.chunks), self_(self) {
    for (int layer = 0; layer < kLineLayers; ++layer) {
      parameters_.push_back(0.7F + 0.1F * static_cast<float>(layer));
      parameters_.push_back(1.0F / (3.0F + static_cast<float>(layer)));
    }
    gradients_.resize(parameters_.size());
  }

  void begin(const BatchPosition& position) override {
    position_ = position;
    loss_sum_ = 0;
    stepped_ = false;
    std::ranges::fill(gradients_, 0.0F);
    for (auto* values : {&inputs_, &output_gradients_, &outputs_, &input_gradients_}) {
      values->clear();
    }
    exact_.clear();
  }

  std::span<const std::int32_t> load(MicroId micro) override {
    const auto sample =
        static_cast<float>(position_.first_sample) + static_cast<float>(micro.value);
    LineValues& x = at(inputs_, ChunkId{0}, micro);
    for (std::size_t i = 0; i < kLineFloats; ++i) x[i] = (sample + static_cast<float>(i)) / 7.0F;
    exact_[{ChunkId{0}, micro}] = line_bytes(position_.first_sample, micro);
    // No longer than promised.
    if (!holds_last()) targets_.clear();
    return targets_[micro] = std::vector<std::int32_t>(kLineFloats, micro.value % 3);
  }

  std::span<std::int32_t> targets_buffer(MicroId micro) override {
    return targets_[micro] = std::vector<std::int32_t>(targets_count_);
  }

  [[nodiscard]] BoundarySize boundary_size(ChunkId) const override {
    return {kLineFloats, kLineExactBytes};
  }

  BoundaryBuffer receive_buffer(const Value& value) override {
    const std::pair key(value.chunk, value.micro);
    if (value.kind == ValueKind::kGradient) {
      return {at(output_gradients_, value.chunk, value.micro), {}};
    }
    return {at(inputs_, value.chunk, value.micro), exact_[key]};
  }

  void hand_over_locally(const Value& value, OwnedBoundary made) override {
    const BoundaryBuffer place = receive_buffer(value);
    std::ranges::copy(made.values, place.floats.begin());
    ASSERT_EQ(made.exact.size(), place.exact.size());
    std::ranges::copy(made.exact, place.exact.begin());
  }

  std::optional<OwnedBytes> message_to_host(const OwnedBoundary& made,
                                            const BoundaryMessage& message) override {
    if (!encodes_itself_) return std::nullopt;
    const auto bytes = std::make_shared<std::vector<std::byte>>(message.bytes_max);
    const auto arrive = [bytes, codec = message.codec, values = made.values,
                         exact = made.exact](const std::string& /*words*/) -> Result<void> {
      const std::span<std::byte> coded = std::span(*bytes).first(bytes->size() - exact.size());
      make_codec(codec).value()->encode(values, coded);
      std::ranges::copy(exact, bytes->end() - static_cast<std::ptrdiff_t>(exact.size()));
      return {};
    };
    return OwnedBytes{*bytes, bytes, arrive};
  }

  std::optional<std::span<std::byte>> message_buffer(const Value& value,
                                                     const BoundaryMessage& message) override {
    if (!encodes_itself_) return std::nullopt;
    Message& place = messages_[value];
    place = {message.codec, std::vector<std::byte>(message.bytes_max - lacking_bytes_)};
    return place.bytes;
  }

  OwnedBoundary forward(ChunkId chunk, MicroId micro) override {
    read_message({ValueKind::kActivation, chunk, micro});
    const LineBytes& exact = exact_.at({chunk, micro});
    EXPECT_EQ(exact, line_bytes(position_.first_sample, micro));
    LineValues& y = at(outputs_, chunk, micro) = inputs_.at({chunk, micro});
    for (std::size_t layer = first_layer(chunk); layer < last_layer(chunk); ++layer) {
      at(layer_inputs_[layer], chunk, micro) = y;
      for (float& y_i : y) y_i = parameters_[2 * layer] * y_i + parameters_[2 * layer + 1];
    }
    if (!is_last(chunk)) return {{y, nullptr, {}}, exact};
    for (std::size_t i = 0; i < kLineFloats; ++i) {
      const float miss = y[i] - static_cast<float>(targets_.at(micro)[i]);
      at(output_gradients_, chunk, micro)[i] = miss;
      loss_sum_ += 0.5 * double{miss} * double{miss};
    }
    return {};
  }

  OwnedBoundary backward(ChunkId chunk,
                         MicroId micro,
                         BackwardPart part,
                         const OnReady& on_ready) override {
    OwnedBoundary gradient;
    if (part != BackwardPart::kWeights) gradient = backward_input(chunk, micro);
    if (part != BackwardPart::kInput) backward_weight(chunk, micro, on_ready);
    return gradient;
  }

  std::span<float> gradients(ChunkId chunk) override {
    const std::size_t first = 2 * first_layer(chunk) + (tied_ && chunk.value == 0 ? 1 : 0);
    const std::size_t end = 2 * last_layer(chunk) - (tied_ && is_last(chunk) ? 1 : 0);
    return std::span(gradients_).subspan(first, end - first);
  }

  std::span<float> tied_gradient() override {
    return holds_first() ? std::span(gradients_).first(1) : std::span(gradients_).last(1);
  }

  void end_tied_gradient() override {
    if (tied_ && holds_first() && holds_last()) gradients_.front() += gradients_.back();
  }

  [[nodiscard]] std::size_t vote_bytes_max() const override { return sizeof(double); }

  std::vector<std::byte> vote(const BatchPosition& /*position*/) override {
    const auto bytes = std::as_bytes(std::span(&loss_sum_, 1));
    return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(vote_bytes_)};
  }

  Result<void> count_votes(const std::vector<std::vector<std::byte>>& votes) override {
    double sum = 0;
    for (const auto& vote : votes) {
      double loss = 0;
      if (vote.size() != sizeof loss) return Error{ErrorCode::kCorrupt, "a short vote", "", ""};
      std::memcpy(&loss, vote.data(), sizeof loss);
      sum += loss;
    }
    loss_sum_ = sum;
    return {};
  }

  StepEffect step() override {
    stepped_ = true;
    for (std::size_t i = 0; i < parameters_.size(); ++i) parameters_[i] -= 1e-4F * gradients_[i];
    return StepEffect::kUpdated;
  }

  // For tests: faults to inject, and results to inspect.
  void expect_targets(std::size_t count) { targets_count_ = count; }

  void cut_votes_to(std::size_t bytes) { vote_bytes_ = bytes; }

  // Emulates a device with its own codecs: a received value stays encoded until it is used.
  void encode_itself() { encodes_itself_ = true; }

  // The same, with buffers shorter than the messages.
  void expect_fewer_bytes() { lacking_bytes_ = 1; }

  [[nodiscard]] double loss_sum() const { return loss_sum_; }  // over all ranks, after the vote

  [[nodiscard]] bool stepped() const { return stepped_; }

  // Ties the first parameter of the first layer and the last parameter of the last one.
  void tie() { tied_ = true; }

  [[nodiscard]] std::vector<LineLayer> layers_of(ChunkId chunk) const {
    std::vector<LineLayer> layers;
    for (std::size_t i = 2 * first_layer(chunk); i < 2 * last_layer(chunk); i += 2) {
      layers.push_back({parameters_[i], parameters_[i + 1], gradients_[i], gradients_[i + 1]});
    }
    return layers;
  }

  LineValues input(ChunkId c, MicroId m) { return at(inputs_, c, m); }

  LineValues output(ChunkId c, MicroId m) { return at(outputs_, c, m); }

  LineValues input_gradient(ChunkId c, MicroId m) { return at(input_gradients_, c, m); }

  LineValues output_gradient(ChunkId c, MicroId m) { return at(output_gradients_, c, m); }

 private:
  using ByMicro = std::map<std::pair<ChunkId, MicroId>, LineValues>;

  static LineValues& at(ByMicro& values, ChunkId chunk, MicroId micro) {
    LineValues& found = values[{chunk, micro}];
    found.resize(kLineFloats);
    return found;
  }

  struct Message {
    std::string codec;
    std::vector<std::byte> bytes;
  };

  void read_message(const Value& value) {
    const auto message = messages_.extract(value);
    if (message.empty()) return;
    const auto& [codec, bytes] = message.mapped();
    const BoundaryBuffer place = receive_buffer(value);
    const std::span coded = std::span(bytes).first(bytes.size() - place.exact.size());
    EXPECT_TRUE(make_codec(codec).value()->decode(coded, place.floats).ok());
    std::ranges::copy(std::span(bytes).last(place.exact.size()), place.exact.begin());
  }

  OwnedBoundary backward_input(ChunkId chunk, MicroId micro) {
    read_message({ValueKind::kGradient, chunk, micro});
    LineValues& gradient = at(input_gradients_, chunk, micro) =
        output_gradients_.at({chunk, micro});
    for (std::size_t layer = last_layer(chunk); layer-- > first_layer(chunk);) {
      at(layer_gradients_[layer], chunk, micro) = gradient;
      if (layer == 0) add_product(gradient, at(layer_inputs_[0], chunk, micro), gradients_[0]);
      for (float& gradient_i : gradient) gradient_i *= parameters_[2 * layer];
    }
    if (chunk.value == 0) return {};
    return {{gradient, nullptr, {}}, {}};
  }

  void backward_weight(ChunkId chunk, MicroId micro, const OnReady& on_ready) {
    const std::size_t left_out = tied_ && chunk.value == 0 ? 1 : 0;
    for (std::size_t layer = last_layer(chunk); layer-- > first_layer(chunk);) {
      const LineValues& x = at(layer_inputs_[layer], chunk, micro);
      const LineValues& gradient = layer_gradients_[layer].at({chunk, micro});
      if (layer > 0) add_product(gradient, x, gradients_[2 * layer]);
      for (const float gradient_i : gradient) gradients_[2 * layer + 1] += gradient_i;
      const std::size_t first = 2 * (layer - first_layer(chunk));
      if (on_ready) on_ready(std::max(first, left_out) - left_out);
    }
  }

  static void add_product(const LineValues& a, const LineValues& b, float& sum) {
    for (std::size_t i = 0; i < kLineFloats; ++i) sum += a[i] * b[i];
  }

  [[nodiscard]] std::size_t first_layer(ChunkId chunk) const {
    return static_cast<std::size_t>(chunks_[chunk.index()].first_layer);
  }

  [[nodiscard]] std::size_t last_layer(ChunkId chunk) const {
    return first_layer(chunk) + static_cast<std::size_t>(chunks_[chunk.index()].layer_count);
  }

  [[nodiscard]] bool holds_first() const { return chunks_.front().is_on(self_); }

  [[nodiscard]] bool holds_last() const { return chunks_.back().is_on(self_); }

  [[nodiscard]] bool is_last(ChunkId chunk) const { return chunk.index() + 1 == chunks_.size(); }

  const std::vector<ChunkPlan> chunks_;
  const Rank self_;
  std::vector<float> parameters_;  // a and b of each layer
  std::vector<float> gradients_;   // in the same layout
  BatchPosition position_;
  double loss_sum_ = 0;
  bool stepped_ = false;
  ByMicro inputs_, outputs_, output_gradients_, input_gradients_;
  std::map<std::pair<ChunkId, MicroId>, LineBytes> exact_;  // exact bytes of inputs_
  std::map<std::size_t, ByMicro> layer_inputs_;
  std::map<std::size_t, ByMicro> layer_gradients_;  // of each layer's output
  std::map<MicroId, std::vector<std::int32_t>> targets_;
  std::size_t targets_count_ = kLineFloats;
  std::size_t vote_bytes_ = sizeof(double);
  bool tied_ = false;
  bool encodes_itself_ = false;
  std::size_t lacking_bytes_ = 0;
  std::map<Value, Message> messages_;
};

// The layers are divided evenly among the chunks; chunk c is on replicas[c].
inline Plan replicated_line_plan(std::vector<std::vector<Replica>> replicas,
                                 int micro_batches,
                                 const std::string& schedule) {
  Plan plan;
  const auto chunks = static_cast<int>(replicas.size());
  for (int c = 0; c < chunks; ++c) {
    const int first = c * kLineLayers / chunks;
    auto& group_members = replicas[static_cast<std::size_t>(c)];
    for (const Replica& replica : group_members) {
      if (plan.ranks.size() <= replica.rank.index()) plan.ranks.resize(replica.rank.index() + 1);
    }
    plan.chunks.push_back(
        {first, (c + 1) * kLineLayers / chunks - first, std::move(group_members)});
  }
  plan.micro_batches = micro_batches;
  plan.schedule = schedule;
  return plan;
}

// The same with chunk c only on rank chunk_ranks[c].
inline Plan line_plan(const std::vector<int>& chunk_ranks,
                      int micro_batches = 4,
                      const std::string& schedule = "1f1b") {
  std::vector<std::vector<Replica>> replicas;
  for (const int rank : chunk_ranks) replicas.push_back({{Rank{rank}, micro_batches}});
  return replicated_line_plan(std::move(replicas), micro_batches, schedule);
}

class LinePipeline {
 public:
  using Outcome = std::optional<Result<StepTimes>>;

  explicit LinePipeline(const Plan& plan, const std::string& gradient_codec = "none")
      : plan_(plan),
        gradients_{.chain = gradient_codec},
        group_("inproc", plan.rank_count()),
        hashes_(plan.ranks.size(), plan_hash(plan)) {
    for (Rank rank{0}; rank.value < plan.rank_count(); ++rank.value) {
      stages_.push_back(std::make_unique<LineStage>(plan, rank));
    }
  }

  [[nodiscard]] LineStage& stage(Rank rank) { return *stages_[rank.index()]; }

  [[nodiscard]] LineStage& stage(ChunkId chunk) {
    return stage(plan_.chunks[chunk.index()].replicas.front().rank);
  }

  void lose(Rank rank) {
    absent_ = rank;
    group_.destroy(rank);
  }

  void silence(Rank rank) { absent_ = rank; }

  // The timeout of each message; by default one second.
  void wait_up_to(double seconds) { stall_timeout_s_ = seconds; }

  void tie() {
    for (const auto& stage : stages_) stage->tie();
  }

  void give_another_plan(Rank rank) { hashes_[rank.index()] += 1; }

  // Every present rank runs the schedule once; returns [Rank], nullopt for the absent one.
  std::vector<Outcome> run(const Schedule& schedule, const BatchPosition& position = {}) {
    std::vector<Outcome> outcomes(stages_.size());
    group_.run([&](Rank self) {
      if (self != absent_) outcomes[self.index()] = run_rank(self, schedule, position);
    });
    return outcomes;
  }

  std::vector<Outcome> train(std::int64_t step = 1, bool tied = false) {
    if (tied) tie();
    const auto schedule = make_schedule(plan_, tied);
    EXPECT_TRUE(schedule.ok() && validate_schedule(*schedule, tied).ok());
    return run(*schedule, {step, true, static_cast<std::uint64_t>(step) * 4});
  }

  // The model's layers, each from the rank that holds it.
  std::vector<LineLayer> layers() {
    std::vector<LineLayer> all;
    for (ChunkId chunk{0}; chunk.value < plan_.chunk_count(); ++chunk.value) {
      for (const LineLayer& layer : stage(chunk).layers_of(chunk)) all.push_back(layer);
    }
    return all;
  }

 private:
  Result<StepTimes> run_rank(Rank self, const Schedule& schedule, const BatchPosition& position) {
    FrameLink link(group_.at(self), self, /*epoch=*/1, hashes_[self.index()]);
    Activity activity;
    // Every other rank runs its codecs asynchronously, which must not change anything.
    MOTLEY_ASSIGN(
        const auto executor,
        Executor::make(self, plan_, link, {stage(self), stage(self), stage(self)}, activity,
                       {.gradients = gradients_,
                        .stall_timeout = stall_timeout_s_,
                        .overlaps_codecs = self.value % 2 == 0}));
    return executor->run(schedule, position);
  }

  const Plan plan_;
  const CompressorOptions gradients_;
  RankGroup group_;
  std::vector<std::uint64_t> hashes_;  // [Rank]
  Rank absent_{-1};
  double stall_timeout_s_ = 1;
  std::vector<std::unique_ptr<LineStage>> stages_;  // [Rank]
};

}  // namespace motley
