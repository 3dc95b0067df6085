#include "e2e/small_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <stdexcept>
#include <utility>

#include "base/json.h"

namespace motley::test {

namespace {

using Words = std::vector<std::string>;

// Only the processor, under the name that a run without a cluster file uses.
constexpr const char* kLocal = "[[machine]]\nname = \"local\"\ndevices = [\"cpu\"]\n";

Words as_options(const Words& settings) {
  Words words;
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  return words;
}

// Measured at the first call.
const std::string& shared_profile(const Words& settings, const std::string& cluster_text) {
  static const TemporaryFolder folder;
  static std::map<std::pair<Words, std::string>, std::string> paths;
  std::string& path = paths[{settings, cluster_text}];
  if (path.empty()) {
    std::string file = (folder / fmt::format("profile-{}.json", paths.size())).string();
    Words words = {"profile",   folder.write("job.toml", kSmallJob),
                   "--cluster", folder.write("cluster.toml", cluster_text),
                   "--output",  file};
    std::ranges::copy(as_options(settings), std::back_inserter(words));
    const Outcome outcome = motley(words);
    if (outcome.status != 0) throw std::runtime_error(outcome.err);
    path = file;
  }
  return path;
}

// Whether the profile of the plain job may not fit a run with this word.
bool asks_for_more(const std::string& word) {
  constexpr std::array kOptions = {"--cluster", "--profile", "--plan", "--measure"};
  constexpr std::array kKeys = {
      "model.",          "compression.",    "profile.",   "train.micro_batch", "train.global_batch",
      "train.optimizer", "train.precision", "run.threads"};
  return std::ranges::find(kOptions, word) != kOptions.end() ||
         std::ranges::any_of(kKeys, [&](const char* key) { return word.starts_with(key); });
}

}  // namespace

std::vector<std::string> SmallJob::train_words(const std::string& name,
                                               const std::vector<std::string>& extra) const {
  std::vector<std::string> words{"train", config_, "--run", run_dir(name)};
  words.insert(words.end(), extra.begin(), extra.end());
  if (std::ranges::none_of(extra, asks_for_more)) {
    std::ranges::copy(measured_with({}), std::back_inserter(words));
  }
  return words;
}

std::vector<std::string> SmallJob::as_measured_for(const std::string& run) const {
  return {"--profile", run_dir(run) + "/profile.json"};
}

Words SmallJob::measured_with(const Words& settings) {
  return measured_with(settings, kLocal);
}

Words SmallJob::measured_with(const Words& settings, const std::string& cluster_text) {
  Words words = as_options(settings);
  words.insert(words.end(), {"--profile", shared_profile(settings, cluster_text)});
  return words;
}

std::string SmallJob::changed_plan(const std::string& run,
                                   const std::function<void(Json&)>& change) const {
  Json plan = Json::parse(read_text(folder_.path() / run / "plan.json"));
  plan.erase("hash");
  change(plan);
  return folder_.write(run + "-changed.json", plan.dump());
}

std::string SmallJob::parameter_hash(const std::string& name, int step) const {
  const auto manifest =
      folder_.path() / name / fmt::format("checkpoints/step-{:06}/manifest.json", step);
  return Json::parse(read_text(manifest)).at("parameter_hash").get<std::string>();
}

}  // namespace motley::test
