// Any order that the validator accepts can be executed, and gives the results of one rank that
// runs everything in the simplest order.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "pipeline/schedule/validate.h"
#include "tests/pipeline/line_pipeline.h"
#include "tests/pipeline/random_order.h"
#include "tests/support/property.h"

namespace motley {
namespace {

using Owners = std::vector<std::vector<Rank>>;

constexpr BatchPosition kPosition{1, true, 11};
constexpr double kStallTimeout_s = 60;  // for a busy computer; no wait should reach it

struct Setting {
  Owners owners;
  int rank_count = 1;
  bool training = true;
  bool tied = false;  // and on several ranks
};

// The layers divided among the chunks, with these owners.
Plan plan_of(const Setting& setting) {
  std::vector<std::vector<Replica>> replicas;
  for (const std::vector<Rank>& owners : setting.owners) {
    auto& group_members = replicas.emplace_back();
    for (const Rank rank : distinct_ranks(owners)) {
      group_members.push_back({rank, static_cast<int>(std::ranges::count(owners, rank))});
    }
  }
  Plan plan = replicated_line_plan(std::move(replicas),
                                   static_cast<int>(setting.owners.front().size()), "1f1b");
  plan.ranks.resize(static_cast<std::size_t>(setting.rank_count));
  return plan;
}

// Runs the same chunks on one rank, without an executor.
LineStage run_alone(const Setting& setting) {
  Setting alone = setting;
  for (std::vector<Rank>& owners : alone.owners) std::ranges::fill(owners, Rank{0});
  LineStage stage(plan_of(alone), Rank{0});
  stage.begin(kPosition);
  const auto chunks = static_cast<int>(setting.owners.size());
  const auto micros = static_cast<int>(setting.owners.front().size());
  for (MicroId m{0}; m.value < micros; ++m.value) {
    (void)stage.load(m);
    for (ChunkId c{0}; c.value < chunks; ++c.value) {
      OwnedBoundary output = stage.forward(c, m);
      if (c.value + 1 < chunks)
        stage.hand_over_locally({ValueKind::kActivation, ChunkId{c.value + 1}, m}, output);
    }
  }
  for (MicroId m{0}; setting.training && m.value < micros; ++m.value) {
    for (ChunkId c{chunks - 1}; c.value >= 0; --c.value) {
      OwnedBoundary gradient = stage.backward(c, m, BackwardPart::kWhole, nullptr);
      if (c.value > 0)
        stage.hand_over_locally({ValueKind::kGradient, ChunkId{c.value - 1}, m}, gradient);
    }
  }
  return stage;
}

// All-reduces add in another order; each sum has a few terms of at most this size.
bool is_near(float value, float expected, float largest) {
  return std::abs(value - expected) <= 1e-5F * largest;
}

float largest_gradient(LineStage& alone, int chunks) {
  float largest = 0;
  for (ChunkId c{0}; c.value < chunks; ++c.value) {
    for (const LineLayer& layer : alone.layers_of(c)) {
      largest = std::max({largest, std::abs(layer.gradient_a), std::abs(layer.gradient_b)});
    }
  }
  return largest;
}

// Empty, or the first difference.
std::string compare_gradients(LinePipeline& pipeline, LineStage& alone, const Setting& setting) {
  const auto chunks = static_cast<int>(setting.owners.size());
  const float largest = largest_gradient(alone, chunks);
  const auto all = [&](ChunkId chunk) { return alone.layers_of(chunk); };
  const float tied = all({0}).front().gradient_a + all({chunks - 1}).back().gradient_b;
  for (ChunkId c{0}; c.value < chunks; ++c.value) {
    const std::vector<LineLayer> expected = all(c);
    for (const Rank rank : distinct_ranks(setting.owners[c.index()])) {
      LineStage& stage = pipeline.stage(rank);
      const bool is_end = c.value == 0 || c.value + 1 == chunks;
      if (setting.tied && is_end && !is_near(stage.tied_gradient()[0], tied, largest)) {
        return fmt::format("tied gradient on rank {}", rank.value);
      }
      const std::vector<LineLayer> found = stage.layers_of(c);
      for (std::size_t l = 0; l < found.size(); ++l) {
        const bool tied_a = setting.tied && c.value == 0 && l == 0;
        const bool tied_b = setting.tied && c.value + 1 == chunks && l + 1 == found.size();
        if ((!tied_a && !is_near(found[l].gradient_a, expected[l].gradient_a, largest)) ||
            (!tied_b && !is_near(found[l].gradient_b, expected[l].gradient_b, largest))) {
          return fmt::format("gradients of chunk {}, layer {} on rank {}", c.value, l, rank.value);
        }
      }
      if (!stage.stepped()) return fmt::format("rank {} did not step", rank.value);
    }
  }
  return "";
}

std::string compare_values(LinePipeline& pipeline, LineStage& alone, const Setting& setting) {
  for (ChunkId c{0}; c.index() < setting.owners.size(); ++c.value) {
    const bool is_last = c.index() + 1 == setting.owners.size();
    for (MicroId m{0}; m.index() < setting.owners.front().size(); ++m.value) {
      LineStage& stage = pipeline.stage(setting.owners[c.index()][m.index()]);
      const bool same = stage.input(c, m) == alone.input(c, m) &&
                        stage.output(c, m) == alone.output(c, m) &&
                        stage.input_gradient(c, m) == alone.input_gradient(c, m) &&
                        (!(setting.training || is_last) ||
                         stage.output_gradient(c, m) == alone.output_gradient(c, m));
      if (!same) return fmt::format("chunk {}, micro-batch {}", c.value, m.value);
    }
  }
  return "";
}

// Runs a schedule that the validator accepted. Returns "" or the error.
std::string run_and_compare(const Setting& setting, const Schedule& schedule) {
  LinePipeline pipeline(plan_of(setting));
  pipeline.wait_up_to(kStallTimeout_s);
  if (setting.tied) pipeline.tie();
  for (const auto& outcome : pipeline.run(schedule, kPosition)) {
    if (!outcome->ok()) return describe(outcome->error());
  }
  LineStage alone = run_alone(setting);
  for (Rank rank{0}; rank.value < setting.rank_count; ++rank.value) {
    const double loss = pipeline.stage(rank).loss_sum();
    if (std::abs(loss - alone.loss_sum()) > 1e-9 * alone.loss_sum()) {
      return fmt::format("loss {} instead of {}", loss, alone.loss_sum());
    }
  }
  std::string difference = compare_values(pipeline, alone, setting);
  if (difference.empty() && setting.training) {
    difference = compare_gradients(pipeline, alone, setting);
  }
  return difference;
}

// As run_and_compare, or the validator's error.
std::string validate_and_run(const std::string& text) {
  const auto schedule = parse_schedule(text, "s");
  if (!schedule.ok()) return describe(schedule.error());
  const auto stats = validate_schedule(*schedule, /*tied_across_ranks=*/false);
  if (!stats.ok()) return describe(stats.error());
  return run_and_compare(
      {schedule->owners, static_cast<int>(schedule->ranks.size()), schedule->name != "forward"},
      *schedule);
}

TEST(ExecutorOrders, TargetsAreSentUnderTheirOwnMicroBatch) {
  EXPECT_EQ(validate_and_run("schedule 1f1b micro_batches=2 owners=0,1\n"
                             "rank 0: RG0.0 RG0.1 L0 L1 ST0 ST1 F0.0 SA0.0 F0.1 SA0.1 B0.0 B0.1 "
                             "V S\n"
                             "rank 1: RT0 RA1.0 RT1 RA1.1 F1.0 B1.0 SG1.0 F1.1 B1.1 SG1.1 V S"),
            "");
}

TEST(ExecutorOrders, WhatIsMadeIsKeptUntilItIsSent) {
  EXPECT_EQ(validate_and_run("schedule 1f1b micro_batches=2 owners=0,1\n"
                             "rank 0: RG0.0 RG0.1 L0 ST0 L1 ST1 F0.0 F0.1 SA0.0 SA0.1 B0.0 B0.1 "
                             "V S\n"
                             "rank 1: RT0 RA1.0 RT1 RA1.1 F1.0 B1.0 F1.1 SG1.0 B1.1 SG1.1 V S"),
            "");
  EXPECT_EQ(validate_and_run("schedule 1f1b micro_batches=2 owners=0,1\n"
                             "rank 0: RG0.0 RG0.1 L1 L0 ST1 F0.0 ST0 F0.1 SA0.1 SA0.0 B0.0 B0.1 "
                             "V S\n"
                             "rank 1: RA1.0 RT0 F1.0 RT1 RA1.1 F1.1 B1.0 B1.1 SG1.1 SG1.0 V S"),
            "");
}

// Receives may be posted long after their messages have arrived.
TEST(ExecutorOrders, ReceivesMayBePostedLate) {
  EXPECT_EQ(validate_and_run("schedule 1f1b micro_batches=2 owners=0,1\n"
                             "rank 0: L0 ST0 F0.0 SA0.0 L1 ST1 F0.1 SA0.1 RG0.1 RG0.0 B0.0 B0.1 "
                             "V S\n"
                             "rank 1: RT1 RA1.1 RT0 RA1.0 F1.0 F1.1 BI1.0 SG1.0 BI1.1 SG1.1 BW1.0 "
                             "BW1.1 V S"),
            "");
}

Setting random_setting() {
  Setting setting;
  setting.rank_count = *rc::gen::inRange(1, 5);
  const int chunks = *rc::gen::inRange(1, 6);
  const int micros = *rc::gen::inRange(1, 6);
  const bool replicas = *rc::gen::arbitrary<bool>();
  for (int c = 0; c < chunks; ++c) {
    const Rank rank{*rc::gen::inRange(0, setting.rank_count)};
    auto& owners = setting.owners.emplace_back(static_cast<std::size_t>(micros), rank);
    if (!replicas) continue;
    for (Rank& owner : owners) owner = {*rc::gen::inRange(0, setting.rank_count)};
  }
  setting.training = *rc::gen::inRange(0, 8) > 0;
  const Schedule ends{"", micros, setting.owners, {}};
  setting.tied = setting.training && ends.end_ranks().size() > 1 && *rc::gen::arbitrary<bool>();
  return setting;
}

Schedule random_order(const Setting& setting) {
  return RandomOrder(setting.owners, setting.rank_count, setting.training, setting.tied,
                     *rc::gen::arbitrary<std::uint64_t>())
      .draw();
}

RC_GTEST_PROP(ExecutorOrders, AnyLegalOrderIsAcceptedAndComputesTheSame, ()) {
  const Setting setting = random_setting();
  const Schedule schedule = random_order(setting);
  const auto stats = validate_schedule(schedule, setting.tied);
  if (!stats.ok()) RC_FAIL(describe(stats.error()));
  const std::string wrong = run_and_compare(setting, schedule);
  if (!wrong.empty()) RC_FAIL(wrong + "\n" + to_text(schedule));
}

// Swaps, drops, duplicates or moves actions, within a rank or to another.
void disturb(Schedule& schedule, std::mt19937_64& random) {
  const auto any_rank = [&]() -> std::vector<Action>& {
    return schedule.ranks[random() % schedule.ranks.size()];
  };
  const auto any_place = [&](std::size_t count) {
    return static_cast<std::ptrdiff_t>(random() % count);
  };
  std::vector<Action>& from = any_rank();
  if (from.empty()) return;
  const auto at = from.begin() + any_place(from.size());
  const Action action = *at;
  switch (random() % 8) {
    case 0:
      from.erase(at);
      return;
    case 1:
      from.insert(from.begin() + any_place(from.size() + 1), action);
      return;
    case 2: {
      from.erase(at);
      std::vector<Action>& to = any_rank();
      to.insert(to.begin() + any_place(to.size() + 1), action);
      return;
    }
    case 3:
      std::swap(*at, from[random() % from.size()]);
      return;
    default:
      // Swaps neighbours, which is often valid.
      if (at + 1 != from.end()) std::swap(*at, *(at + 1));
      return;
  }
}

RC_GTEST_PROP(ExecutorOrders, WhateverIsAcceptedComputesTheSame, ()) {
  const Setting setting = random_setting();
  Schedule schedule = random_order(setting);
  std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
  const auto disturbances = *rc::gen::inRange(1, 4);
  for (int i = 0; i < disturbances; ++i) disturb(schedule, random);
  const auto stats = validate_schedule(schedule, setting.tied);
  RC_CLASSIFY(stats.ok(), "accepted");
  if (!stats.ok()) {
    // The error names the rank and the action, or what is missing at the end.
    RC_ASSERT(stats.error().what.starts_with("schedule '" + schedule.name + "' is invalid: "));
    return;
  }
  const std::string wrong = run_and_compare(setting, schedule);
  if (!wrong.empty()) RC_FAIL(wrong + "\n" + to_text(schedule));
}

}  // namespace
}  // namespace motley
