// motley probe on two machines that are both this computer, over every transport of the build.
#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

constexpr const char* kTwoHere = R"(
[network]
trusted = true
[[machine]]
name = "left"
address = "127.0.0.1"
[[machine]]
name = "right"
address = "127.0.0.1"
)";

class Probe : public testing::TestWithParam<std::string> {};

TEST_P(Probe, WritesSpeedsThatAPlanTakes) {
  SmallJob job;
  const std::string cluster = job.folder().write("cluster.toml", kTwoHere);
  const std::string links = (job.folder() / "links.json").string();
  const Outcome probed = motley(
      {"probe", "--cluster", cluster, "-o", links, "--transport", GetParam(), "--seconds", "1"});
  ASSERT_EQ(probed.status, 0) << probed.err;
  EXPECT_NE(probed.out.find("it has 127.0.0.1 and routes to 127.0.0.1"), std::string::npos);
  const Json json = Json::parse(read_text(links));
  ASSERT_EQ(json.at("links").size(), 2U);
  for (const Json& link : json.at("links")) {
    EXPECT_GT(link.at("bandwidth_bytes_per_s").get<double>(), 0);
    EXPECT_GT(link.at("latency_s").get<double>(), 0);
  }
  const Outcome planned = motley({"plan", job.train_words("run", {}).at(1), "--cluster", cluster,
                                  "--links", links, "--stages", "2"});
  EXPECT_EQ(planned.status, 0) << planned.err;
}

INSTANTIATE_TEST_SUITE_P(Transports,
                         Probe,
                         testing::Values(MOTLEY_TRANSPORTS),
                         [](const auto& kind) { return kind.param; });

std::string not_trusted() {
  std::string text = kTwoHere;
  return text.replace(text.find("true"), 4, "false");
}

TEST(ProbeEncrypts, OnANetworkThatIsNotTrusted) {
  const TemporaryFolder folder;
  const Outcome probed =
      motley({"probe", "--cluster", folder.write("cluster.toml", not_trusted())});
  EXPECT_EQ(probed.status, 0) << probed.err;
  EXPECT_NE(probed.out.find("transport tcp with TLS 1.3 between machines: the network is not"),
            std::string::npos)
      << probed.out << probed.err;
}

TEST(ProbeRefuses, ToExposeANetworkThatIsNotTrusted) {
  const TemporaryFolder folder;
  const Outcome probed = motley(
      {"probe", "--cluster", folder.write("cluster.toml", not_trusted()), "--transport", "gloo"});
  EXPECT_EQ(probed.status, 3);
  EXPECT_NE(probed.err.find("trusted = true"), std::string::npos) << probed.err;
}

TEST(ProbeRefuses, ASingleMachine) {
  const TemporaryFolder folder;
  const std::string cluster = folder.write("cluster.toml", "[[machine]]\nname = \"only\"\n");
  const Outcome probed = motley({"probe", "--cluster", cluster});
  EXPECT_EQ(probed.status, 3);
  EXPECT_NE(probed.err.find("--cluster"), std::string::npos) << probed.err;
}

}  // namespace
}  // namespace motley::test
