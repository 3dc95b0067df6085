// StageTrainer with its state and votes, run by executors of ranks in threads.
#include "training/stage_trainer.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <c10/core/InferenceMode.h>

#include "models/device/dtype_support.h"
#include "models/kernels/torch_threads.h"
#include "partitioner/search/planner.h"
#include "pipeline/execute/executor.h"
#include "pipeline/schedule/schedules.h"
#include "tests/support/dealt_plan.h"
#include "tests/support/far/far_device.h"
#include "tests/support/rank_group.h"
#include "tests/support/tested_device.h"
#include "training/device_stage_clock.h"
#include "training/first_state.h"
#include "training/vote/step_voter.h"

namespace motley {
namespace {

using testing::HasSubstr;

constexpr int kMicroBatches = 4;

Config small_config() {
  Config config;
  config.model.layers = 2;
  config.model.width = 32;
  config.model.heads = 4;
  config.model.context = 16;
  config.model.vocab = 61;
  config.data.kind = "synthetic";
  config.train.global_batch = kMicroBatches;
  config.train.warmup_steps = 2;
  return config;
}

struct Shape {
  std::vector<std::vector<Replica>> chunks;  // [ChunkId]
  std::string schedule = "1f1b";
  bool recompute = false;
  std::string codec = "none";
};

Plan plan_of(const ModelSpec& model, const Shape& shape) {
  Plan plan = dealt_plan(model, shape.chunks);
  for (ChunkPlan& chunk : plan.chunks) {
    chunk.recompute = shape.recompute;
    chunk.codec = shape.codec;
  }
  for (RankPlan& rank : plan.ranks) rank = {.machine = "a", .device = "cpu"};
  plan.micro_batches = kMicroBatches;
  plan.schedule = shape.schedule;
  return plan;
}

// The objects of a rank, as in the worker.
struct TrainedRank {
  std::unique_ptr<StageTrainer> trainer;
  std::optional<StageState> state;
  std::optional<StepVoter> voter;
  std::unique_ptr<StageClock> clock = stage_clock_of(tested_device());
  std::vector<StepTimes> times;  // of every run so far
  std::vector<double> run_s;     // by the host's clock
  TraceRecorder trace{10000};

  TrainedRank(const Config& config,
              const Plan& plan,
              Rank self,
              const ModelSpec& model,
              const std::optional<GradientScale>& scale) {
    ProgressCounter work;
    trainer = StageTrainer::make(config, plan, self, model, work, tested_device()).value();
    state.emplace(trainer->held(), trainer->make_memory(), model.tied_pair()->parameter);
    CheckpointState progress = fill_state(*state, config, model, "", work).value();
    if (scale) progress.gradient_scale = scale;
    voter.emplace(
        config.train, static_cast<int>(model.layers.size()),
        copy_groups(plan, tied_across_ranks(model, plan)), self, [this] { return trainer->loss(); },
        *state, std::move(progress));
  }
};

// The ranks of a plan.
class Training {
 public:
  // `scale`: the gradient scale in fp16; without it, that of a new run.
  explicit Training(const Shape& shape,
                    const Config& config = small_config(),
                    const std::optional<GradientScale>& scale = {})
      : config_(config),
        model_(describe_model(config.model).value()),
        plan_(plan_of(model_, shape)),
        group_("inproc", plan_.rank_count()) {
    set_compute_threads(1);
    const c10::InferenceMode no_recording;
    for (Rank rank{0}; rank.value < plan_.rank_count(); ++rank.value) {
      ranks_.push_back(std::make_unique<TrainedRank>(config_, plan_, rank, model_, scale));
    }
  }

  [[nodiscard]] TrainedRank& rank(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }

  // Runs `count` more steps on every rank; returns their results, [Rank].
  std::vector<Result<void>> steps(int count) {
    const bool tied = tied_across_ranks(model_, plan_);
    return run(make_schedule(plan_, tied).value(), /*training=*/true, count);
  }

  std::vector<Result<void>> evaluate() {
    return run(forward_schedule(schedule_input(plan_, /*tied_across_ranks=*/false)),
               /*training=*/false, 1);
  }

