// Packages with layers that compute other values than their references are not trained; the
// outcome of the comparison is stored. The package is one of tests/models.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/motley_command.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ReferencedRun : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path copy_of_cnn(const std::string& name) const {
    const auto copy = folder_ / (name + ".motley");
    std::filesystem::copy(std::string(MOTLEY_PACKAGES) + "/cnn.motley", copy,
                          std::filesystem::copy_options::recursive);
    return copy;
  }

  // `profile`: the run whose measurements are used; "" = this run measures.
  Outcome train(const std::string& run,
                const std::filesystem::path& package,
                const TemporaryFolder& cache,
                const std::string& profile = "") const {
    std::vector<std::string> words = {
        "train",    config_, "--run", (folder_ / run).string(),
        "--stages", "2",     "--set", "model.path=" + package.string()};
    if (!profile.empty()) {
      words.insert(words.end(), {"--profile", (folder_ / profile / "profile.json").string()});
    }
    return RunningMotley(words, {}, cache.path()).wait();
  }

  TemporaryFolder folder_;
  std::string config_ = folder_.write("job.toml", R"(
[model]
kind = "package"
[data]
kind = "synthetic"
[train]
steps = 2
global_batch = 12
micro_batch = 3
[checkpoint]
every = 0
[run]
threads = 1
)");
};

// Computed by another program.
std::string sha256_of(const std::filesystem::path& file) {
  const std::string list = file.string() + ".sha256";
  EXPECT_EQ(std::system(("sha256sum '" + file.string() + "' > '" + list + "'").c_str()), 0);
  return read_text(list).substr(0, 64);
}

std::vector<std::filesystem::path> kept_checks(const std::filesystem::path& cache) {
  std::vector<std::filesystem::path> found;
  std::error_code none;
  for (const auto& entry :
       std::filesystem::directory_iterator(cache / "motley" / "profiles" / "checks", none)) {
    found.push_back(entry.path());
  }
  return found;
}

TEST_F(ReferencedRun, IsRefusedWhereALayerComputesOtherThanItsReference) {
  const auto changed = copy_of_cnn("changed");
  const std::string before = sha256_of(changed / "package.json");
  std::string text = read_text(changed / "package.json");
  const std::string node = R"("aten::threshold_backward","args":[{"value":)";
  ASSERT_NE(text.find(node), std::string::npos);
  // The gradient of a ReLU with threshold -1 instead of 0.
  const std::size_t at = text.find(",0]", text.find(node));
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 3, ",-1]");
  folder_.write("changed.motley/package.json", text);
  std::string references = read_text(changed / "reference.jsonl");
  references.replace(references.find(before), before.size(), sha256_of(changed / "package.json"));
  // Without references the package is not compared, so that a profile can be made.
  std::filesystem::remove(changed / "reference.jsonl");
  const TemporaryFolder first;
  const Outcome measured = train("measured", changed, first);
  ASSERT_EQ(measured.status, 0) << measured.err;
  folder_.write("changed.motley/reference.jsonl", references);
  // During profiling, or with a given profile before the first step.
  for (const std::string profile : {"", "measured"}) {
    const TemporaryFolder cache;
    const Outcome refused = train("run", changed, cache, profile);
    EXPECT_EQ(refused.status, 3) << refused.err;
    EXPECT_THAT(refused.err, AllOf(HasSubstr("computes other values here"),
                                   HasSubstr("aten::native_batch_norm_backward"),
                                   HasSubstr("export the model again")));
    const auto metrics = folder_ / "run" / "metrics.jsonl";
    EXPECT_EQ(std::filesystem::exists(metrics) ? read_text(metrics) : "", "");
    // A rank with correct layers stores them; the wrong layer is never stored.
    for (const auto& kept : kept_checks(cache.path())) {
      EXPECT_LT(Json::parse(read_text(kept)).at("layers").size(), 5U);
    }
    std::filesystem::remove_all(folder_ / "run");
  }
}

TEST_F(ReferencedRun, ComparesItsLayersOnce) {
  const TemporaryFolder cache;
  const auto package = copy_of_cnn("right");
  const Outcome first = train("first", package, cache);
  ASSERT_EQ(first.status, 0) << first.err;
  const auto kept = kept_checks(cache.path());
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(Json::parse(read_text(kept.front())).at("layers").size(), 5U);
  const auto written = std::filesystem::last_write_time(kept.front());
  ASSERT_EQ(train("second", package, cache).status, 0);
  EXPECT_EQ(std::filesystem::last_write_time(kept.front()), written);
  // A given profile has no stored outcome: each rank compares its own layers.
  std::filesystem::remove(kept.front());
  ASSERT_EQ(train("third", package, cache, "first").status, 0);
  EXPECT_EQ(kept_checks(cache.path()).size(), 1U);
}

TEST_F(ReferencedRun, OfBeforeReferencesIsTrainedWithAWarning) {
  const auto before = copy_of_cnn("before");
  std::filesystem::remove(before / "reference.jsonl");
  const TemporaryFolder cache;
  const Outcome trained = train("run", before, cache);
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.err, HasSubstr("export the model again"));
  EXPECT_THAT(motley({"package", "verify", before.string()}).out,
              HasSubstr("has no reference.jsonl"));
}

}  // namespace
}  // namespace motley::test
