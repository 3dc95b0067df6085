#include "partitioner/plan.h"

#include <functional>

#include "base/json.h"
#include "tests/partitioner/value_fixtures.h"
#include "tests/support/property.h"

namespace motley {
namespace {

// What reading says of a plan with one change made to its JSON.
std::string verdict(const std::function<void(Json&)>& change) {
  Json json = plan_to_json(two_stages());
  json.erase("hash");
  change(json);
  const auto plan = plan_from_json(json, "p.json");
  if (plan.ok()) return "accepted";
  EXPECT_EQ(plan.error().code, ErrorCode::kConfig);
  return plan.error().cause;
}

TEST(PlanJson, ReadsBackExactly) {
  const Json json = plan_to_json(two_stages());
  const auto plan = plan_from_json(*parse_json(json.dump(), "p.json"), "p.json");
  ASSERT_TRUE(plan.ok()) << describe(plan.error());
  EXPECT_EQ(plan_to_json(*plan), json);
  EXPECT_EQ(plan_hash(*plan), plan_hash(two_stages()));
}

TEST(PlanJson, RefusesAChangeUnderItsHash) {
  Json json = plan_to_json(two_stages());
  json["micro_batch"] = 2;
  EXPECT_FALSE(plan_from_json(json, "p.json").ok());
  json.erase("hash");
  EXPECT_TRUE(plan_from_json(json, "p.json").ok());
}

TEST(PlanJson, RefusesContradictions) {
  EXPECT_EQ(verdict([](Json&) {}), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["chunks"][1]["first_layer"] = 2; }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["chunks"][1]["layer_count"] = 0; }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["chunks"][1]["rank"] = 2; }), "accepted");
  EXPECT_EQ(verdict([](Json& j) { j["chunks"][1]["rank"] = 0; }), "rank 1 has no chunk");
  EXPECT_NE(verdict([](Json& j) { j["ranks"] = Json::array(); }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["ranks"][0]["threads"] = 0; }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["ranks"][0]["machine"] = "a;rm"; }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["schedule"] = "zigzag"; }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["micro_batches"] = -1; }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["version"] = 2; }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["notes"] = {1}; }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j = Json::array(); }), "accepted");
}

TEST(PlanJson, NeedsEveryKey) {
  const Json whole = plan_to_json(two_stages());
  for (const auto& [key, value] : whole.items()) {
    if (key == "hash") continue;
    EXPECT_NE(verdict([&key = key](Json& j) { j.erase(key); }), "accepted") << key;
  }
}

TEST(PlanHash, CountsDecisionsAndNotPredictions) {
  Plan plan = two_stages();
  plan.predicted_step_s = 9;
  plan.ranks[0].compute_s = 9;
  plan.notes.clear();
  EXPECT_EQ(plan_hash(plan), plan_hash(two_stages()));
  plan.chunks[0].codec = "none";
  EXPECT_NE(plan_hash(plan), plan_hash(two_stages()));
}

}  // namespace
}  // namespace motley