  // Every parameter of the model, from the first replica.
  [[nodiscard]] std::map<std::string, std::vector<float>> parameters() const {
    std::map<std::string, std::vector<float>> all;
    for (const auto& rank : ranks_) {
      for (const TensorView& view : rank->state->parameter_views()) {
        all[view.name] = {view.values.begin(), view.values.end()};
      }
    }
    return all;
  }

 private:
  std::vector<Result<void>> run(const Schedule& schedule, bool training, int count) {
    std::vector<Result<void>> ended(ranks_.size());
    group_.run([&](Rank self) {
      const c10::InferenceMode no_recording;
      set_compute_threads(1);
      TrainedRank& mine = *ranks_[self.index()];
      FrameLink link(group_.at(self), self, 1, plan_hash(plan_));
      Activity activity;
      const auto executor =
          Executor::make(self, plan_, link,
                         {*mine.trainer, *mine.state, *mine.voter, mine.clock.get()}, activity, {});
      (*executor)->record(&mine.trace);
      for (int i = 0; i < count && ended[self.index()].ok(); ++i) {
        const CheckpointState& progress = mine.voter->progress();
        const double start_s = now_s();
        const auto times =
            (*executor)->run(schedule, {progress.step + 1, training, progress.samples,
                                        progress.gradient_scale.value_or(GradientScale{}).value});
        if (times.ok()) {
          mine.times.push_back(*times);
          mine.run_s.push_back(now_s() - start_s);
        } else {
          ended[self.index()] = times.error();
        }
      }
      (*executor)->record(nullptr);
    });
    return ended;
  }

