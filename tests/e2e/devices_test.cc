// Devices as users see them: motley devices, "auto" with and without a cluster file, doctor, and
// generate on a device. The far device (tests/support/far/far_device.h) represents accelerators.
#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kAuto = "devices = [\"auto\"]\nthreads = 1\n";

class Devices : public testing::Test {
 protected:
  ~Devices() override { ::unsetenv("MOTLEY_DEVICE_LIBRARY"); }

  static void bring_far_device() {
    ::setenv("MOTLEY_DEVICE_LIBRARY", MOTLEY_FAR_LIBRARY, /*overwrite=*/1);
  }

  // A cluster of a machine "desk" with these lines, and another one.
  [[nodiscard]] std::string cluster(const std::string& desk, const std::string& more = "") const {
    return job_.folder().write("cluster.toml", "[[machine]]\nname = \"desk\"\n" + desk + more);
  }

  // A second machine at the same address, which does not answer.
  static std::string silent(const std::string& lines) {
    return "address = \"127.0.0.1\"\n[[machine]]\nname = \"box\"\naddress = \"127.0.0.1\"\n"
           "shell = [\"false\"]\n" +
           lines;
  }

  [[nodiscard]] std::vector<std::string> planned_devices(const std::string& run) const {
    std::vector<std::string> devices;
    const Json plan = Json::parse(read_text(job_.run_dir(run) + "/plan.json"));
    for (const Json& rank : plan.at("ranks")) devices.push_back(rank.at("device"));
    return devices;
  }

  [[nodiscard]] std::string config() const {
    return job_.train_words("none", {"--cluster", "none"})[1];
  }

  // The first finding with that verdict, as JSON; null if there is none.
  static Json finding(const Outcome& doctor, const std::string& verdict) {
    const Json report = Json::parse(doctor.out);
    for (const Json& each : report.at("findings")) {
      if (each.at("verdict") == verdict && each.at("what") == "devices") return each;
    }
    return nullptr;
  }

  SmallJob job_;
};

TEST_F(Devices, ListsTheProcessorAndWhyOthersAreMissing) {
  const Outcome outcome = motley({"devices"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("LibTorch "), HasSubstr("*  cpu"), HasSubstr("fp32"),
                                 HasSubstr("no mps: "), HasSubstr("only Macs have it"),
                                 Not(HasSubstr("MOTLEY_DEVICE_LIBRARY"))));
  const Json here = Json::parse(motley({"devices", "--json"}).out).at("machines").at("local");
  EXPECT_TRUE(here.at("devices")[0].at("fault").is_null());
}

TEST_F(Devices, SaysWhatAClusterFileAsksForInVain) {
  const std::string file = cluster("devices = [\"cpu\", \"cuda:7\", \"mps\"]\n");
  const Outcome outcome = motley({"devices", "--cluster", file});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("cuda:7, mps of the cluster file are not here"));
  const Json machines =
      Json::parse(motley({"devices", "--cluster", file, "--json"}).out).at("machines");
  EXPECT_THAT(machines.at("desk").at("absent"), ElementsAre("cuda:7", "mps"));
}

// Found before any machine is contacted.
TEST_F(Devices, ANameThatNoDeviceHasIsAMistakeOfTheFile) {
  for (const char* verb : {"doctor", "devices"}) {
    const Outcome outcome = motley({verb, "--cluster", cluster("devices = [\"gpu\"]\n")});
    EXPECT_EQ(outcome.status, 3) << outcome.err;
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("cluster.toml:3:"), HasSubstr("machine desk: unknown kind of"),
                      HasSubstr("write \"cuda:0\"")));
  }
}

