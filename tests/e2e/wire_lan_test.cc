// The report's prediction of the bytes that a machine sends, compared with the counter of its
// network interface. Skipped as the other tests of scripts/lan.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/lan_machines.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

class WireOnLan : public testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() {
    machines_ = std::make_unique<LanMachines>("--mbps 1000");
    job_ = std::make_unique<SmallJob>();
    if (!machines_->are_up()) return;
    const Outcome outcome = run("planned", "tcp", {"--set", "train.steps=5"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }

  static void TearDownTestSuite() {
    job_.reset();
    machines_.reset();
  }

  void SetUp() override {
    if (!machines_->are_up()) GTEST_SKIP() << "needs root and a LAN of its own (scripts/lan)";
  }

  static Outcome run(const std::string& name,
                     const std::string& kind,
                     const std::vector<std::string>& extra) {
    const std::string cluster =
        job_->folder().write("cluster.toml", LanMachines::cluster_text(kind != "tls"));
    auto words =
        job_->train_words(name, {"--cluster", cluster, "--pin", "always m1", "--pin", "always m2",
                                 "--set", "model.width=128", "--set", "model.context=128", "--set",
                                 fmt::format("comm.transport={}", kind == "tls" ? "tcp" : kind)});
    words.insert(words.end(), extra.begin(), extra.end());
    words.front() = "launch";
    return motley(words);
  }

  // The bytes counted by each machine's interface during a run of this number of steps.
  static std::vector<std::uint64_t> counted(const std::string& name, int steps) {
    const std::vector<std::uint64_t> before = {LanMachines::sent_bytes(1),
                                               LanMachines::sent_bytes(2)};
    const Outcome outcome = run(name, GetParam(),
                                {"--plan", job_->run_dir("planned") + "/plan.json", "--set",
                                 fmt::format("train.steps={}", steps)});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return {LanMachines::sent_bytes(1) - before[0], LanMachines::sent_bytes(2) - before[1]};
  }

  static Json report_of(const std::string& name) {
    return parse_json(read_text(job_->run_dir(name) + "/report.json"), "report").value();
  }

 private:
  static inline std::unique_ptr<LanMachines> machines_;
  static inline std::unique_ptr<SmallJob> job_;
};

// From the difference of two runs of one plan, so that connecting, saving and ending do not count.
TEST_P(WireOnLan, CountsWhatThePlanPredictsAndHeaders) {
  constexpr int kShort = 5;
  constexpr int kLong = 35;
  const std::string kind = GetParam();
  const auto few = counted(kind + "-few", kShort);
  const auto many = counted(kind + "-many", kLong);
  const Json report = report_of(kind + "-many");
  ASSERT_EQ(report["ranks"].size(), 2U);
  for (const Json& rank : report["ranks"]) {
    const auto machine = rank["machine"].get<std::string>();
    const std::size_t index = machine == "m1" ? 0 : 1;
    const auto predicted = rank["sent_bytes"]["predicted"].get<double>();
    const auto measured = rank["sent_bytes"]["measured"].get<double>();
    const double a_step = static_cast<double>(many[index] - few[index]) / (kLong - kShort);
    std::printf(
        "%s, %s: predicted %.0f, measured by the run %.0f, counted %.0f bytes a step (%.4f)\n",
        kind.c_str(), machine.c_str(), predicted, measured, a_step, a_step / predicted);
    EXPECT_EQ(measured, predicted);
    EXPECT_GT(a_step, predicted);
    // At most 78 bytes of headers per 1,448 bytes, and as many for every two packets of the other
    // end.
    EXPECT_LT(a_step, 1.1 * predicted);
  }
}

INSTANTIATE_TEST_SUITE_P(, WireOnLan, testing::Values(MOTLEY_TRANSPORTS, "tls"));

}  // namespace
}  // namespace motley::test
