// A real run between machines of scripts/lan, over each transport, with a failure: how soon it
// ends, and with which message (docs/failures.md). Skipped without root and network namespaces, or
// if a LAN is up already.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "e2e/lan_machines.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using testing::ContainsRegex;

// For the end of all processes, and for a busy machine.
constexpr double kSlack_s = 3;

enum class Happening { kKilled, kFrozen, kCut };

struct Promise {
  const char* name;
  Happening happening;
  double within_s;
  const char* words;  // of the error message, as a regular expression
};

constexpr Promise kPromises[] = {
    {"killed", Happening::kKilled, 1,
     "stages? [0-9a-z ]+ .m[12]. was killed by signal 9 .Killed., during "},
    {"frozen", Happening::kFrozen, 10, "machine m[12] was lost, "},
    {"cut", Happening::kCut, 6, "machine m[12] was lost, |lost their connection"},
};

class DamageOnLan : public testing::TestWithParam<std::tuple<const char*, Promise>> {
 protected:
  static void SetUpTestSuite() { machines_ = std::make_unique<LanMachines>("--mbps 1000"); }

  static void TearDownTestSuite() { machines_.reset(); }

  void SetUp() override {
    if (!machines_->are_up()) GTEST_SKIP() << "needs root and a LAN of its own (scripts/lan)";
  }

  void TearDown() override {
    if (machines_->are_up()) plug_in("up");
  }

  static void plug_in(const char* state) {
    EXPECT_TRUE(shell(fmt::format("ip -n motley-sw link set port-m2 {}", state)));
  }

  // A run that takes hours, over both machines.
  [[nodiscard]] std::vector<std::string> words(const std::string& kind) const {
    const std::string text = LanMachines::cluster_text(kind != "tls");
    auto words = job_.train_words(
        "run", {"--cluster", job_.folder().write("cluster.toml", text), "--pin", "always m1",
                "--pin", "always m2", "--set", "train.steps=1000000", "--set", "comm.patience_s=4",
                "--set", fmt::format("comm.transport={}", kind == "tls" ? "tcp" : kind)});
    std::ranges::copy(SmallJob::measured_with({}, text), std::back_inserter(words));
    words.front() = "launch";
    return words;
  }

  // Some steps are done: all ranks are at work.
  [[nodiscard]] bool is_under_way() const {
    const std::string text =
        read_text(std::filesystem::path(job_.run_dir("run")) / "metrics.jsonl");
    return std::ranges::count(text, '\n') >= 10;
  }

  static void damage(Happening happening, pid_t worker) {
    if (happening == Happening::kCut) return plug_in("down");
    ASSERT_EQ(::kill(worker, happening == Happening::kKilled ? SIGKILL : SIGSTOP), 0);
  }

 private:
  static inline std::unique_ptr<LanMachines> machines_;
  SmallJob job_;
};

TEST_P(DamageOnLan, EndsTheRunInTimeInWordsAndCompletely) {
  const auto& [kind, promise] = GetParam();
  RunningMotley run(words(kind));
  ASSERT_TRUE(eventually([&] { return is_under_way(); })) << run.wait().err;
  const std::vector<pid_t> workers = run.workers();
  ASSERT_EQ(workers.size(), 2U);
  const double damaged_at_s = now_s();
  damage(promise.happening, workers[1]);
  const Outcome outcome = run.wait();
  const double took_s = now_s() - damaged_at_s;
  const auto at = outcome.err.find("motley: error");
  const std::string error = at == std::string::npos ? outcome.err : outcome.err.substr(at);
  std::printf("%s, %s: %.1f s, status %d\n%s\n", kind, promise.name, took_s, outcome.status,
              error.c_str());
  EXPECT_EQ(outcome.status, 4);
  EXPECT_LT(took_s, promise.within_s + kSlack_s);
  EXPECT_THAT(error, ContainsRegex(promise.words));
  for (const pid_t pid : workers) {
    EXPECT_TRUE(eventually([&] { return !process_exists(pid); })) << "pid " << pid << " remains";
  }
}

INSTANTIATE_TEST_SUITE_P(,
                         DamageOnLan,
                         testing::Combine(testing::Values(MOTLEY_TRANSPORTS, "tls"),
                                          testing::ValuesIn(kPromises)),
                         [](const auto& each) {
                           return fmt::format("{}_{}", std::get<0>(each.param),
                                              std::get<1>(each.param).name);
                         });

}  // namespace
}  // namespace motley::test
