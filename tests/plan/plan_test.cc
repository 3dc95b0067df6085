#include "plan/plan.h"

#include <algorithm>
#include <functional>

#include "base/json.h"
#include "tests/plan/value_fixtures.h"
#include "tests/support/property.h"

namespace motley {
namespace {

// The result of parsing a plan with one change to its JSON.
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

// They are informative only: an earlier version reads the same plan.
TEST(PlanJson, TellsTheNumbersOfARankWhereTheyAreNotFp32) {
  Plan plan = two_stages();
  EXPECT_FALSE(plan_to_json(plan)["ranks"][0].contains("numbers"));
  EXPECT_EQ(precision_of(plan), "fp32");
  plan.ranks[1].compute_dtype = "bf16";
  const auto read = plan_from_json(plan_to_json(plan), "p.json");
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(read->ranks[0].compute_dtype, "fp32");
  EXPECT_EQ(read->ranks[1].compute_dtype, "bf16");
  EXPECT_EQ(precision_of(*read), "bf16");
  EXPECT_EQ(plan_hash(*read), plan_hash(two_stages()));
  EXPECT_NE(verdict([](Json& json) {
              json["ranks"][1]["numbers"] = "int3";
            }).find("it is 'int3'; allowed are fp32, bf16, fp16"),
            std::string::npos);
}

// Ranks on any kind of processor compare it.
TEST(PlanJson, HasTheSameHashEverywhere) {
  EXPECT_EQ(plan_hash_text(two_stages()), "2f11f51455c45357");
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
  EXPECT_NE(verdict([](Json& j) { j["ranks"] = Json::array(); }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["ranks"][0]["threads"] = 0; }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["ranks"][0]["machine"] = "a;rm"; }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["schedule"] = "zigzag"; }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["micro_batches"] = -1; }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["version"] = 1; }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["notes"] = {1}; }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j = Json::array(); }), "accepted");
}

TEST(PlanJson, RefusesReplicasThatCannotShareTheStep) {
  const auto replicas = [](const char* text) {
    return verdict([&](Json& j) { j["chunks"][1]["replicas"] = Json::parse(text); });
  };
  EXPECT_EQ(replicas(R"([{"rank": 1, "micro_batches": 8}])"), "accepted");
  EXPECT_EQ(replicas(R"([{"rank": 0, "micro_batches": 8}])"), "rank 1 has no chunk");
  EXPECT_EQ(replicas("[]"), "it has 0 items; 1 to 4096 were expected");
  EXPECT_EQ(replicas(R"([{"rank": 0, "micro_batches": 4}, {"rank": 1, "micro_batches": 3}])"),
            "they have 7 micro-batches; a step has 8");
  for (const char* ranks :
       {R"([{"rank": 1, "micro_batches": 3}, {"rank": 0, "micro_batches": 5}])",
        R"([{"rank": 1, "micro_batches": 3}, {"rank": 1, "micro_batches": 5}])"}) {
    EXPECT_EQ(replicas(ranks), "the ranks of a chunk must ascend, each once");
  }
  EXPECT_NE(replicas(R"([{"rank": 0, "micro_batches": 0}, {"rank": 1, "micro_batches": 8}])"),
            "accepted");
  EXPECT_NE(replicas(R"([{"rank": 2, "micro_batches": 8}])"), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["chunks"][0]["recompute"] = 1; }), "accepted");
}

TEST(PlanJson, RefusesWindowsThatWouldBlock) {
  const auto in_flight = [](int first, int last) {
    return verdict([&](Json& j) {
      j["schedule"] = "1f1b";
      j["chunks"][0]["in_flight"] = first;
      j["chunks"][1]["in_flight"] = last;
    });
  };
  EXPECT_EQ(in_flight(3, 1), "accepted");
  EXPECT_EQ(in_flight(8, 8), "accepted");
  const std::string rule = "; it must not increase, and be 0 in all chunks or in none";
  EXPECT_EQ(in_flight(2, 3), "it is 3 after 2" + rule);
  EXPECT_EQ(in_flight(0, 1), "it is 1 after 0" + rule);
  EXPECT_EQ(in_flight(1, 0), "it is 0 after 1" + rule);
  EXPECT_NE(in_flight(9, 1), "accepted");
  EXPECT_EQ(verdict([](Json& j) {
              j["schedule"] = "gpipe";
              j["chunks"][0]["in_flight"] = 2;
            }),
            "gpipe has no limit; it must be 0");
}

