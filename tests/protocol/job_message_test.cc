#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/protocol.h"

namespace motley {
namespace {

using testing::HasSubstr;

Job train_job() {
  Job job;
  job.verb = "train";
  job.plan.model_hash = "m";
  job.plan.ranks = {{.machine = "a", .device = "cpu"}, {.machine = "b", .device = "cpu"}};
  job.plan.chunks = {{.first_layer = 0, .layer_count = 1, .replicas = {{Rank{0}, 1}}},
                     {.first_layer = 1, .layer_count = 2, .replicas = {{Rank{1}, 1}}}};
  job.rank = Rank{1};
  job.lease_s = 8;
  job.run_dir = "/runs/a";
  job.launch = "000007-0123456789abcdef";
  job.resume_from = "/runs/a/checkpoints/step-000100";
  job.stop_after = 200;
  job.bind_address = "10.0.0.1";
  job.interface = "eth0";
  job.secret = std::string(31, 's') + '\0';
  job.local_shortcut = false;
  job.threads = 3;
  job.options = {{"key", "value"}};
  return job;
}

TEST(JobMessage, ArrivesUnchanged) {
  const Json message = job_to_json(train_job());
  const Result<Job> job = job_from_json(message, "stdin");
  ASSERT_TRUE(job.ok()) << describe(job.error());
  EXPECT_EQ(job->rank, Rank{1});
  EXPECT_EQ(epoch_of(*job), 7U);
  EXPECT_EQ(job->lease_s, 8);
  EXPECT_EQ(job->threads, 3);
  EXPECT_EQ(job->secret, train_job().secret);
  EXPECT_FALSE(job->local_shortcut);
  EXPECT_EQ(job_to_json(*job).dump(), message.dump());
}

TEST(JobMessage, NeedsAPlanOnlyForTraining) {
  Job job;
  job.verb = "profile";
  job.run_dir = "/runs/a";
  const Json message = job_to_json(job);
  EXPECT_FALSE(message.contains("plan"));
  EXPECT_TRUE(job_from_json(message, "stdin").ok());
}

TEST(JobMessage, RefusesEachMissingMember) {
  const Json valid = job_to_json(train_job());
  for (const auto& [key, value] : valid.items()) {
    Json damaged = valid;
    damaged.erase(key);
    EXPECT_FALSE(job_from_json(damaged, "stdin").ok()) << key;
  }
}

TEST(JobMessage, RefusesWhatIsOutOfRange) {
  const auto with = [](const char* key, const Json& value) {
    Json damaged = job_to_json(train_job());
    damaged[key] = value;
    return job_from_json(damaged, "stdin").ok();
  };
  EXPECT_FALSE(with("rank", 2));
  EXPECT_FALSE(with("rank", -1));
  EXPECT_FALSE(with("launch", ""));
  EXPECT_FALSE(with("launch", "4294967296-0123456789abcdef"));
  EXPECT_FALSE(with("lease_s", -1));
  EXPECT_FALSE(with("lease_s", 1e9));
  EXPECT_FALSE(with("threads", -1));
  EXPECT_FALSE(with("stop_after", -1));
  EXPECT_FALSE(with("verb", "erase"));
  EXPECT_FALSE(with("options", Json::array()));
}

TEST(JobMessage, CarriesTheSpeedOfAVirtualDevice) {
  Job job = train_job();
  job.device = "virtual:1";
  EXPECT_FALSE(job_from_json(job_to_json(job), "stdin").ok());
  job.virtual_speed = {.tokens_per_s = 60'000};
  const Result<Job> arrived = job_from_json(job_to_json(job), "stdin");
  ASSERT_TRUE(arrived.ok()) << describe(arrived.error());
  EXPECT_EQ(arrived->virtual_speed, job.virtual_speed);
  for (const VirtualSpeed& speed :
       {VirtualSpeed{}, VirtualSpeed{.tokens_per_s = -1, .gflops = 2}}) {
    job.virtual_speed = speed;
    EXPECT_FALSE(job_from_json(job_to_json(job), "stdin").ok());
  }
  job.device = "cpu";
  job.virtual_speed = {.gflops = 1};
  EXPECT_FALSE(job_from_json(job_to_json(job), "stdin").ok());
}

TEST(JobMessage, NeverQuotesTheSecret) {
  for (const std::string text : {"a1b2c3", "not hexadecimal, but a secret all the same"}) {
    Json message = job_to_json(train_job());
    message["secret"] = text;
    const Result<Job> job = job_from_json(message, "stdin");
    ASSERT_FALSE(job.ok());
    EXPECT_THAT(job.error().cause, HasSubstr("'secret'"));
    EXPECT_THAT(describe(job.error()), testing::Not(HasSubstr(text)));
  }
}

TEST(JobMessage, OfAnotherProtocolSaysSo) {
  Json message = job_to_json(train_job());
  message["protocol"] = kProtocolVersion + 1;
  const Result<Job> job = job_from_json(message, "stdin");
  ASSERT_FALSE(job.ok());
  EXPECT_THAT(job.error().cause, HasSubstr("protocol"));
  EXPECT_THAT(job.error().remedy, HasSubstr("same version"));
}

}  // namespace
}  // namespace motley
