// The completions of command lines, and the scripts that show them in real shells.
#include "cli/guide/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <sstream>
#include <string_view>

#include <gmock/gmock.h>

#include "cli/guide/guide.h"
#include "tests/checkpoint/fixture.h"
#include "tests/support/command_output.h"

namespace motley {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAreArray;

using Words = std::vector<std::string>;

Completions completed(const Words& words) {
  return complete(words, all_specs(), config_keys());
}

Words offers(const Words& words) {
  Words all;
  for (const CompletedWord& candidate : completed(words).candidates) all.push_back(candidate.word);
  return all;
}

CompletionKind kind_of(const Words& words) {
  EXPECT_THAT(offers(words), IsEmpty());
  return completed(words).kind;
}

// The words of a command's name, and one more.
Words split(const std::string& name, const std::string& more) {
  Words words;
  std::istringstream stream(name);
  for (std::string word; stream >> word;) words.push_back(word);
  words.push_back(more);
  return words;
}

Words option_words(const CommandSpec& spec) {
  Words words;
  for (const OptionSpec& option : options_with_help(spec)) words.push_back("--" + option.name);
  return words;
}

TEST(Completion, OffersEveryCommand) {
  for (const CommandSpec& spec : all_specs()) {
    Words words = split(spec.name, "");
    words.pop_back();
    for (const bool explains : {false, true}) {
      Words before = {words.begin(), words.end() - 1};
      if (explains) before.insert(before.begin(), "help");
      before.emplace_back();
      EXPECT_THAT(offers(before), Contains(words.back())) << spec.name;
    }
  }
  EXPECT_THAT(offers({""}), Contains("help"));
  EXPECT_THAT(offers({}), Contains("train"));
  EXPECT_THAT(offers({"help", ""}), Not(Contains("help")));
  EXPECT_THAT(offers({"help", "train", ""}), IsEmpty());
  EXPECT_THAT(offers({"help", "-"}), IsEmpty());
  EXPECT_THAT(offers({"nothing", ""}), IsEmpty());
  EXPECT_THAT(offers({"ckpt", "nothing", ""}), IsEmpty());
  EXPECT_THAT(offers({"-"}), ElementsAre("--help", "--version"));
}

TEST(Completion, DescribesCommandsOptionsAndKeys) {
  const auto description = [](const Words& words, const std::string& word) {
    for (const CompletedWord& candidate : completed(words).candidates) {
      if (candidate.word == word) return candidate.description;
    }
    return std::string("not offered");
  };
  for (const CommandSpec& spec : all_specs()) {
    const bool is_family = spec.name.find(' ') != std::string::npos;
    const Words words = is_family ? Words{split(spec.name, "")[0], ""} : Words{""};
    EXPECT_EQ(description(words, split(spec.name, "")[is_family ? 1 : 0]), spec.summary);
  }
  EXPECT_EQ(description({""}, "bench"), "codec, transport, allreduce");
  EXPECT_EQ(description({"train", "-"}, "--help"), "show this text");
  EXPECT_EQ(description({"train", "--set", ""}, "train.lr="), "highest learning rate");
}

TEST(Completion, OffersTheOptionsOfEachCommandAndNoOthers) {
  for (const CommandSpec& spec : all_specs()) {
    EXPECT_EQ(offers(split(spec.name, "--")), option_words(spec)) << spec.name;
  }
}

TEST(Completion, OffersAnOptionOnceUnlessItMayBeRepeated) {
  const Words again = offers({"train", "--stages", "2", "--set", "train.lr=1", "--resume", "-"});
  EXPECT_THAT(again, Not(Contains("--stages")));
  EXPECT_THAT(again, Not(Contains("--resume")));
  EXPECT_THAT(again, Contains("--set"));
  EXPECT_THAT(offers({"profile", "-o", "file", "-"}), Not(Contains("--output")));
}

TEST(Completion, KnowsWhatAnOptionTakes) {
  EXPECT_EQ(kind_of({"train", "--cluster", "job"}), CompletionKind::kFiles);
  EXPECT_EQ(kind_of({"profile", "-o", "job"}), CompletionKind::kFiles);
  EXPECT_EQ(kind_of({"train", "--run", ""}), CompletionKind::kFolders);
  EXPECT_EQ(kind_of({"train", "--stages", ""}), CompletionKind::kWords);
  EXPECT_THAT(offers({"probe", "--transport", ""}), ElementsAre("auto", "ucx", "gloo", "tcp"));
  EXPECT_THAT(offers({"probe", "--encrypt", ""}), ElementsAre("auto", "always", "never"));
  EXPECT_EQ(completed({"train", "--set", "train.l"}).kind, CompletionKind::kKeys);
  EXPECT_EQ(offers({"train", "--set", ""}).size(), config_keys().size());
}

TEST(Completion, OffersTheChoicesOfAKey) {
  EXPECT_THAT(offers({"train", "--set", "parallel.schedule="}),
              ElementsAre("auto", "gpipe", "1f1b", "split"));
  EXPECT_EQ(completed({"train", "--set", "parallel.schedule=g"}).prefix, "parallel.schedule=");
  EXPECT_THAT(offers({"train", "--set", "run.tensorboard="}), ElementsAre("true", "false"));
  EXPECT_THAT(offers({"train", "--set", "train.lr="}), IsEmpty());
  EXPECT_THAT(offers({"train", "--set", "no.key="}), IsEmpty());
}

TEST(Completion, OfAValueInTheWordOfItsOptionHasAPrefix) {
  EXPECT_EQ(completed({"train", "--cluster=job"}).kind, CompletionKind::kFiles);
  EXPECT_EQ(completed({"train", "--cluster=job"}).prefix, "--cluster=");
  EXPECT_EQ(completed({"profile", "-ojob"}).prefix, "-o");
  EXPECT_EQ(completed({"train", "--set=comm.encrypt=a"}).prefix, "--set=comm.encrypt=");
  EXPECT_THAT(offers({"train", "--resume=x"}), IsEmpty());
  EXPECT_THAT(offers({"train", "--nothing=x"}), IsEmpty());
}

// As bash splits them.
TEST(Completion, JoinsSplitWords) {
  EXPECT_EQ(completed({"train", "--cluster", "=", "job"}).prefix, "--cluster=");
  EXPECT_EQ(completed({"train", "--cluster", "="}).kind, CompletionKind::kFiles);
  EXPECT_EQ(completed({"train", "--set", "train.lr", "=", "1", ""}).kind, CompletionKind::kFiles);
  EXPECT_EQ(completed({"generate", "--device", "cuda", ":", "0", ""}).kind, CompletionKind::kFiles);
}

TEST(Completion, OffersAsManyOperandsAsTheCommandTakes) {
  EXPECT_EQ(kind_of({"train", ""}), CompletionKind::kFiles);
  EXPECT_EQ(kind_of({"train", "job.toml", ""}), CompletionKind::kWords);
  EXPECT_EQ(kind_of({"train", "--stages", "2", ""}), CompletionKind::kFiles);
  EXPECT_EQ(kind_of({"ckpt", "diff", "a", ""}), CompletionKind::kFiles);
  EXPECT_EQ(kind_of({"ckpt", "diff", "a", "b", ""}), CompletionKind::kWords);
  EXPECT_EQ(kind_of({"train", "--", "-"}), CompletionKind::kFiles);
  EXPECT_THAT(offers({"completion", "f"}), ElementsAre("bash", "zsh", "fish"));
}

TEST(Completion, KnowsEveryNameOfAPathInTheHelp) {
  for (const CommandSpec& spec : all_specs()) {
    for (const OptionSpec& option : spec.options) {
      if (!option.value.starts_with("F") && option.value != "PATH" && option.value != "DIR")
        continue;
      EXPECT_NE(kind_of(split(spec.name + " --" + option.name, "")), CompletionKind::kWords)
          << spec.name << " " << option.name;
    }
  }
}

TEST(CompletionText, HasKindPrefixAndALineForEachCandidate) {
  EXPECT_EQ(completion_text(completed({"completion", ""})), "words\n\nbash\t\nzsh\t\nfish\t\n");
  EXPECT_EQ(completion_text(completed({"train", "--run=a"})), "folders\n--run=\n");
}

// The output lines of a shell that runs the completion script between these commands, in a folder
// with the file job.toml and the folder sub.
class CompletionScripts : public ::testing::Test {
 protected:
  // A native shell cannot run a program that needs an emulator.
  void SetUp() override {
    if (std::string_view(MOTLEY_PROGRAM_DIR).empty()) GTEST_SKIP() << "cross-compiled";
  }

