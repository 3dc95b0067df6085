// The simulator compared with the second one, on random plans.
#include <gtest/gtest.h>

#include "partitioner/simulate/simulator.h"
#include "pipeline/schedule/schedules.h"
#include "tests/partitioner/random_step.h"
#include "tests/partitioner/reference_simulator.h"

namespace motley {
namespace {

void expect_near(const std::vector<double>& simulated, const std::vector<double>& expected) {
  RC_ASSERT(simulated.size() == expected.size());
  for (std::size_t r = 0; r < simulated.size(); ++r) {
    RC_ASSERT(std::abs(simulated[r] - expected[r]) < 1e-9 * (1 + expected[r]));
  }
}

RC_GTEST_PROP(ReferenceSimulator, AgreesWithTheSimulator, ()) {
  // At full size: most plans then have replicas and shared links.
  const RandomStep random = *rc::gen::noShrink(
      rc::gen::resize(rc::kNominalSize, rc::gen::exec([] { return random_step(3); })));
  const auto cost = CostModel::make(random.model, random.cluster, random.profile, 1,
                                    {.moments_per_parameter = 2}, random.plan.gradient_codec);
  RC_ASSERT(cost.ok());
  const auto slots = slots_of_ranks(random.plan, *cost);
  RC_ASSERT(slots.ok());
  const auto schedule = make_schedule(random.plan, false);
  RC_ASSERT(schedule.ok());
  const auto step = simulate_step(*schedule, random.plan, random.model, *cost, *slots);
  RC_ASSERT(step.ok());
  const ReferenceStep expected =
      reference_step(*schedule, random.plan, random.model, *cost, *slots);
  expect_near({step->step_s}, {expected.step_s});
  expect_near(step->compute_s, expected.compute_s);
  expect_near(step->codec_s, expected.codec_s);
  expect_near(step->wait_s, expected.wait_s);
}

}  // namespace
}  // namespace motley
