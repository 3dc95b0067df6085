#include "plan/links.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

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

// After the removal of a machine the others need not be measured again.
TEST(Links, OfMachinesThatAreGoneArePassedOver) {
  Cluster cluster = two_machines();
  Links links = both_ways();
  links.push_back({"gone", "fast", {1, 1}, 0});
  ASSERT_TRUE(apply_links(cluster, links).ok());
  EXPECT_EQ(cluster.link("fast", "slow"), both_ways()[0].speed);
  cluster.machines.pop_back();
  EXPECT_TRUE(apply_links(cluster, links).ok()) << "one that is left has no links";
}

TEST(Links, MustNameMachinesOfTheCluster) {
  Cluster cluster = two_machines();
  const auto applied = apply_links(cluster, {{"fast", "gone", {1, 1}, 0}});
  ASSERT_FALSE(applied.ok());
  EXPECT_EQ(applied.error().code, ErrorCode::kConfig);
  EXPECT_NE(applied.error().what.find("gone"), std::string::npos);
}

TEST(Links, SayWhetherDirectionsTakeTurns) {
  Links links = both_ways();
  for (MeasuredLink& link : links) link.turns = 0.25;
  EXPECT_EQ(*parse_links(links_to_json(links).dump(), "l.json"), links);
  const auto link = [](Json& j) -> Json& { return j["links"][0]; };
  EXPECT_EQ(verdict([&](Json& j) { link(j)["turns"] = 1; }), "accepted");
  EXPECT_NE(verdict([&](Json& j) { link(j)["turns"] = 1.5; }), "accepted");
  EXPECT_NE(verdict([&](Json& j) { link(j)["turns"] = "yes"; }), "accepted");
}

// Bytes per second of each pair, in both directions; `turns` of each pair.
struct MeasuredPair {
  std::string one;
  std::string other;
  double speed = 0;
  double turns = 0;
};

Links links_of(const std::vector<MeasuredPair>& pairs) {
  Links links;
  for (const MeasuredPair& pair : pairs) {
    links.push_back({pair.one, pair.other, {pair.speed, 0}, 0, pair.turns});
    links.push_back({pair.other, pair.one, {pair.speed, 0}, 0, pair.turns});
  }
  return links;
}

using Media = std::map<std::string, std::string>;

TEST(MediaOf, AreThoseOfMachinesAllOfWhoseWaysTakeTurns) {
  EXPECT_EQ(media_of(links_of({{"a", "b", 100, 0.1}, {"a", "c", 30, 0.9}, {"b", "c", 30, 0.9}})),
            Media({{"c", "c"}}));
  EXPECT_EQ(media_of(links_of({{"a", "b", 100, 0.1}, {"a", "c", 100, 0.2}, {"b", "c", 90, 0}})),
            Media());
  EXPECT_EQ(media_of(links_of({{"a", "b", 7e9, 1}})), Media()) << "one computer";
  Links not_measured = links_of({{"a", "b", 100, 1}});
  for (MeasuredLink& link : not_measured) link.turns.reset();
  EXPECT_EQ(media_of(not_measured), Media());
}

TEST(MediaOf, AreOneWithoutACable) {
  const Media media = media_of(links_of({{"a", "b", 30, 1}}));
  ASSERT_EQ(media.size(), 2U);
  EXPECT_EQ(media.at("a"), media.at("b"));
}

// Through one access point, bytes between the two use the radio channel twice.
TEST(MediaOf, TellOneAccessPointFromTwo) {
  const auto between = [](double speed) {
    return media_of(links_of({{"desk", "nas", 110, 0},
                              {"desk", "a", 40, 1},
                              {"nas", "a", 40, 1},
                              {"desk", "b", 20, 0.9},
                              {"nas", "b", 20, 0.9},
                              {"a", "b", speed, 1}}));
  };
  const Media one = between(13.4);
  ASSERT_EQ(one.size(), 2U);
  EXPECT_EQ(one.at("a"), one.at("b"));
  const Media two = between(19.5);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_NE(two.at("a"), two.at("b"));
}