  static Words lines_of(const std::string& shell,
                        const std::string& commands,
                        const std::string& before = "") {
    const testing::TempFolder folder;
    std::string script;
    for (const CompletionScript& each : completion_scripts()) {
      if (each.shell == shell) script = each.text;
    }
    testing::write_bytes(folder.path() / "script", before + script + commands);
    const std::string command =
        fmt::format("cd '{}' && mkdir sub && touch job.toml && PATH='{}':$PATH {} {} script 2>&1",
                    folder.path().string(), MOTLEY_PROGRAM_DIR, shell, shell == "zsh" ? "-f" : "");
    const auto [status, all] = output_of(command);
    EXPECT_EQ(status, 0) << shell << ": " << all;
    Words lines;
    std::istringstream stream(all);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }

  // Bash's completions of the last word.
  static Words bash_offers(const Words& words, const std::string& before = "") {
    std::string array = "motley";
    for (const std::string& word : words) array += fmt::format(" '{}'", word);
    // Bash refuses compopt outside of a completion.
    Words lines = lines_of("bash", fmt::format("compopt() {{ echo \"$1 $2\"; }}\n{}\n"
                                               "COMP_WORDS=({}) COMP_CWORD={}\n_motley motley\n"
                                               "printf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
                                               before, array, words.size()));
    std::erase(lines, "");
    return lines;
  }