TEST(PlanJson, RefusesQueuesThatMeanNothing) {
  const auto queued = [](const char* schedule, int first, int last) {
    return verdict([&](Json& j) {
      j["schedule"] = schedule;
      j["chunks"][0]["queued_weights"] = first;
      j["chunks"][1]["queued_weights"] = last;
    });
  };
  EXPECT_EQ(queued("split", 1, 3), "accepted");
  EXPECT_EQ(queued("split", 0, 0), "accepted");
  EXPECT_EQ(queued("split", 0, 2), "it is 2 after 0; it must be 0 in all chunks or in none");
  EXPECT_EQ(queued("1f1b", 2, 2), "1f1b queues none; it must be 0");
  EXPECT_NE(queued("split", 9, 9), "accepted");
}

TEST(PlanJson, RefusesTimesThatAreNone) {
  const auto times = [](const Json& forward, const Json& weight) {
    return verdict([&](Json& j) {
      j["chunks"][1]["replicas"][0]["forward_us"] = forward;
      j["chunks"][1]["replicas"][0]["backward_weight_us"] = weight;
    });
  };
  EXPECT_EQ(times(7, 9), "accepted");
  EXPECT_NE(times(0, 9), "accepted");
  EXPECT_NE(times(7, -1), "accepted");
  EXPECT_NE(times(7, 1e18), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["chunks"][1]["replicas"][0].erase("backward_input_us"); }),
            "accepted");
  EXPECT_NE(verdict([](Json& j) { j["chunks"][0]["hop_us"] = -1; }), "accepted");
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
  const auto changed = [](const std::function<void(ChunkPlan&)>& change) {
    Plan other = two_stages();
    change(other.chunks[1]);
    return plan_hash(other) != plan_hash(two_stages());
  };
  EXPECT_TRUE(changed([](ChunkPlan& c) { c.codec = "fp16"; }));
  EXPECT_TRUE(changed([](ChunkPlan& c) { c.recompute = false; }));
  EXPECT_TRUE(changed([](ChunkPlan& c) { c.in_flight = 3; }));
  EXPECT_TRUE(changed([](ChunkPlan& c) { c.queued_weights = 3; }));
  EXPECT_TRUE(changed([](ChunkPlan& c) { c.hop_us = 3; }));
  EXPECT_TRUE(changed([](ChunkPlan& c) { c.replicas[0].times.backward_weight = 3; }));
  EXPECT_TRUE(changed([](ChunkPlan& c) { c.replicas = {{Rank{0}, 4}, {Rank{1}, 4}}; }));
  EXPECT_TRUE(changed([](ChunkPlan& c) { c.replicas = {{Rank{1}, 8}}; }));
}

TEST(MicroBatchOwners, TakeTurnsInProportionToTheirShares) {
  const auto owners = [](std::vector<Replica> replicas) {
    std::string text;
    for (const Rank rank : micro_batch_owners({0, 1, std::move(replicas)})) {
      text += std::to_string(rank.value);
    }
    return text;
  };
  EXPECT_EQ(owners({{Rank{4}, 3}}), "444");
  EXPECT_EQ(owners({{Rank{0}, 2}, {Rank{1}, 2}}), "0101");
  EXPECT_EQ(owners({{Rank{0}, 3}, {Rank{1}, 1}}), "0010");
  EXPECT_EQ(owners({{Rank{0}, 1}, {Rank{1}, 5}, {Rank{2}, 2}}), "12101121");
}

RC_GTEST_PROP(MicroBatchOwners, GiveEachReplicaItsShare, ()) {
  ChunkPlan chunk;
  const int replicas = *rc::gen::inRange(1, 9);
  for (int r = 0; r < replicas; ++r) {
    chunk.replicas.push_back({Rank{r}, *rc::gen::inRange(1, 9)});
  }
  const std::vector<Rank> owners = micro_batch_owners(chunk);
  for (const Replica& replica : chunk.replicas) {
    RC_ASSERT(std::ranges::count(owners, replica.rank) == replica.micro_batches);
  }
}

}  // namespace
}  // namespace motley
