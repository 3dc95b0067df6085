// Every mistake is found before a worker starts on any machine: each case runs a `motley` with a
// worker that records that it was started.
#include <functional>
#include <utility>

#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

struct Mistake {
  std::string name;
  std::vector<std::string> words;  // of the command line
  int status;
  std::vector<std::string> parts;  // of the message
};

class EarlyMistakes : public testing::Test {
 protected:
  // A cluster of two machines with these lines in their entries.
  [[nodiscard]] std::string cluster(const std::string& name,
                                    const std::string& left,
                                    const std::string& right) const {
    return job_.folder().write(name, "[[machine]]\nname = \"left\"\n" + left +
                                         "\n[[machine]]\nname = \"right\"\n" + right + "\n");
  }

  [[nodiscard]] std::vector<std::string> train(const std::vector<std::string>& extra) const {
    return job_.train_words("run", extra);
  }

  [[nodiscard]] std::string config() const { return train({}).at(1); }

  static void expect_found_early(const std::vector<Mistake>& mistakes) {
    const MotleyWithoutWorker program;
    for (const Mistake& mistake : mistakes) {
      SCOPED_TRACE(mistake.name);
      const Outcome outcome = program.run(mistake.words);
      EXPECT_EQ(outcome.status, mistake.status) << outcome.err;
      EXPECT_NE(outcome.err.find("motley: error: "), std::string::npos) << outcome.err;
      for (const std::string& part : mistake.parts) {
        EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " in\n" << outcome.err;
      }
      ASSERT_FALSE(program.worker_was_started()) << outcome.err;
    }
  }

  SmallJob job_;
};

// Otherwise the other tests could not fail.
TEST_F(EarlyMistakes, AWorkerThatStartsIsNoticed) {
  const MotleyWithoutWorker program;
  EXPECT_EQ(program.run(train({})).status, 4);
  EXPECT_TRUE(program.worker_was_started());
}

TEST_F(EarlyMistakes, OfWhatThePlanIsToBe) {
  const std::string two = cluster("two.toml", "shell = []", "shell = []");
  expect_found_early({
      {"stages", train({"--stages", "500"}), 3, {"500 stages for 6 layers"}},
      {"stages to plan", {"plan", config(), "--stages", "500"}, 3, {"500 stages for 6 layers"}},
      {"what if",
       {"plan", config(), "--what-if", "add=nobody"},
       2,
       {"no machine is named 'nobody'"}},
      {"devices", train({"--cluster", two, "--stages", "3"}), 3, {"3 stages for 2 devices"}},
      {"cuts", train({"--set", "parallel.cuts=[9]"}), 3, {"impossible cut at layer 9"}},
      {"cuts and stages",
       train({"--stages", "3", "--set", "parallel.cuts=[2]"}),
       3,
       {"3 stages and 1 cuts"}},
      {"micro-batches",
       train({"--set", "train.global_batch=65536", "--set", "train.micro_batch=1"}),
       3,
       {"65536 micro-batches"}},
      {"machine of a pin", train({"--pin", "never lokal"}), 3, {"lokal", "'local'"}},
      {"layer of a pin", train({"--pin", "layer h.0.atn on local"}), 3, {"h.0.atn"}},
      {"no machine left", train({"--pin", "never local"}), 3, {"the pins exclude every machine"}},
      {"too few machines left",
       train({"--cluster", two, "--stages", "2", "--pin", "never left"}),
       3,
       {"2 stages for 1 devices"}},
      {"codec", train({"--set", "compression.gradients=gzip"}), 3, {"gzip"}},
      {"plan and stages",
       train({"--plan", "none.json", "--stages", "2"}),
       2,
       {"exclude each other"}},
      {"what was learned", {"plan", config(), "--learn", "/nonexistent"}, 3, {"/nonexistent"}},
  });
}

TEST_F(EarlyMistakes, OfFilesAndFolders) {
  job_.folder().write("report.json", "{}");  // a file that a finished run leaves
  expect_found_early({
      {"data",
       train({"--set", "data.kind=text", "--set", "data.path=/none.txt"}),
       8,
       {"data.path: ", "/none"}},
      {"initial weights", train({"--set", "model.init_from=/no/weights"}), 7, {"/no/weights"}},
      {"nothing to resume", train({"--resume"}), 3, {"no checkpoint"}},
      {"no folder", {"train", config(), "--run", "/proc/no/run"}, 7, {"/proc/no"}},
      {"a run lies there",
       {"train", config(), "--run", job_.folder().path().string()},
       3,
       {"already holds a run"}},
      {"output of plan", {"plan", config(), "-o", "/no/plan.json"}, 7, {"/no/plan.json"}},
      {"output of profile", {"profile", config(), "-o", "/no/p.json"}, 7, {"/no/p.json"}},
      {"output is a folder",
       {"profile", config(), "-o", job_.folder().path().string()},
       7,
       {"directory"}},
      {"output of probe",
       {"probe", "--cluster",
        cluster("two.toml", "address = \"127.0.0.1\"", "address = \"127.0.0.1\""), "-o",
        "/no/links.json"},
       7,
       {"/no/links.json"}},
  });
}

