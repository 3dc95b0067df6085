// The command of a run's systemd unit, started as systemd would: without a terminal, with next to
// no environment, again after each end that the unit restarts.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/small_job.h"

namespace motley::test {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

constexpr int kSteps = 300;

// What systemd reads in a unit.
struct Unit {
  std::string working_folder;
  std::vector<std::string> command;
};

std::string value_of(const std::string& text, const std::string& key) {
  const std::size_t at = text.find("\n" + key + "=");
  if (at == text.npos) return "";
  const std::size_t begin = at + key.size() + 2;
  return text.substr(begin, text.find('\n', begin) - begin);
}

// The words of a line of systemd, all in double quotes; '$$' and '%%' stand for one character.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  bool is_in_word = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      is_in_word = !is_in_word;
      if (is_in_word) words.emplace_back();
    } else if (is_in_word) {
      if (line[i] == '\\' || line[i] == '$' || line[i] == '%') ++i;
      words.back() += line[i];
    }
  }
  return words;
}

class Service : public testing::Test {
 protected:
  Service() { ::setenv("XDG_CONFIG_HOME", (job_.folder() / "config").c_str(), 1); }

  ~Service() override { ::unsetenv("XDG_CONFIG_HOME"); }

  [[nodiscard]] static std::vector<std::string> words() {
    return {"--stages", "2", "--set", fmt::format("train.steps={}", kSteps)};
  }

  [[nodiscard]] Unit installed_unit() const {
    std::vector<std::string> install = job_.train_words("run", words());
    install.insert(install.end(), {"--service", "--no-start"});
    const Outcome outcome = motley(install);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("loginctl enable-linger"));
    const std::string text = read_text(job_.folder() / "config/systemd/user/motley-run.service");
    return {value_of(text, "WorkingDirectory"), words_of(value_of(text, "ExecStart"))};
  }

  [[nodiscard]] pid_t start(Unit unit) const {
    const std::string messages = (job_.folder() / "messages").string();
    std::string path = "PATH=/usr/bin:/bin";
    std::string home = "HOME=" + job_.folder().path().string();
    char* environment[] = {path.data(), home.data(), nullptr};
    std::vector<char*> argv;
    for (std::string& word : unit.command) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::setsid();
    const int in = ::open("/dev/null", O_RDONLY);
    const int out = ::open(messages.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    const bool is_ready = ::dup2(in, 0) == 0 && ::dup2(out, 1) == 1 && ::dup2(out, 2) == 2 &&
                          ::chdir(unit.working_folder.c_str()) == 0;
    if (is_ready) ::execve(argv.front(), argv.data(), environment);
    ::_exit(127);
  }

  // The exit status, or 128 + signal.
  static int end_of(pid_t pid) {
    int status = 0;
    const bool has_ended = eventually([&] { return ::waitpid(pid, &status, WNOHANG) == pid; });
    if (!has_ended) ::kill(pid, SIGKILL);
    EXPECT_TRUE(has_ended);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  [[nodiscard]] bool trains_past(std::int64_t step) const {
    return eventually([&] {
      const std::string text = read_text(fs::path(job_.run_dir("run")) / "metrics.jsonl");
      return std::ranges::count(text, '\n') > step;
    });
  }

  [[nodiscard]] std::string messages() const { return read_text(job_.folder() / "messages"); }

  SmallJob job_;
};

TEST_F(Service, EndsWithTheRunWhateverHappensToIt) {
  const Unit unit = installed_unit();
  const pid_t first = start(unit);
  ASSERT_TRUE(trains_past(20)) << messages();
  ::kill(first, SIGTERM);  // systemctl stop
  EXPECT_EQ(end_of(first), 143) << messages();
  const pid_t second = start(unit);
  ASSERT_TRUE(trains_past(100)) << messages();
  ::kill(second, SIGKILL);  // out of memory
  EXPECT_EQ(end_of(second), 128 + SIGKILL);
  EXPECT_EQ(end_of(start(unit)), 0) << messages();
  EXPECT_EQ(end_of(start(unit)), 0) << "nothing is left to train: " << messages();
  EXPECT_THAT(messages(), HasSubstr(fmt::format("is complete: step {}", kSteps)));
  const Outcome undisturbed = job_.train("undisturbed", words());
  ASSERT_EQ(undisturbed.status, 0) << undisturbed.err;
  EXPECT_EQ(job_.parameter_hash("run", kSteps), job_.parameter_hash("undisturbed", kSteps));
}

TEST_F(Service, RefusesOptionsThatNeedTheUser) {
  for (const char* option : {"--resume", "--auto-resume", "--stop-after=5"}) {
    std::vector<std::string> refused = job_.train_words("run", words());
    refused.insert(refused.end(), {"--service", "--no-start", option});
    const Outcome outcome = motley(refused);
    EXPECT_EQ(outcome.status, 2) << option;
    EXPECT_THAT(outcome.err, HasSubstr("exclude each other"));
  }
  EXPECT_FALSE(fs::exists(job_.folder() / "config"));
}

TEST_F(Service, IsPrintedByADryRun) {
  std::vector<std::string> dry = job_.train_words("run", words());
  dry.insert(dry.end(), {"--service", "--dry-run"});
  const Outcome outcome = motley(dry);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(value_of(outcome.out, "ExecStart"), HasSubstr("\"--auto-resume\""));
  EXPECT_FALSE(fs::exists(job_.folder() / "config"));
}

}  // namespace
}  // namespace motley::test
