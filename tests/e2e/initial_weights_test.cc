// Weights that do not fit the configured model are detected before anything starts. The section
// printed by `motley config --from` continues training from them.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class InitialWeights : public testing::Test {
 protected:
  // Creates the checkpoint of a short run.
  void SetUp() override {
    const Outcome outcome = job_.train("first", {"--set", "train.steps=5", "--stages", "2"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }

  [[nodiscard]] std::string weights() const {
    return job_.run_dir("first") + "/checkpoints/step-000005";
  }

  // A folder with these weights in Hugging Face's format, with a modified config.json.
  [[nodiscard]] std::string foreign(const std::string& name,
                                    const std::function<void(Json&)>& change) const {
    const std::filesystem::path folder = job_.folder() / name;
    std::filesystem::copy(weights(), folder);
    std::filesystem::remove(folder / "manifest.json");
    Json config = Json::parse(read_text(folder / "config.json"));
    change(config);
    std::ofstream(folder / "config.json") << config.dump(2);
    return folder.string();
  }

  [[nodiscard]] std::vector<std::string> train_from(const std::string& path,
                                                    std::vector<std::string> extra = {}) const {
    extra.insert(extra.end(), {"--set", "model.init_from=" + path});
    return job_.train_words("second", extra);
  }

  // Expects an error before any worker starts.
  void expect_refused(const std::vector<std::string>& words,
                      int status,
                      const testing::Matcher<const std::string&>& message) const {
    const MotleyWithoutWorker program;
    const Outcome outcome = program.run(words);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_THAT(outcome.err, message);
    EXPECT_FALSE(program.worker_was_started()) << outcome.err;
  }

  SmallJob job_;
};

TEST_F(InitialWeights, OfAnotherModelAreRefusedBeforeAnythingStarts) {
  const std::string config = train_from("").at(1);
  const auto both = AllOf(HasSubstr("model.heads is 2 (--set)"), HasSubstr("n_head there 4"),
                          HasSubstr(weights() + "/config.json"), HasSubstr("motley config --from"));
  const std::vector<std::string> heads = {"--set", "model.heads=2"};
  expect_refused(train_from(weights(), heads), 3, both);
  for (const char* verb : {"plan", "profile"}) {
    expect_refused(
        {verb, config, "--set", "model.heads=2", "--set", "model.init_from=" + weights()}, 3, both);
  }
  expect_refused(train_from(weights(), {"--set", "model.layers=1"}), 3,
                 AllOf(HasSubstr("model.layers is 1"), HasSubstr("n_layer there 2")));
  // The machine is remote; the folder is local.
  const std::string cluster = job_.folder().write(
      "cluster.toml", "[[machine]]\nname = \"box\"\naddress = \"127.0.0.1\"\nshell = [\"env\"]\n");
  std::vector<std::string> remote = heads;
  remote.insert(remote.end(), {"--cluster", cluster});
  expect_refused(train_from(weights(), remote), 3, both);
}

TEST_F(InitialWeights, ThatMotleyWouldComputeOtherwiseAreRefused) {
  const std::string relu =
      foreign("relu", [](Json& config) { config["activation_function"] = "relu"; });
  expect_refused(
      train_from(relu), 3,
      AllOf(HasSubstr("activation_function is \"relu\""), HasSubstr(relu + "/config.json")));
  const std::string epsilon =
      foreign("epsilon", [](Json& config) { config["layer_norm_epsilon"] = 1e-6; });
  expect_refused(train_from(epsilon), 3, HasSubstr("layer_norm_epsilon is 1e-06"));
  const std::string broken = foreign("broken", [](Json& config) { config = Json::array(); });
  expect_refused(train_from(broken), 7, HasSubstr("it is not a JSON object"));
  const std::string large = foreign(
      "large", [](Json& config) { config["note"] = std::string(std::size_t{2} << 20, 'x'); });
  expect_refused(train_from(large), 7, HasSubstr(large + "/config.json"));
}

// A file in its folder is checked like the folder.
TEST_F(InitialWeights, InAFileAreCheckedByTheConfigBesideIt) {
  const Outcome outcome = job_.train(
      "single", {"--set", "train.steps=1", "--set", "train.warmup_steps=0", "--stages", "1"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::string file =
      job_.run_dir("single") + "/checkpoints/step-000001/model-00001-of-00001.safetensors";
  ASSERT_TRUE(std::filesystem::exists(file));
  expect_refused(train_from(file, {"--set", "model.heads=2"}), 3, HasSubstr("n_head there 4"));
}

// A machine that sees another folder under this name checks it itself, before it measures.
TEST_F(InitialWeights, OfAnotherModelAreRefusedWhereTheLauncherDoesNotSeeThem) {
  if (::geteuid() != 0 || motley({"--mount", "true"}, "/usr/bin/unshare").status != 0) {
    GTEST_SKIP() << "needs root and mount namespaces";
  }
  const std::string script = job_.folder().write(
      "there.sh",
      fmt::format("mount -t tmpfs none /mnt && cp -r {} /mnt/weights && exec \"$@\"\n", weights()));
  const std::string cluster = job_.folder().write(
      "there.toml", fmt::format("[[machine]]\nname = \"box\"\naddress = \"127.0.0.1\"\n"
                                "shell = [\"unshare\", \"--mount\", \"sh\", \"{}\"]\n",
                                script));
  const Outcome outcome =
      motley(train_from("/mnt/weights", {"--set", "model.heads=2", "--cluster", cluster}));
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("box"), HasSubstr("model.heads is 2"), HasSubstr("n_head there 4")));
  EXPECT_FALSE(std::filesystem::exists(job_.run_dir("second") + "/profile.json"));
}

TEST_F(InitialWeights, HaveTheirSectionPrinted) {
  const Outcome printed = motley({"config", "--from", weights()});
  ASSERT_EQ(printed.status, 0) << printed.err;
  EXPECT_THAT(printed.out, AllOf(HasSubstr("[model]\n"), HasSubstr("heads = 4\n")));
  const std::string text = printed.out +
                           "[data]\nkind = \"synthetic\"\n[train]\nsteps = 1\nglobal_batch = 8\n"
                           "warmup_steps = 0\n";
  const std::string config = job_.folder().write("from.toml", text);
  const Outcome trained = motley({"train", config, "--run", job_.run_dir("from")});
  EXPECT_EQ(trained.status, 0) << trained.err;
  const Outcome json = motley({"config", "--from", weights(), "--json"});
  EXPECT_EQ(Json::parse(json.out).at("model").at("heads"), 4) << json.err;
  EXPECT_EQ(motley({"config", "--from", job_.run_dir("none")}).status, 3);
  EXPECT_EQ(motley({"config", config, "--from", weights()}).status, 2);
  EXPECT_EQ(motley({"config"}).status, 2);
}

}  // namespace
}  // namespace motley::test
