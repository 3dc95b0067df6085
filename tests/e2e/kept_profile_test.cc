// Profiles that a machine stores from one start to the next.
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kMeasured = "measured 1 device";
constexpr const char* kTaken = "reused 1 cached profile that still holds";

class StoredProfile : public testing::Test {
 protected:
  // Profiles this machine; returns the command's messages.
  std::string measure(const std::vector<std::string>& extra = {}) const {
    return measure_into(cache_, extra);
  }

  std::string measure_into(const TemporaryFolder& cache,
                           const std::vector<std::string>& extra = {}) const {
    std::vector<std::string> words{"profile", config()};
    words.insert(words.end(), extra.begin(), extra.end());
    const Outcome outcome = RunningMotley(words, {}, cache.path()).wait();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.err;
  }

  // Starts with a stored profile, which is measured once for all tests.
  void begin_measured() const {
    static const TemporaryFolder measured;
    static const std::string said = measure_into(measured);
    ASSERT_THAT(said, HasSubstr(kMeasured));
    std::filesystem::copy(measured.path(), cache_.path(), std::filesystem::copy_options::recursive);
  }

  [[nodiscard]] std::string config() const { return job_.train_words("run", {}).at(1); }

  // The only stored file.
  [[nodiscard]] std::filesystem::path kept() const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(cache_ / "motley" / "profiles")) {
      if (entry.path().extension() == ".json") found.push_back(entry.path());
    }
    EXPECT_EQ(found.size(), 1U);
    return found.front();
  }

  // Rewrites the stored samples of all layers and sizes.
  void change_samples(const std::function<void(Json&)>& change) const {
    Json json = Json::parse(read_text(kept()));
    for (auto& [signature, samples] : json["profile"]["devices"][0]["layers"].items()) {
      for (Json& sample : samples) change(sample);
    }
    std::ofstream(kept(), std::ios::trunc) << json.dump();
  }

  // Gives the stored samples a large spread, so that the load of the computer, now or then, does
  // not matter.
  void allow_for_noise() const {
    change_samples([](Json& sample) {
      for (const std::string part : {"forward", "backward"}) {
        sample[part + "_spread_s"] = 0.5 * sample[part + "_s"].get<double>();
      }
    });
  }

  SmallJob job_;
  TemporaryFolder cache_;
};

TEST_F(StoredProfile, IsTakenAtTheNextStart) {
  EXPECT_THAT(measure(), HasSubstr(kMeasured));
  allow_for_noise();
  EXPECT_THAT(measure(), HasSubstr(kTaken));
}

TEST_F(StoredProfile, ServesTrainingToo) {
  begin_measured();
  allow_for_noise();
  const Outcome outcome =
      RunningMotley({"train", config(), "--run", job_.run_dir("run"), "--stop-after", "1"}, {},
                    cache_.path())
          .wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(kTaken));
}

TEST_F(StoredProfile, IsNotTakenForOtherThreadsOrMoreTime) {
  begin_measured();
  allow_for_noise();
  EXPECT_THAT(measure({"--set", "profile.seconds=50"}), HasSubstr(kMeasured));
  EXPECT_THAT(measure({"--set", "run.threads=2"}), HasSubstr(kMeasured));
}

// The optimizer's time includes the average.
TEST_F(StoredProfile, IsNotTakenForAnAverageOfTheWeights) {
  begin_measured();
  allow_for_noise();
  EXPECT_THAT(measure({"--set", "train.ema=0.9"}), HasSubstr(kMeasured));
}

// As for a resumed run, whose micro-batch was chosen at its start.
TEST_F(StoredProfile, ServesEverySizeBetweenThoseMeasured) {
  EXPECT_THAT(measure({"--set", "train.micro_batch=0"}), HasSubstr(kMeasured));
  allow_for_noise();
  EXPECT_THAT(measure({"--set", "train.micro_batch=4"}), HasSubstr(kTaken));
}

TEST_F(StoredProfile, IsMeasuredAnewWhenAskedTo) {
  begin_measured();
  allow_for_noise();
  EXPECT_THAT(measure({"--measure"}), HasSubstr(kMeasured));
}

TEST_F(StoredProfile, AnotherDepthOfTheModelMeasuresNothingNew) {
  begin_measured();
  allow_for_noise();
  EXPECT_THAT(measure({"--set", "model.layers=3"}), HasSubstr(kTaken));
}

TEST_F(StoredProfile, ThatIsDamagedIsMeasuredAnew) {
  begin_measured();
  std::ofstream(kept(), std::ios::trunc) << "{\"format\": ";
  const std::string said = measure();
  EXPECT_THAT(said, HasSubstr("cached profile not used: "));
  EXPECT_THAT(said, HasSubstr(kMeasured));
  allow_for_noise();
  EXPECT_THAT(measure(), HasSubstr(kTaken));
}

