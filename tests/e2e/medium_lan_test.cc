// motley probe distinguishes a machine on Wi-Fi from one on a cable. Skipped as the other tests of
// scripts/lan.
#include <string>

#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/lan_machines.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

// The measured `turns` of the only pair of machines; `text` gets the probe's output.
double turns_on(const std::string& words, std::string& text) {
  const LanMachines machines(words);
  EXPECT_TRUE(machines.are_up());
  const TemporaryFolder folder;
  const std::string links = (folder / "links.json").string();
  const Outcome probed =
      motley({"probe", "--cluster", folder.write("cluster.toml", LanMachines::cluster_text(true)),
              "-o", links});
  EXPECT_EQ(probed.status, 0) << probed.err;
  text = probed.out;
  const Json found = Json::parse(read_text(links)).at("links");
  EXPECT_EQ(found.at(0).at("turns"), found.at(1).at("turns"));
  return found.at(0).at("turns").get<double>();
}

// Slow enough that the shared processor does not couple the two directions.
TEST(Medium, IsSeenWhereDirectionsTakeTurns) {
  if (!LanMachines("--mbps 50").are_up()) {
    GTEST_SKIP() << "needs root and a LAN of its own (scripts/lan)";
  }
  std::string text;
  EXPECT_LT(turns_on("--mbps 50", text), 0.3);
  EXPECT_EQ(text.find("half duplex"), std::string::npos) << text;
  EXPECT_GT(turns_on("--mbps 50 --wifi m2", text), 0.7);
  EXPECT_NE(text.find("m1, m2: half duplex: one of them, or both"), std::string::npos) << text;
}

}  // namespace
}  // namespace motley::test
