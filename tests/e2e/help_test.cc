// Guidance for new users: help, suggestions, and messages that quote the user's input.
#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>

#include <gmock/gmock.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Help, ExplainsACommandHoweverItIsAskedFor) {
  const Outcome long_form = motley({"plan", "--help"});
  ASSERT_EQ(long_form.status, 0);
  EXPECT_THAT(long_form.out, HasSubstr("Usage: motley plan CONFIG"));
  EXPECT_EQ(motley({"help", "plan"}).out, long_form.out);
  EXPECT_EQ(motley({"--help", "plan"}).out, long_form.out);
  EXPECT_THAT(motley({"help", "ckpt", "show"}).out, HasSubstr("Usage: motley ckpt show RUN"));
}

// They differ only in the machines.
TEST(Help, LaunchTakesWhatTrainTakesAndOptionsForMachines) {
  const std::vector<std::string> of_machines = {"--invite",   "--listen",   "--valid",
                                                "--from-env", "--machines", "--secret-file"};
  const auto options = [&](const char* command) {
    const std::string text = motley({"help", command}).out;
    std::istringstream lines(text.substr(text.find("\nOptions\n")));
    std::string kept;
    for (std::string line; std::getline(lines, line);) {
      const auto is_in_line = [&](const std::string& option) {
        return line.find(option) != std::string::npos;
      };
      if (std::ranges::any_of(of_machines, is_in_line)) continue;
      // The columns depend on the longest option.
      std::istringstream words(line);
      for (std::string word; words >> word;) kept += word + " ";
    }
    return kept;
  };
  for (const std::string& option : of_machines) {
    EXPECT_THAT(motley({"help", "launch"}).out, HasSubstr("\n      " + option + " "));
  }
  EXPECT_THAT(options("train"), HasSubstr("--stages N"));
  EXPECT_EQ(options("launch"), options("train"));
}

TEST(Help, ListsTheCommandsOfAFamily) {
  for (const std::string family : {"bench", "ckpt"}) {
    const Outcome bare = motley({family});
    EXPECT_EQ(bare.status, 2);
    EXPECT_EQ(bare.out, "");
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{family, "--help"}, {family, "-h"}, {"help", family}}) {
      const Outcome asked = motley(words);
      EXPECT_EQ(asked.status, 0) << asked.err;
      EXPECT_EQ(asked.out, bare.err);
    }
  }
  EXPECT_THAT(motley({"help", "bench"}).out,
              AllOf(HasSubstr("bench codec"), HasSubstr("bench transport")));
  for (const char* verb :
       {"list", "show", "verify", "diff", "reshard", "export", "import", "prune"}) {
    EXPECT_THAT(motley({"help", "ckpt"}).out, HasSubstr(std::string("ckpt ") + verb));
  }
}

TEST(Help, SuggestsWhatWasMeant) {
  const auto expect_meant = [](const std::vector<std::string>& words, const std::string& meant) {
    const Outcome outcome = motley(words);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err, HasSubstr("did you mean " + meant));
  };
  expect_meant({"trian"}, "'motley train'");
  expect_meant({"help", "trian"}, "'motley train'");
  expect_meant({"ckpt", "lsit"}, "'motley ckpt list'");
  expect_meant({"bench", "codecs"}, "'motley bench codec'");
  expect_meant({"train", "gpt.toml", "--stges", "2"}, "--stages");
  expect_meant({"plan", "gpt.toml", "--clutser=home.toml"}, "--cluster");
  EXPECT_THAT(motley({"xyzzy"}).err, HasSubstr("motley --help lists the commands"));
  EXPECT_THAT(motley({"plan", "a.toml", "--xyzzy"}).err,
              AllOf(HasSubstr("motley plan has no option --xyzzy"),
                    HasSubstr("motley plan --help lists the options")));
}

TEST(Help, OfEveryCommandFitsATerminalAndNamesNoRunThatIsNotThere) {
  const std::string list = motley({"--help"}).out;
  int commands = 0;
  for (std::size_t at = list.find("\n  "); at != std::string::npos;
       at = list.find("\n  ", at + 1)) {
    const std::string name = list.substr(at + 3, list.find("  ", at + 3) - at - 3);
    std::vector<std::string> words{"help"};
    const std::size_t space = name.find(' ');
    words.push_back(name.substr(0, space));
    if (space != std::string::npos) words.push_back(name.substr(space + 1));
    const Outcome help = motley(words);
    EXPECT_EQ(help.status, 0) << name << help.err;
    EXPECT_THAT(help.out, AllOf(HasSubstr("Usage: motley " + name), Not(HasSubstr("quickstart"))));
    ++commands;
  }
  EXPECT_GE(commands, 22);
}

