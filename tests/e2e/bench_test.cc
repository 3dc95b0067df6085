// motley bench on this machine: measures the requested quantities and prints them, also as JSON.
#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/motley_command.h"

namespace motley::test {
namespace {

TEST(Bench, MeasuresTheCodecsThatItIsAskedFor) {
  const Outcome outcome = motley(
      {"bench", "codec", "--mib", "1", "--codec", "int8", "--codec", "topk(0.01)|fp16", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json rows = Json::parse(outcome.out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].at("codec"), "int8");
  EXPECT_GT(rows[0].at("wire_bytes_per_value").get<double>(), 1);
  EXPECT_LT(rows[0].at("wire_bytes_per_value").get<double>(), 1.1);
  EXPECT_LT(rows[1].at("wire_bytes_per_value").get<double>(), 0.1);
  for (const Json& row : rows) {
    EXPECT_GT(row.at("feedback_bytes_per_s").get<double>(), 0);
    EXPECT_GT(row.at("decode_add_bytes_per_s").get<double>(), 0);
  }
}

TEST(Bench, RefusesAnUnknownCodec) {
  const Outcome outcome = motley({"bench", "codec", "--codec", "magic"});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_NE(outcome.err.find("magic"), std::string::npos) << outcome.err;
}

TEST(Bench, MeasuresEveryTransportBetweenTwoProcesses) {
  const Outcome outcome = motley({"bench", "transport", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::string names;
  for (const Json& row : Json::parse(outcome.out)) {
    names += row.at("transport").get<std::string>() + ";";
    ASSERT_EQ(row.at("links").at("links").size(), 2U);
    for (const Json& link : row.at("links").at("links")) {
      EXPECT_GT(link.at("bandwidth_bytes_per_s").get<double>(), 0) << names;
    }
  }
  EXPECT_NE(names.find("tcp;tcp with TLS;"), std::string::npos) << names;
}

TEST(Bench, SumsOverReplicasWithEachCodecThatItIsAskedFor) {
  const Outcome outcome = motley({"bench", "allreduce", "--mib", "1", "--runs", "2", "--codec",
                                  "fp16", "--codec", "topk(0.01)|fp16", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json sums = Json::parse(outcome.out).at("sums");
  ASSERT_EQ(sums.size(), 3U);
  EXPECT_EQ(sums[0].at("codec"), "none");
  EXPECT_EQ(sums[0].at("uplink_bytes"), Json({1 << 20, 1 << 20}));
  EXPECT_EQ(sums[0].at("largest_error"), 0);
  EXPECT_EQ(sums[1].at("uplink_bytes"), Json({1 << 19, 1 << 19}));
  EXPECT_GT(sums[2].at("largest_error").get<double>(), 0.5);
  for (const Json& sum : sums) {
    EXPECT_GT(sum.at("sum_s").get<double>(), 0);
    EXPECT_LT(sum.at("lost_error").get<double>(), 1e-3);
  }
}

TEST(Bench, SumsOverTheDevicesOfACluster) {
  const TemporaryFolder folder;
  const std::string cluster = folder.write("cluster.toml", R"(
[[machine]]
name = "left"
address = "127.0.0.1"
devices = ["cpu", "cpu"]
[[machine]]
name = "right"
address = "127.0.0.1"
)");
  const Outcome outcome = motley(
      {"bench", "allreduce", "--mib", "1", "--runs", "1", "--codec", "int8", "--cluster", cluster});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("of the links"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("1.05 1.05"), std::string::npos) << outcome.out;
}

TEST(Bench, RefusesToSumWithAnUnknownCodec) {
  const Outcome outcome = motley({"bench", "allreduce", "--codec", "magic"});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_NE(outcome.err.find("magic"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace motley::test
