#include "plan/links.h"

#include <functional>

#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/plan/value_fixtures.h"

namespace motley {
namespace {

std::string verdict(const std::function<void(Json&)>& change) {
  Json json = links_to_json(both_ways());
  change(json);
  const auto links = parse_links(json.dump(), "l.json");
  if (links.ok()) return "accepted";
  EXPECT_EQ(links.error().code, ErrorCode::kCorrupt);
  return links.error().cause;
}

Cluster two_machines() {
  Cluster cluster = local_cluster(1);
  cluster.machines.front().name = "fast";
  cluster.machines.push_back(cluster.machines.front());
  cluster.machines.back().name = "slow";
  return cluster;
}

TEST(Links, ReadBackExactly) {
  const auto links = parse_links(links_to_json(both_ways()).dump(), "l.json");
  ASSERT_TRUE(links.ok()) << describe(links.error());
  EXPECT_EQ(*links, both_ways());
}

TEST(Links, RefuseImpossibleValues) {
  const auto link = [](Json& j) -> Json& { return j["links"][0]; };
  EXPECT_EQ(verdict([](Json&) {}), "accepted");
  EXPECT_NE(verdict([&](Json& j) { link(j)["bandwidth_bytes_per_s"] = 0; }), "accepted");
  EXPECT_NE(verdict([&](Json& j) { link(j)["bandwidth_bytes_per_s"] = 1e16; }), "accepted");
  EXPECT_NE(verdict([&](Json& j) { link(j)["latency_s"] = -1e-9; }), "accepted");
  EXPECT_NE(verdict([&](Json& j) { link(j)["jitter_p95_s"] = 61; }), "accepted");
  EXPECT_NE(verdict([&](Json& j) { link(j)["to"] = "fast"; }), "accepted");
  EXPECT_NE(verdict([&](Json& j) { link(j)["from"] = "a b"; }), "accepted");
  EXPECT_NE(verdict([&](Json& j) { link(j).erase("latency_s"); }), "accepted");
  EXPECT_NE(verdict([&](Json& j) { j["links"].push_back(link(j)); }), "accepted");
  EXPECT_NE(verdict([](Json& j) { j["version"] = 2; }), "accepted");
}

TEST(Links, ReplaceTheFiguresOfTheCluster) {
  Cluster cluster = two_machines();
  cluster.links = {{"fast", "slow", {1, 1}}};
  ASSERT_TRUE(apply_links(cluster, both_ways()).ok());
  EXPECT_EQ(cluster.links.size(), 2U);
  EXPECT_EQ(cluster.link("fast", "slow"), both_ways()[0].speed);
  EXPECT_EQ(cluster.link("slow", "fast"), both_ways()[1].speed);
}

TEST(Links, MustNameMachinesOfTheCluster) {
  Cluster cluster = two_machines();
  const auto applied = apply_links(cluster, {{"fast", "gone", {1, 1}, 0}});
  ASSERT_FALSE(applied.ok());
  EXPECT_EQ(applied.error().code, ErrorCode::kConfig);
  EXPECT_NE(applied.error().what.find("gone"), std::string::npos);
}

}  // namespace
}  // namespace motley