class OfARun : public testing::Test {
 protected:
  SmallJob job_;
};

TEST_F(OfARun, TheNewestCheckpointIsMeant) {
  ASSERT_EQ(job_.train("run", {"--set", "train.steps=6", "--set", "checkpoint.every=3"}).status, 0);
  const std::string run = job_.run_dir("run");
  const std::string newest = run + "/checkpoints/step-000006";
  EXPECT_EQ(motley({"ckpt", "show", run}).out, motley({"ckpt", "show", newest}).out);
  EXPECT_THAT(motley({"ckpt", "show", run}).out, HasSubstr("step-000006"));
  const Outcome verified = motley({"ckpt", "verify", run});
  EXPECT_EQ(verified.status, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("step-000006: intact"));
  const Outcome empty = motley({"ckpt", "show", job_.folder().path().string()});
  EXPECT_EQ(empty.status, 3);
  EXPECT_THAT(empty.err, AllOf(HasSubstr("has no checkpoint"), Not(HasSubstr("--resume"))));
}

// The plan and the checkpoint count the same parameters.
TEST_F(OfARun, TheParametersAreCountedOnce) {
  const Outcome trained = job_.train("run", {"--set", "train.steps=6"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Outcome shown = motley({"ckpt", "show", job_.run_dir("run"), "--json"});
  const double parameters = Json::parse(shown.out).at("parameters").get<double>();
  std::array<char, 32> thousands{};
  std::snprintf(thousands.data(), thousands.size(), "%.1f k", parameters / 1e3);
  EXPECT_THAT(trained.out, HasSubstr("model     " + std::string(thousands.data()) + " parameters"));
  const std::string first_row = trained.out.substr(trained.out.find("\n0 "));
  EXPECT_THAT(first_row.substr(0, first_row.find('\n', 1)), HasSubstr(thousands.data()));
}

TEST_F(OfARun, MistakesHaveTheirPlace) {
  const std::string config = job_.folder().write(
      "job3.toml", std::string(kSmallJob) + "[compression]\ngradients = \"gzip\"\n");
  for (const char* command : {"plan", "profile", "train"}) {
    const Outcome outcome = motley({command, config});
    EXPECT_EQ(outcome.status, 3);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("compression.gradients: "), HasSubstr("job3.toml:")));
  }
  EXPECT_THAT(job_.train("run", {"--set", "parallel.cuts=[9]"}).err,
              HasSubstr("parallel.cuts: impossible cut at layer 9, given by --set"));
}

// A machine that is off does not matter if the user excludes it.
TEST_F(OfARun, WhatAPinExcludesNeedNotBeThere) {
  const std::string config = job_.folder().write("job4.toml", kSmallJob);
  const std::string cluster = job_.folder().write("off.toml", R"(
[[machine]]
name = "here"
address = "127.0.0.1"
[[machine]]
name = "off"
address = "127.0.0.1"
shell = ["sh", "-c", "exit 255"]
)");
  EXPECT_EQ(motley({"plan", config, "--cluster", cluster}).status, 4);
  const Outcome plan = motley({"plan", config, "--cluster", cluster, "--pin", "never off"});
  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_THAT(plan.out, Not(HasSubstr("left out")));
  const std::vector<std::string> words = {"--cluster", cluster, "--pin",
                                          "never off", "--set", "train.steps=6"};
  std::vector<std::string> first = words;
  first.insert(first.end(), {"--stop-after", "3"});
  const Outcome begun = job_.train("run", first);
  EXPECT_EQ(begun.status, 0) << begun.err;
  std::vector<std::string> second = words;
  // Makes a new plan, with the pin.
  second.insert(second.end(), {"--resume", "--allow-changes", "--set", "train.micro_batch=4"});
  const Outcome resumed = job_.train("run", second);
  EXPECT_EQ(resumed.status, 0) << resumed.err;
}

TEST(Doctor, TellsOfAFolderThatIsNotThereYet) {
  const TemporaryFolder folder;
  const std::string missing = (folder / "not" / "there").string();
  const Outcome outcome = motley({"doctor", "--run", missing});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr(missing + " does not exist yet; its parent " + folder.path().string()));
}

}  // namespace
}  // namespace motley::test