TEST_F(Devices, ListsWhatAnAcceleratorIsAndHas) {
  bring_far_device();
  const Outcome outcome = motley({"devices", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json here = Json::parse(outcome.out).at("machines").at("local");
  ASSERT_EQ(here.at("devices").size(), 3U);
  EXPECT_EQ(here.at("devices")[0].at("name"), "cpu");
  EXPECT_GT(here.at("devices")[0].at("free_bytes"), 0);
  const Json& far = here.at("devices")[1];
  EXPECT_EQ(far.at("name"), "privateuseone:0");
  EXPECT_EQ(far.at("model"), "far device");
  EXPECT_EQ(far.at("memory_bytes"), std::int64_t{4} << 30);
  EXPECT_THAT(far.at("types"), ElementsAre("fp32", "bf16", "fp16"));
  EXPECT_THAT(here.at("auto"), ElementsAre("privateuseone:0", "privateuseone:1"));
}

TEST_F(Devices, AMachineThatDoesNotAnswerLeavesTheOthersListed) {
  const Outcome outcome = motley({"devices", "--cluster", cluster(kAuto, silent("")), "--json"});
  EXPECT_EQ(outcome.status, 4) << outcome.err;
  const Json machines = Json::parse(outcome.out).at("machines");
  EXPECT_TRUE(machines.at("box").is_null());
  EXPECT_EQ(machines.at("desk").at("devices")[0].at("name"), "cpu");
  EXPECT_THAT(outcome.err, HasSubstr("box"));
}

TEST_F(Devices, AutoTakesTheAcceleratorsAndNothingKeepsTheWord) {
  bring_far_device();
  const Outcome outcome =
      job_.train("far", {"--cluster", cluster(kAuto), "--set", "train.steps=5"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("devices found: desk: privateuseone:0 (far device), "
                                     "privateuseone:1 (far device)"));
  EXPECT_THAT(planned_devices("far"), ::testing::Each(HasSubstr("privateuseone:")));
  for (const char* file : {"plan.json", "profile.json"}) {
    EXPECT_THAT(read_text(job_.run_dir("far") + "/" + file), Not(HasSubstr("\"auto\""))) << file;
  }
  // The plan can be used with a file with "auto", without a query of the devices.
  const Outcome again = job_.train(
      "again", {"--cluster", cluster(kAuto), "--plan", job_.run_dir("far") + "/plan.json"});
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.err, Not(HasSubstr("devices found")));
  EXPECT_EQ(planned_devices("again"), planned_devices("far"));
}

TEST_F(Devices, AutoIsTheProcessorWhereThereIsNothingElse) {
  const Outcome outcome =
      job_.train("here", {"--cluster", cluster(kAuto), "--set", "train.steps=5"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("devices found: desk: cpu"));
  EXPECT_THAT(planned_devices("here"), ElementsAre("cpu"));
}

TEST_F(Devices, AutoSaysWhatItHadToLeaveOut) {
  ::setenv("MOTLEY_DEVICE_LIBRARY", "/no/such/library.so", /*overwrite=*/1);
  const Outcome outcome = motley({"train", config(), "--run", job_.run_dir("none"), "--cluster",
                                  cluster(kAuto), "--set", "profile.seconds=1", "--dry-run"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("devices found: desk: cpu"),
                                 HasSubstr("without privateuseone (/no/such/library.so")));
}

TEST_F(Devices, ARunWithoutAClusterFileTakesWhatThisMachineHas) {
  const std::vector<std::string> words = {"train",         config(), "--set",
                                          "train.steps=5", "--set",  "profile.seconds=1"};
  const auto train = [&](const char* run, const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--run", job_.run_dir(run)});
    all.insert(all.end(), more.begin(), more.end());
    const Outcome outcome = motley(all);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  };
  bring_far_device();
  train("one", {});
  EXPECT_THAT(planned_devices("one"), ::testing::Each(HasSubstr("privateuseone:")));
  train("two", {"--stages", "2"});
  EXPECT_THAT(planned_devices("two"),
              ::testing::UnorderedElementsAre("privateuseone:0", "privateuseone:1"));
  // With more stages than accelerators all stages run on the processor.
  train("three", {"--stages", "3"});
  EXPECT_THAT(planned_devices("three"), ElementsAre("cpu", "cpu", "cpu"));
}

TEST_F(Devices, APlanAsksAMachineOrAProfile) {
  const auto plan = [&](const std::string& file, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"plan", config(), "--cluster", file};
    words.insert(words.end(), more.begin(), more.end());
    return motley(words);
  };
  Outcome outcome = plan(cluster("address = \"127.0.0.1\"\n", silent(kAuto).substr(22)), {});
  EXPECT_EQ(outcome.status, 4) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("cannot be used: box"), HasSubstr("motley doctor")));

  ASSERT_EQ(job_.train("run", {"--cluster", cluster(kAuto), "--set", "train.steps=2", "--set",
                               "train.warmup_steps=1"})
                .status,
            0);
  const std::vector<std::string> measured = job_.as_measured_for("run");
  outcome = plan(cluster(kAuto), measured);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, Not(HasSubstr("devices found")));

  outcome = plan(cluster(kAuto, silent(kAuto)), measured);
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("the devices of box are not known"),
                                 HasSubstr("motley profile"), HasSubstr("name its devices")));
}

