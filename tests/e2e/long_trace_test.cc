// A trace of any length is transferred in pieces and cannot make a finished run fail.
#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

constexpr std::size_t kLineBytesMax = std::size_t{4} << 20;  // docs/formats/protocol.md

// Each rank's part is far longer than a protocol line; the only checkpoint is of the last step.
TEST(LongTrace, AFinishedRunKeepsItsCheckpointAndItsTrace) {
  const SmallJob job;
  const Outcome outcome =
      job.train("run", {"--stages", "2", "--set", "train.steps=310", "--set", "run.trace_steps=300",
                        "--set", "train.global_batch=32", "--set", "train.micro_batch=1", "--set",
                        "model.width=8", "--set", "model.context=4"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(motley({"ckpt", "verify", job.run_dir("run") + "/checkpoints/step-000310"}).status, 0);
  const std::string text = read_text(job.folder() / "run" / "trace.json");
  EXPECT_GT(text.size(), 2 * kLineBytesMax);
  const Json trace = Json::parse(text);
  EXPECT_EQ(trace.at("traceEvents").back().at("args").at("step"), 302);
  EXPECT_FALSE(trace.contains("otherData"));
}

// A trace file that cannot be written causes a warning.
TEST(LongTrace, WithoutAPlaceForItTheRunStillEndsWell) {
  const SmallJob job;
  ASSERT_EQ(job.train("run", {"--stop-after", "2"}).status, 0);
  const auto in_the_way = job.folder() / "run" / "trace.json" / "in the way";
  ASSERT_TRUE(std::filesystem::create_directories(in_the_way));
  const Outcome outcome = job.train("run", {"--resume", "--stop-after", "6"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("no trace: "), std::string::npos) << outcome.err;
  EXPECT_EQ(motley({"ckpt", "verify", job.run_dir("run") + "/checkpoints/step-000006"}).status, 0);
}

}  // namespace
}  // namespace motley::test