  const Config config_;
  const ModelSpec model_;
  const Plan plan_;
  RankGroup group_;
  std::vector<std::unique_ptr<TrainedRank>> ranks_;
};

void expect_ok(const std::vector<Result<void>>& ended) {
  for (const auto& each : ended) EXPECT_TRUE(each.ok()) << describe(each.error());
}

// A function of the far device; nullptr if the tests run on another device.
template <class Function>
Function* far_function(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

// The far device's counters, if it is the tested device.
std::optional<MotleyFarCounters> far_counters() {
  if (tested_device().is_host()) return std::nullopt;
  const auto read = far_function<void(MotleyFarCounters*)>("motley_far_counters");
  if (read == nullptr) return std::nullopt;
  MotleyFarCounters now;
  read(&now);
  return now;
}

const Shape kAlone{.chunks = {{{Rank{0}, kMicroBatches}}}};

TEST(StageTrainer, LearnsTheSameHoweverTheModelIsCut) {
  Training alone(kAlone);
  const auto untrained = alone.parameters();
  expect_ok(alone.steps(3));
  const auto expected = alone.parameters();
  EXPECT_NE(expected, untrained);
  const std::vector<Replica> first = {{Rank{0}, kMicroBatches}};
  const std::vector<Replica> second = {{Rank{1}, kMicroBatches}};
  const std::vector<Shape> shapes = {
      {.chunks = {first, first, first}},                 // passed directly, without frames
      {.chunks = {first, second}},                       // the tied parameter on two ranks
      {.chunks = {first, second, first}},                // both, and the tied parameter on one
      {.chunks = {first, second}, .schedule = "split"},  // backward in two parts
      {.chunks = {first, first}, .schedule = "split"},   // passed directly, backward in two parts
      {.chunks = {first, second}, .recompute = true},    // forward twice
  };
  for (const Shape& shape : shapes) {
    Training cut(shape);
    expect_ok(cut.steps(3));
    EXPECT_EQ(cut.parameters(), expected) << shape.chunks.size() << " chunks, " << shape.schedule;
    EXPECT_EQ(cut.rank(0).voter->outcome().loss, alone.rank(0).voter->outcome().loss);
  }
}

Config config_in(const std::string& precision) {
  Config config = small_config();
  config.train.precision = precision;
  return config;
}

bool computes_in(at::ScalarType type) {
  return computes_products_in(tested_device(), type);
}

TEST(StageTrainer, LearnsTheSameInBf16HoweverTheModelIsCut) {
  if (!computes_in(at::kBFloat16)) GTEST_SKIP() << "there is no bf16 here";
  Training alone(kAlone, config_in("bf16"));
  expect_ok(alone.steps(3));
  Training exact(kAlone);
  expect_ok(exact.steps(3));
  const double loss = exact.rank(0).voter->outcome().loss;
  EXPECT_NE(alone.rank(0).voter->outcome().loss, loss);
  EXPECT_NEAR(alone.rank(0).voter->outcome().loss, loss, 0.01 * loss);
  const std::vector<Replica> first = {{Rank{0}, kMicroBatches}};
  const std::vector<Replica> second = {{Rank{1}, kMicroBatches}};
  for (const Shape& shape :
       {Shape{.chunks = {first, second}}, Shape{.chunks = {first, second}, .schedule = "split"},
        Shape{.chunks = {first, second}, .recompute = true}}) {
    Training cut(shape, config_in("bf16"));
    expect_ok(cut.steps(3));
    EXPECT_EQ(cut.parameters(), alone.parameters()) << shape.schedule;
  }
}

// With a scale at which every gradient overflows, all ranks skip the same steps until it is small
// enough, change nothing meanwhile, and then train as with a suitable initial scale.
TEST(StageTrainer, RecoversFromOverflowOfFp16OnAllRanksAtOnce) {
  if (!computes_in(at::kHalf)) GTEST_SKIP() << "there is no fp16 here";
  const Shape shape{.chunks = {{{Rank{0}, kMicroBatches}}, {{Rank{1}, kMicroBatches}}}};
  Training pipeline(shape, config_in("fp16"), GradientScale{0x1p24, 0});
  const auto untrained = pipeline.parameters();
  int skipped = 0;
  for (; skipped < 24; ++skipped) {
    expect_ok(pipeline.steps(1));
    const bool is_skipped = pipeline.rank(0).voter->outcome().skipped;
    EXPECT_EQ(pipeline.rank(1).voter->outcome().skipped, is_skipped);
    EXPECT_EQ(pipeline.rank(0).voter->progress().gradient_scale,
              pipeline.rank(1).voter->progress().gradient_scale);
    if (!is_skipped) break;
    EXPECT_EQ(pipeline.parameters(), untrained);
  }
  EXPECT_GT(skipped, 2);
  EXPECT_LT(skipped, 24);
  const double fitting = 0x1p24 / static_cast<double>(1 << skipped);
  EXPECT_EQ(pipeline.rank(0).voter->progress().gradient_scale, (GradientScale{fitting, 1}));
  EXPECT_EQ(pipeline.rank(0).voter->progress().optimizer_updates, 1);
  EXPECT_NE(pipeline.parameters(), untrained);
  const double loss = pipeline.rank(0).voter->outcome().loss;
  EXPECT_NEAR(loss, std::log(61), 0.2);
}

TEST(StageTrainer, LearnsTheSameInFp16HoweverTheModelIsCut) {
  if (!computes_in(at::kHalf)) GTEST_SKIP() << "there is no fp16 here";
  Training alone(kAlone, config_in("fp16"));
  expect_ok(alone.steps(3));
  Training cut({.chunks = {{{Rank{0}, kMicroBatches}}, {{Rank{1}, kMicroBatches}}}},
               config_in("fp16"));
  expect_ok(cut.steps(3));
  EXPECT_EQ(cut.parameters(), alone.parameters());
}

TEST(StageTrainer, KeepsReplicasEqual) {
  Training replicas({.chunks = {{{Rank{0}, 3}, {Rank{1}, 1}}}});
  expect_ok(replicas.steps(3));
  const CopyGroup group{ChunkId{0}, {Rank{0}, Rank{1}}};
  EXPECT_EQ(replicas.rank(0).state->copy_hash(group), replicas.rank(1).state->copy_hash(group));
}

// One bit of a parameter differs on one replica. Rank 1 may only see that rank 0 is lost.
TEST(StageTrainer, FindsAReplicaWithAnotherParameter) {
  if (!tested_device().is_host()) GTEST_SKIP() << "only the host's memory can be written to here";
  Training replicas({.chunks = {{{Rank{0}, 2}, {Rank{1}, 2}}}});
  float& value = replicas.rank(1).trainer->held().front().parameters.front().values[5];
  value = std::nextafter(value, 1.0F);
  const auto ended = replicas.steps(1);
  for (const auto& each : ended) ASSERT_FALSE(each.ok());
  EXPECT_EQ(ended[0].error().code, ErrorCode::kInternal);
  EXPECT_THAT(ended[0].error().what, HasSubstr("chunk 0"));
}

TEST(StageTrainer, FindsAnotherCopyOfTheTiedParameter) {
  if (!tested_device().is_host()) GTEST_SKIP() << "only the host's memory can be written to here";
  Training pipeline({.chunks = {{{Rank{0}, kMicroBatches}}, {{Rank{1}, kMicroBatches}}}});
  for (const HeldParameter& parameter : pipeline.rank(1).trainer->held().back().parameters) {
    if (parameter.spec.tied_use) parameter.values[3] += 1;
  }
  const auto ended = pipeline.steps(1);
  for (const auto& each : ended) ASSERT_FALSE(each.ok());
  EXPECT_EQ(ended[0].error().code, ErrorCode::kInternal);
  EXPECT_THAT(ended[0].error().what, HasSubstr("the tied parameter"));
}

TEST(StageTrainer, ChangesNothingInAnEvaluation) {
  Training alone(kAlone);
  const auto before = alone.parameters();
  expect_ok(alone.evaluate());
  EXPECT_EQ(alone.parameters(), before);
  EXPECT_EQ(alone.rank(0).voter->tally().count, kMicroBatches * 16);
  EXPECT_NEAR(alone.rank(0).voter->outcome().loss, std::log(61), 0.2);
  EXPECT_EQ(alone.rank(0).voter->progress().step, 0);
}

TEST(StageTrainer, HoldsDataOnlyWhereTheModelBegins) {
  Training pipeline({.chunks = {{{Rank{0}, kMicroBatches}}, {{Rank{1}, kMicroBatches}}}});
  EXPECT_NE(pipeline.rank(0).trainer->source(), nullptr);
  EXPECT_EQ(pipeline.rank(1).trainer->source(), nullptr);
}

// Passed values stay valid as long as they are needed, even if all others release their owner.
TEST(StageTrainer, KeepsTheOwnerOfWhatItIsHanded) {
  if (!tested_device().is_host()) GTEST_SKIP() << "only the host's memory can be written to here";
  Training two({.chunks = {{{Rank{0}, kMicroBatches}}, {{Rank{0}, kMicroBatches}}}});
  const c10::InferenceMode no_recording;
  StageTrainer& trainer = *two.rank(0).trainer;
  trainer.begin({});
  const MicroId micro{0};
  (void)trainer.load(micro);
  OwnedBoundary output = trainer.forward(ChunkId{0}, micro);
  ASSERT_EQ(static_cast<std::int64_t>(output.values.size()),
            trainer.boundary_size(ChunkId{0}).floats);
  const std::weak_ptr<const void> owner = output.owner;
  trainer.hand_over_locally({ValueKind::kActivation, ChunkId{1}, micro}, std::move(output));
  EXPECT_FALSE(owner.expired());
  (void)trainer.forward(ChunkId{1}, micro);
  EXPECT_GT(trainer.loss().count, 0);
  trainer.begin({});
  EXPECT_TRUE(owner.expired());
}

TEST(StageTrainer, RefusesValuesOfAnotherSize) {
  if (!tested_device().is_host()) GTEST_SKIP() << "only the host's memory can be written to here";
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // LibTorch has its own threads
  Training two({.chunks = {{{Rank{0}, kMicroBatches}}, {{Rank{0}, kMicroBatches}}}});
  std::vector<float> few(3);
  EXPECT_DEATH(two.rank(0).trainer->hand_over_locally(
                   {ValueKind::kActivation, ChunkId{1}, MicroId{0}}, {{few, nullptr, {}}, {}}),
               "3 floats for a boundary");
}

// Otherwise the device is idle while the host prepares the next operations.
TEST(StageTrainer, WaitsForADeviceOnceAStep) {
  if (!far_counters()) GTEST_SKIP() << "waits are not counted";
  Training alone(kAlone);
  expect_ok(alone.steps(1));
  const std::uint64_t before = far_counters()->host_waits;
  expect_ok(alone.steps(3));
  const int at_the_end_of_the_trace = alone.rank(0).clock == nullptr ? 0 : 1;
  EXPECT_EQ(far_counters()->host_waits - before, 3 + at_the_end_of_the_trace);
}

// A chain that ends in zstd is encoded only on the host, with the same values.
TEST(StageTrainer, SendsWhatADeviceEncodesLikeWhatTheHostDoes) {
  constexpr std::uint64_t kBoundaryFloats = 16 * 32;

  struct Codec {
    std::string name;
    std::uint64_t saved_bytes;  // relative to the floats of a boundary
  };

  for (const auto& [codec, saved_bytes] :
       {Codec{"fp16", kBoundaryFloats * 2}, Codec{"bf16", kBoundaryFloats * 2},
        Codec{"int8", kBoundaryFloats * 3 - 4 * kBoundaryFloats / 128}}) {
    SCOPED_TRACE(codec);
    std::map<std::string, std::vector<float>> learned[2];
    std::uint64_t down[2] = {0, 0};
    std::uint64_t up[2] = {0, 0};
    for (const int by_host : {0, 1}) {
      Training pipeline({.chunks = {{{Rank{0}, kMicroBatches}}, {{Rank{1}, kMicroBatches}}},
                         .codec = by_host == 1 ? codec + "|zstd(1)" : codec});
      expect_ok(pipeline.steps(1));
      const auto before = far_counters();
      expect_ok(pipeline.steps(1));
      const auto after = far_counters();
      if (after) down[by_host] = after->bytes_from_device - before->bytes_from_device;
      if (after) up[by_host] = after->bytes_to_device - before->bytes_to_device;
      learned[by_host] = pipeline.parameters();
    }
    EXPECT_EQ(learned[0], learned[1]);
    const std::uint64_t crossing = far_counters() ? 2 * kMicroBatches : 0;
    EXPECT_EQ(down[1] - down[0], crossing * saved_bytes);
    EXPECT_EQ(up[1] - up[0], crossing * saved_bytes);
  }
}

// The host submits the whole batch to a slow device at once; the reported times are the device's.
TEST(StageTrainer, TimesAreThoseOfTheDeviceThatComputes) {
  const auto slow_down = far_function<void(double)>("motley_far_slow_down");
  if (tested_device().is_host() || slow_down == nullptr) GTEST_SKIP() << "no far device";
  Training alone(kAlone);
  if (alone.rank(0).clock == nullptr) GTEST_SKIP() << "its events have no times";
  expect_ok(alone.steps(2));
  alone.rank(0).times.clear();
  alone.rank(0).run_s.clear();
  const std::size_t first_span = alone.rank(0).trace.spans().size();
  constexpr double kOperation_s = 200e-6;
  slow_down(kOperation_s);
  expect_ok(alone.steps(3));
  slow_down(0);
  double compute_s = 0;
  double run_s = 0;
  for (std::size_t i = 0; i < alone.rank(0).times.size(); ++i) {
    const StepTimes& times = alone.rank(0).times[i];
    compute_s += times.compute_s;
    run_s += alone.rank(0).run_s[i];
    EXPECT_LT(times.wait_s.total(), 0.1 * alone.rank(0).run_s[i]);
  }
  EXPECT_GT(compute_s, 0.8 * run_s);
  EXPECT_GT(alone.rank(0).times.back().optimizer_s, 10 * kOperation_s);
  // Forward and backward actions follow each other: the time is not all attributed to the vote,
  // which waits for them.
  std::map<char, double> span_s;
  double end_s = 0;
  const auto& spans = alone.rank(0).trace.spans();
  for (auto span = spans.begin() + static_cast<std::ptrdiff_t>(first_span); span != spans.end();
       ++span) {
    span_s[span->name.front()] += span->duration_s;
    EXPECT_GE(span->start_s, end_s - 1e-6) << span->name;
    end_s = span->start_s + span->duration_s;
  }
  EXPECT_GT(span_s['F'], 3 * kMicroBatches * 20 * kOperation_s);
  EXPECT_GT(span_s['B'], span_s['F']);
  EXPECT_LT(span_s['V'], span_s['F']);
}

}  // namespace
}  // namespace motley
