// The completion scripts for command lines, run by real shells.
#include "cli/guide/completion.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <sstream>

#include <gmock/gmock.h>

#include "cli/guide/guide.h"
#include "tests/checkpoint/fixture.h"

namespace motley {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

using Words = std::vector<std::string>;

// The output lines of a shell that runs the completion script and then these commands.
Words lines_of(const std::string& shell, const std::string& commands) {
  const testing::TempFolder folder;
  testing::write_bytes(folder.path() / "script",
                       completion_script(shell, completion_table()) + commands);
  const std::string command = fmt::format(
      "cd '{}' && mkdir sub && touch job.toml && {} script 2>&1", folder.path().string(), shell);
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string all;
  char block[4096];
  for (std::size_t count = 0; (count = std::fread(block, 1, sizeof block, pipe)) > 0;) {
    all.append(block, count);
  }
  EXPECT_EQ(::pclose(pipe), 0) << shell << ": " << all;
  Words lines;
  std::istringstream stream(all);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Bash's completions of the last word of each command line, one list after the other.
Words bash_offers(const std::vector<Words>& command_lines) {
  // Bash refuses compopt outside of a completion.
  std::string commands = "compopt() { :; }\n";
  for (const Words& words : command_lines) {
    std::string array = "motley";
    for (const std::string& word : words) array += fmt::format(" '{}'", word);
    commands += fmt::format(
        "COMP_WORDS=({}) COMP_CWORD={}\n_motley\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n", array,
        words.size());
  }
  return lines_of("bash", commands);
}

Words offers(const Words& words) {
  Words lines = bash_offers({words});
  std::erase(lines, "");
  return lines;
}

Words option_words(const CommandSpec& spec) {
  Words words;
  for (const OptionSpec& option : options_with_help(spec)) words.push_back("--" + option.name);
  return words;
}

Words split(const std::string& name, const std::string& more) {
  Words words;
  std::istringstream stream(name);
  for (std::string word; stream >> word;) words.push_back(word);
  words.push_back(more);
  return words;
}

TEST(Completion, InBashOffersEveryCommand) {
  Words firsts = {"help"};
  for (const FirstWord& first : first_words(all_specs())) firsts.push_back(first.word);
  EXPECT_THAT(offers({""}), UnorderedElementsAreArray(firsts));
  EXPECT_THAT(offers({"tr"}), UnorderedElementsAreArray({"train"}));
  EXPECT_THAT(offers({"ckpt", "ver"}), UnorderedElementsAreArray({"verify"}));
  EXPECT_THAT(offers({"help", "ckpt", "ver"}), UnorderedElementsAreArray({"verify"}));
  EXPECT_THAT(offers({"help", "tr"}), UnorderedElementsAreArray({"train"}));
  EXPECT_THAT(offers({"nothing", ""}), IsEmpty());
}

TEST(Completion, InBashOffersTheOptionsOfEachCommandAndNoOthers) {
  std::vector<Words> asked;
  Words wanted;
  for (const CommandSpec& spec : all_specs()) {
    asked.push_back(split(spec.name, "--"));
    for (const std::string& option : option_words(spec)) wanted.push_back(option);
  }
  EXPECT_EQ(bash_offers(asked), wanted);
}

TEST(Completion, InBashOffersWhatAnOptionTakes) {
  EXPECT_THAT(offers({"train", ""}), UnorderedElementsAreArray({"job.toml", "script", "sub"}));
  EXPECT_THAT(offers({"train", "--cluster", "job"}), UnorderedElementsAreArray({"job.toml"}));
  EXPECT_THAT(offers({"train", "--cluster", "=", "job"}), UnorderedElementsAreArray({"job.toml"}));
  EXPECT_THAT(offers({"train", "--cluster", "="}), Contains("job.toml"));
  EXPECT_THAT(offers({"profile", "-o", "job"}), UnorderedElementsAreArray({"job.toml"}));
  EXPECT_THAT(offers({"train", "--run", ""}), UnorderedElementsAreArray({"sub"}));
  EXPECT_THAT(offers({"train", "--stages", ""}), IsEmpty());
  EXPECT_THAT(offers({"train", "--set", "train.l"}), UnorderedElementsAreArray({"train.lr="}));
  EXPECT_THAT(offers({"completion", "f"}), UnorderedElementsAreArray({"fish"}));
}

TEST(Completion, InFishOffersTheSame) {
  if (!std::filesystem::exists("/usr/bin/fish")) GTEST_SKIP() << "needs fish";
  const auto fish_offers = [](const std::string& line) {
    Words words = lines_of("fish", fmt::format("complete -C '{}'\n", line));
    for (std::string& word : words) word = word.substr(0, word.find('\t'));
    return words;
  };
  EXPECT_THAT(fish_offers("motley tr"), UnorderedElementsAreArray({"train"}));
  EXPECT_THAT(fish_offers("motley ckpt ver"), UnorderedElementsAreArray({"verify"}));
  EXPECT_THAT(fish_offers("motley help ckpt ver"), UnorderedElementsAreArray({"verify"}));
  for (const CommandSpec& spec : all_specs()) {
    EXPECT_THAT(fish_offers(fmt::format("motley {} --", spec.name)),
                UnorderedElementsAreArray(option_words(spec)));
  }
  EXPECT_THAT(fish_offers("motley train --cluster job"), UnorderedElementsAreArray({"job.toml"}));
  EXPECT_THAT(fish_offers("motley train --set train.l"), Contains("train.lr="));
}

// zsh completes only on a terminal; this checks only that it can parse the script.
TEST(Completion, IsReadByZsh) {
  if (!std::filesystem::exists("/usr/bin/zsh")) GTEST_SKIP() << "needs zsh";
  const Words said = lines_of("zsh", "whence -w _motley _motley_key\n");
  EXPECT_THAT(said, Contains("_motley: function"));
}

TEST(Completion, NamesEveryOptionInEveryShell) {
  for (const std::string& shell : completed_shells()) {
    const std::string script = completion_script(shell, completion_table());
    for (const CommandSpec& spec : all_specs()) {
      for (const OptionSpec& option : spec.options) {
        EXPECT_THAT(script, ::testing::HasSubstr(option.name)) << shell << " " << spec.name;
      }
    }
  }
}

TEST(Completion, KnowsWhichValuesAreFiles) {
  for (const char* name : {"FILE", "FOLDER", "PATH", "OUT", "CONFIG", "PLAN", "RUN", "A"}) {
    EXPECT_EQ(completion_kind(name), CompletionKind::kPath) << name;
  }
  EXPECT_EQ(completion_kind("DIR"), CompletionKind::kFolder);
  EXPECT_EQ(completion_kind("KEY=VALUE"), CompletionKind::kKey);
  EXPECT_EQ(completion_kind("N"), CompletionKind::kAnything);
}

}  // namespace
}  // namespace motley