TEST_F(Devices, AreWhatADoctorLooksAt) {
  bring_far_device();
  const std::string run = job_.folder().path().string();
  Outcome outcome = motley({"doctor", "--cluster", cluster(kAuto), "--run", run, "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_THAT(finding(outcome, "ok").at("found").get<std::string>(),
              AllOf(HasSubstr("privateuseone:0: far device"), HasSubstr("4.00 GiB free")));

  outcome =
      motley({"doctor", "--cluster", cluster("devices = [\"cpu\"]\n"), "--run", run, "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_THAT(finding(outcome, "note").at("found").get<std::string>(),
              HasSubstr("unused: privateuseone:0"));

  outcome =
      motley({"doctor", "--cluster", cluster("devices = [\"mps\"]\n"), "--run", run, "--json"});
  EXPECT_EQ(outcome.status, 3) << outcome.out << outcome.err;
  EXPECT_THAT(finding(outcome, "PROBLEM").at("found").get<std::string>(),
              HasSubstr("no device 'mps'"));
  EXPECT_EQ(finding(outcome, "PROBLEM").at("status"), 3);
  EXPECT_THAT(outcome.err, HasSubstr("only Macs have it"));
}

TEST_F(Devices, GenerateWhatTheProcessorGenerates) {
  bring_far_device();
  ASSERT_EQ(job_.train("run", {"--stages", "1"}).status, 0);
  const auto generate = [&](const std::string& device) {
    const Outcome outcome =
        motley({"generate", job_.run_dir("run"), "--prompt", "1,2,3", "--tokens", "20",
                "--temperature", "0", "--json", "--device", device});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  };
  EXPECT_EQ(generate("privateuseone:1"), generate("cpu"));
  Outcome refused = motley({"generate", job_.run_dir("run"), "--device", "privateuseone:7"});
  EXPECT_EQ(refused.status, 3) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("no device 'privateuseone:7'"));
  for (const char* device : {"gpu", "auto", "virtual"}) {
    refused = motley({"generate", job_.run_dir("run"), "--device", device});
    EXPECT_EQ(refused.status, 2) << device << refused.err;
    EXPECT_THAT(refused.err, AllOf(HasSubstr("use cpu, cuda:0"), HasSubstr("motley devices")));
  }
}

TEST_F(Devices, GenerateEndsItsLineWhereTheDeviceHangs) {
  bring_far_device();
  ASSERT_EQ(job_.train("run", {"--stages", "1", "--set", "comm.timeout_s=2"}).status, 0);
  ::setenv("MOTLEY_FAR_HANGS_AFTER", "1000", /*overwrite=*/1);
  const Outcome outcome =
      motley({"generate", job_.run_dir("run"), "--prompt", "1,2,3", "--device", "privateuseone:0"});
  ::unsetenv("MOTLEY_FAR_HANGS_AFTER");
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(::testing::StartsWith("1,2,3,"), ::testing::EndsWith("\n")));
  EXPECT_THAT(outcome.err, HasSubstr("waiting for device privateuseone:0 to finish"));
}

// It is listed as not answering; training on it is an error.
TEST_F(Devices, OneThatHangsFromTheStartDoesNotAnswer) {
  bring_far_device();
  ::setenv("MOTLEY_FAR_DEVICES", "1", /*overwrite=*/1);
  ::setenv("MOTLEY_FAR_HANGS_AFTER", "1", /*overwrite=*/1);
  const Outcome listed = motley({"devices"});
  const Outcome trained = job_.train(
      "run",
      {"--cluster", cluster("devices = [\"privateuseone:0\"]\n"), "--set", "comm.timeout_s=2"});
  ::unsetenv("MOTLEY_FAR_HANGS_AFTER");
  ::unsetenv("MOTLEY_FAR_DEVICES");
  EXPECT_EQ(listed.status, 0) << listed.err;
  EXPECT_THAT(listed.out, AllOf(HasSubstr("privateuseone:0"),
                                HasSubstr("a kernel on the device does not end")));
  EXPECT_EQ(trained.status, 1) << trained.err;
  EXPECT_THAT(
      trained.err,
      HasSubstr(
          "waiting for device privateuseone:0 to finish its first operation: timed out after 2 s"));
}

}  // namespace
}  // namespace motley::test