TEST_F(StoredProfile, ThatASampleContradictsIsMeasuredAnew) {
  begin_measured();
  change_samples([](Json& sample) {
    for (const char* part : {"forward_s", "backward_s"}) {
      sample[part] = 10 * sample[part].get<double>();
    }
  });
  const std::string said = measure();
  EXPECT_THAT(said, HasSubstr("times as long as in the cached profile: measuring again"));
  EXPECT_THAT(said, HasSubstr(kMeasured));
  allow_for_noise();
  EXPECT_THAT(measure(), HasSubstr(kTaken));
}

// Stored times are compared with new measurements; byte counts can only be checked for
// plausibility.
TEST_F(StoredProfile, ThatTakesImpossibleMemoryIsMeasuredAnew) {
  begin_measured();
  allow_for_noise();
  change_samples([](Json& sample) { sample["saved_bytes"] = std::int64_t{1} << 47; });
  const std::string said = measure();
  EXPECT_THAT(said, HasSubstr("cached profile not used: " + kept().string()));
  EXPECT_THAT(said, HasSubstr(kMeasured));
}

TEST_F(StoredProfile, CanBeReadByNobodyElse) {
  EXPECT_THAT(measure(), HasSubstr(kMeasured));
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(kept()).permissions(), perms::owner_read | perms::owner_write);
}

// A file that claims a huge spread, or no times at all, would agree with every measurement.
TEST_F(StoredProfile, ThatCannotBeContradictedIsMeasuredAnew) {
  begin_measured();
  for (const bool has_times : {true, false}) {
    change_samples([&](Json& sample) {
      sample["forward_s"] = has_times ? 50 * sample["forward_s"].get<double>() : 0;
      sample["forward_spread_s"] = has_times ? 1e6 : 0;
      if (!has_times) sample["backward_s"] = sample["backward_input_s"] = 0;
    });
    EXPECT_THAT(measure(), HasSubstr(kMeasured)) << has_times;
  }
}

TEST_F(StoredProfile, TwoMayBeMadeAtOnce) {
  RunningMotley one({"profile", config()}, {}, cache_.path());
  RunningMotley other({"profile", config()}, {}, cache_.path());
  EXPECT_EQ(one.wait().status, 0);
  EXPECT_EQ(other.wait().status, 0);
  EXPECT_TRUE(Json::accept(read_text(kept())));
}

TEST_F(StoredProfile, AFolderThatCannotBeWrittenIsNoError) {
  const std::string file = cache_.write("file", "");
  const Outcome outcome = RunningMotley({"profile", config()}, {}, file).wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("the profile is not cached: "));
  EXPECT_THAT(outcome.err, Not(HasSubstr("motley: error")));
  EXPECT_THAT(outcome.err, HasSubstr(kMeasured));
}

// Both find the same free memory, which must be counted once.
TEST_F(StoredProfile, IsOfAnEqualPartOfTheMemoryOfMachinesThatAreOneComputer) {
  const std::string cluster =
      job_.folder().write("two.toml", "[[machine]]\nname = \"a\"\n[[machine]]\nname = \"b\"\n");
  const std::string file = (job_.folder() / "two.json").string();
  const std::string both = measure({"--cluster", cluster, "--output", file});
  EXPECT_THAT(both, HasSubstr("a, b are one computer with "));
  const Json devices = Json::parse(read_text(file)).at("devices");
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0].at("computer"), devices[1].at("computer"));
  const std::string alone_file = (job_.folder() / "one.json").string();
  EXPECT_THAT(measure({"--output", alone_file}), Not(HasSubstr("one computer")));
  const auto bytes = [](const Json& device) { return device.at("memory_bytes").get<double>(); };
  const double alone = bytes(Json::parse(read_text(alone_file)).at("devices")[0]);
  EXPECT_LT(bytes(devices[0]) + bytes(devices[1]), 1.5 * alone);
}

TEST_F(StoredProfile, WhatFitsNowhereIsNotMeasured) {
  const std::string cluster =
      job_.folder().write("small.toml", "[[machine]]\nname = \"box\"\nmemory_gib = 0.5\n");
  const Outcome outcome = RunningMotley({"plan", config(), "--cluster", cluster, "--set",
                                         "model.width=2048", "--set", "model.layers=20"},
                                        {}, cache_.path())
                              .wait();
  EXPECT_EQ(outcome.status, 6) << outcome.err;
  EXPECT_THAT(outcome.err,
              HasSubstr("the model does not fit: all devices together have 512.0 MiB"));
  EXPECT_FALSE(std::filesystem::exists(cache_ / "motley")) << "it was measured";
}

TEST_F(StoredProfile, MeasuringTellsHowFarItIs) {
  const std::string said =
      measure({"--set", "model.width=512", "--set", "model.context=512", "--set",
               "model.vocab=8192", "--set", "train.micro_batch=0", "--set", "profile.seconds=14"});
  EXPECT_THAT(said, HasSubstr("measuring local (cpu) at "));
  EXPECT_THAT(said, HasSubstr(" s left\n"));
}

}  // namespace
}  // namespace motley::test