TEST(Links, PutTheirMediaInPlaceOfTheClusters) {
  Cluster cluster = two_machines();
  cluster.machines[0].medium = "merged";
  ASSERT_TRUE(apply_links(cluster, both_ways()).ok());
  EXPECT_EQ(cluster.machines[0].medium, "merged") << "they do not show it";
  ASSERT_TRUE(apply_links(cluster, links_of({{"fast", "slow", 1, 0}})).ok());
  EXPECT_EQ(cluster.machines[0].medium, "");
  ASSERT_TRUE(apply_links(cluster, links_of({{"fast", "slow", 1, 1}})).ok());
  EXPECT_NE(cluster.machines[0].medium, "");
  EXPECT_EQ(cluster.machines[0].medium, cluster.machines[1].medium);
  EXPECT_TRUE(cluster.machines[0].medium_is_supposed && cluster.machines[1].medium_is_supposed);
}

TEST(Links, LeaveItToTheClusterFileWhoIsOnAMedium) {
  const Links links = links_of({{"fast", "slow", 1, 1}});
  Cluster wifi = two_machines();
  wifi.machines[1].medium = "wifi";
  ASSERT_TRUE(apply_links(wifi, links).ok());
  EXPECT_EQ(wifi.machines[0].medium, "");
  EXPECT_EQ(wifi.machines[1].medium, "wifi");
  EXPECT_FALSE(wifi.machines[1].medium_is_supposed);
  Cluster cabled = two_machines();
  cabled.machines[0].names_cable = true;
  ASSERT_TRUE(apply_links(cabled, links).ok());
  EXPECT_EQ(cabled.machines[0].medium, "");
  EXPECT_NE(cabled.machines[1].medium, "");
  EXPECT_FALSE(cabled.machines[1].medium_is_supposed);
}

TEST(Links, TellWhoIsOnAMediumByAThirdMachineWithACable) {
  Cluster cluster = two_machines();
  for (const char* name : {"box", "nas"}) {
    cluster.machines.push_back(cluster.machines.front());
    cluster.machines.back().name = name;
  }
  const std::vector<MeasuredPair> without{{"fast", "slow", 15, 1}};
  std::vector<MeasuredPair> with = without;
  for (const char* name : {"box", "nas"}) {
    with.push_back({"fast", name, 30, 1});
    with.push_back({"slow", name, 30, 1});
  }
  with.push_back({"box", "nas", 100, 0});
  Cluster merged = cluster;
  ASSERT_TRUE(apply_links(merged, links_of(with)).ok());
  EXPECT_EQ(merged.machines[0].medium, merged.machines[1].medium);
  EXPECT_FALSE(merged.machines[0].medium_is_supposed);
  EXPECT_EQ(media_lines(cluster, links_of(with)),
            std::vector<std::string>{"fast, slow: half duplex on one shared medium"});
  // An entry of the file for one machine does not exclude that another was also found on the
  // medium.
  merged = cluster;
  merged.machines[1].medium = "wifi";
  ASSERT_TRUE(apply_links(merged, links_of(with)).ok());
  EXPECT_EQ(merged.machines[0].medium, "wifi");
  ASSERT_TRUE(apply_links(cluster, links_of(without)).ok());
  EXPECT_TRUE(cluster.machines[0].medium_is_supposed);
}

// If two of them both had cables, their directions would not take turns.
TEST(Links, LeaveAtMostOneToTheClusterFile) {
  Cluster cluster = two_machines();
  cluster.machines.push_back(cluster.machines.front());
  cluster.machines.back().name = "box";
  cluster.machines[1].medium = "wifi";
  ASSERT_TRUE(apply_links(cluster, links_of({{"fast", "slow", 15, 1},
                                             {"fast", "box", 15, 1},
                                             {"slow", "box", 15, 1}}))
                  .ok());
  for (const Machine& machine : cluster.machines) EXPECT_EQ(machine.medium, "wifi");
}

TEST(MediaLines, SayWhatLinksCannotTell) {
  const Links links = links_of({{"fast", "slow", 1, 1}});
  Cluster cluster = two_machines();
  EXPECT_EQ(media_lines(cluster, links),
            std::vector<std::string>{
                "fast, slow: half duplex: one of them, or both, is on Wi-Fi; medium = \"wifi\" in "
                "the cluster file, on the one or both, decides"});
  cluster.machines[1].medium = "wifi";
  EXPECT_EQ(media_lines(cluster, links), std::vector<std::string>{"slow: half duplex"});
}

}  // namespace
}  // namespace motley