TEST_F(EarlyMistakes, OfMachinesThatAreNotThere) {
  const std::string off = cluster("off.toml", "shell = [\"false\"]\naddress = \"127.0.0.1\"",
                                  "shell = [\"sh\", \"-c\", \"echo no route >&2; exit 255\"]\n"
                                  "address = \"127.0.0.1\"");
  const std::string without =
      cluster("without.toml", "motley_dir = \"/no/motley\"\naddress = \"127.0.0.1\"",
              "shell = [\"env\"]\naddress = \"127.0.0.1\"");
  const std::string gpu = cluster("gpu.toml", "devices = [\"gpu:0\"]", "shell = []");
  const std::string strangers =
      cluster("strangers.toml", "shell = [\"env\"]\naddress = \"192.0.2.1\"",
              "shell = [\"env\"]\naddress = \"192.0.2.2\"");
  const std::vector<std::string> both = {"left", "right: ", "no route"};
  expect_found_early({
      {"launch", {"launch", config(), "--cluster", off, "--run", job_.run_dir("a")}, 4, both},
      {"plan", {"plan", config(), "--cluster", off}, 4, both},
      {"profile", {"profile", config(), "--cluster", off}, 4, both},
      {"probe", {"probe", "--cluster", off}, 4, both},
      {"bench transport", {"bench", "transport", "--cluster", off}, 4, both},
      {"bench allreduce", {"bench", "allreduce", "--cluster", off}, 4, both},
      {"worker", train({"--cluster", without}), 4, {"left", "/no/motley/motley-stage"}},
      {"device", train({"--cluster", gpu}), 3, {"gpu:0"}},
      {"transport",
       train({"--cluster", strangers, "--set", "comm.transport=gloo"}),
       3,
       {"gloo neither encrypts"}},
  });
}

TEST_F(EarlyMistakes, OfOptions) {
  const std::string two = cluster("two.toml", "address = \"127.0.0.1\"", "address = \"127.0.0.1\"");
  expect_found_early({
      {"stop", train({"--stop-after", "never"}), 2, {"--stop-after"}},
      {"transport of probe", {"probe", "--cluster", two, "--transport", "tpc"}, 3, {"tpc"}},
      {"codec of a sum", {"bench", "allreduce", "--codec", "gzip"}, 3, {"gzip"}},
      {"the second codec", {"bench", "codec", "--codec", "fp16", "--codec", "gzip"}, 3, {"gzip"}},
      {"no run", {"generate", job_.run_dir("none")}, 3, {"no such file or folder"}},
      {"nothing to generate from",
       {"generate", job_.folder().path().string()},
       3,
       {"has no checkpoint", "ckpt list"}},
      {"no run to list", {"ckpt", "list", job_.run_dir("none")}, 3, {"no such file or folder"}},
  });
}

TEST_F(EarlyMistakes, OfWhatARunLeft) {
  ASSERT_EQ(job_.train("run", {"--stages", "2", "--stop-after", "2"}).status, 0);
  const std::string run = job_.run_dir("run");
  const auto changed = [&](const std::function<void(Json&)>& change) {
    return job_.changed_plan("run", change);
  };
  const auto with_plan = [&](const std::string& plan) {
    return job_.train_words("other", {"--plan", plan});
  };
  const std::string profile = run + "/profile.json";
  expect_found_early({
      {"steps", train({"--resume", "--stop-after", "1"}), 2, {"--stop-after 1 is in the past"}},
      {"prompt", {"generate", run, "--prompt", "7,300"}, 8, {"300", "0 to 255"}},
      {"profile of another model",
       job_.train_words("other",
                        {"--profile", profile, "--set", "model.width=48", "--stages", "1"}),
       3,
       {"the profile of local/cpu lacks layer"}},
      {"picture",
       {"simulate", run + "/plan.json", "--config", config(), "--profile", profile, "--svg",
        "/no/step.svg"},
       7,
       {"/no/step.svg"}},
  });
  expect_found_early({{"codec of a plan",
                       with_plan(changed([](Json& plan) { plan["chunks"][0]["codec"] = "gzip"; })),
                       3,
                       {"gzip"}}});
  expect_found_early({{"layers of a plan",
                       with_plan(changed([](Json& plan) {
                         Json& last = plan["chunks"].back();
                         last["layer_count"] = last["layer_count"].get<int>() + 1;
                       })),
                       3,
                       {"the plan has 7 layers", "the model has 6"}}});
  expect_found_early({{"device of a plan",
                       with_plan(changed([](Json& plan) { plan["ranks"][1]["device"] = "gpu:0"; })),
                       3,
                       {"gpu:0"}}});
  expect_found_early({{"machine of a plan",
                       with_plan(changed([](Json& plan) { plan["ranks"][1]["machine"] = "box"; })),
                       3,
                       {"box"}}});
}

}  // namespace
}  // namespace motley::test