  // Those of fish, without descriptions.
  static Words fish_offers(const std::string& line) {
    Words words = lines_of("fish", fmt::format("complete -C '{}'\n", line));
    for (std::string& word : words) word = word.substr(0, word.find('\t'));
    return words;
  }
};

TEST_F(CompletionScripts, OfBashShowTheCandidatesThatFit) {
  EXPECT_THAT(bash_offers({"tr"}), ElementsAre("train"));
  EXPECT_THAT(bash_offers({"ckpt", "ver"}), ElementsAre("verify"));
  EXPECT_THAT(bash_offers({"help", "ckpt", "ver"}), ElementsAre("verify"));
  EXPECT_THAT(bash_offers({"train", "--clu"}), ElementsAre("--cluster"));
  EXPECT_THAT(bash_offers({"train", "--set", "train.lr"}), ElementsAre("-o nospace", "train.lr="));
  EXPECT_THAT(bash_offers({"train", "--set", "comm.encrypt", "=", "al"}), ElementsAre("always"));
  EXPECT_THAT(bash_offers({"train", "--set", "comm.encrypt", "="}),
              ElementsAre("auto", "always", "never"));
  EXPECT_THAT(bash_offers({"probe", "--transport", "t"}), ElementsAre("tcp"));
  EXPECT_THAT(bash_offers({"nothing", ""}), IsEmpty());
}

TEST_F(CompletionScripts, OfBashCompleteFiles) {
  EXPECT_THAT(bash_offers({"train", "job"}), ElementsAre("-o filenames", "job.toml"));
  EXPECT_THAT(bash_offers({"train", "--cluster", "=", "job"}),
              ElementsAre("-o filenames", "job.toml"));
  EXPECT_THAT(bash_offers({"train", "--cluster", "="}),
              IsSupersetOf({"-o filenames", "job.toml", "sub"}));
  EXPECT_THAT(bash_offers({"train", "--run", ""}), ElementsAre("-o filenames", "sub"));
  EXPECT_THAT(bash_offers({"train", "--cluster=job"}, "COMP_WORDBREAKS=' '"),
              ElementsAre("-o filenames", "--cluster=job.toml"));
}

TEST_F(CompletionScripts, OfBashAreSilentWithoutTheProgram) {
  EXPECT_THAT(bash_offers({"tr"}, "PATH=/nowhere"), IsEmpty());
}

TEST_F(CompletionScripts, OfFishAreSilentWithoutTheProgram) {
  if (!std::filesystem::exists("/usr/bin/fish")) GTEST_SKIP() << "needs fish";
  EXPECT_THAT(fish_offers("/nowhere/motley tr"), IsEmpty());
}

TEST_F(CompletionScripts, OfFishShowTheSame) {
  if (!std::filesystem::exists("/usr/bin/fish")) GTEST_SKIP() << "needs fish";
  EXPECT_THAT(fish_offers("motley tr"), Contains("train"));
  EXPECT_THAT(fish_offers("motley ckpt ver"), ElementsAre("verify"));
  EXPECT_THAT(fish_offers("motley help ckpt ver"), ElementsAre("verify"));
  EXPECT_THAT(fish_offers("motley train --clu"), ElementsAre("--cluster"));
  EXPECT_THAT(fish_offers("motley train job"), ElementsAre("job.toml"));
  EXPECT_THAT(fish_offers("motley train --cluster job"), ElementsAre("job.toml"));
  EXPECT_THAT(fish_offers("motley train --cluster=job"), ElementsAre("--cluster=job.toml"));
  EXPECT_THAT(fish_offers("motley train --run "), ElementsAre("sub/"));
  EXPECT_THAT(fish_offers("motley train --run=s"), ElementsAre("--run=sub/"));
  EXPECT_THAT(fish_offers("motley train --set train.lr"), Contains("train.lr="));
  EXPECT_THAT(fish_offers("motley train --set comm.encrypt=al"),
              ElementsAre("comm.encrypt=always"));
  EXPECT_THAT(fish_offers("motley train --stages "), IsEmpty());
  EXPECT_THAT(lines_of("fish", "complete -C 'motley tr'\n"),
              Contains("train\ttrain a model on this machine, or on a cluster"));
}

// zsh completes only on a terminal; here its functions print what they are to complete.
TEST_F(CompletionScripts, OfZshShowTheSame) {
  if (!std::filesystem::exists("/usr/bin/zsh")) GTEST_SKIP() << "needs zsh";
  const auto zsh_offers = [](const Words& words) {
    return lines_of("zsh",
                    fmt::format("words=(motley '{}') CURRENT={} PREFIX='{}'\n_motley\n",
                                fmt::join(words, "' '"), words.size() + 1, words.back()),
                    "compdef() {}\n"
                    "compset() { [[ $2 == 0 ]] || print prefix $2 }\n"
                    "_files() { print files $* }\n"
                    "_describe() { print -l -- $1 \"${(@P)2}\" ${3+nospace} }\n");
  };
  EXPECT_THAT(zsh_offers({"tr"}), Contains("train:train a model on this machine, or on a cluster"));
  EXPECT_THAT(zsh_offers({"ckpt", "ver"}), Contains(::testing::StartsWith("verify:")));
  EXPECT_THAT(zsh_offers({"help", "ckpt", "ver"}), Contains(::testing::StartsWith("verify:")));
  EXPECT_THAT(zsh_offers({"train", "--clu"}), Contains(::testing::StartsWith("--cluster:")));
  EXPECT_THAT(zsh_offers({"train", "job"}), ElementsAre("files"));
  EXPECT_THAT(zsh_offers({"train", "--cluster=job"}), ElementsAre("prefix 10", "files"));
  EXPECT_THAT(zsh_offers({"train", "--run", ""}), ElementsAre("files -/"));
  EXPECT_THAT(zsh_offers({"train", "--set", "train.l"}),
              IsSupersetOf({"key", "train.lr=:highest learning rate", "nospace"}));
  EXPECT_THAT(zsh_offers({"train", "--set", "comm.encrypt=al"}),
              ElementsAre("prefix 13", "word", "auto", "always", "never"));
  EXPECT_THAT(zsh_offers({"train", "--stages", ""}), ElementsAre("word"));
}

}  // namespace
}  // namespace motley
