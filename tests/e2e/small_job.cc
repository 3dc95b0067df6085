#include "e2e/small_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "base/json.h"

namespace motley::test {

namespace {

// Measured by the first who asks.
const std::string& shared_profile() {
  static const TemporaryFolder folder;
  static const std::string path = [] {
    std::string file = (folder / "profile.json").string();
    // Of the processor, whatever else is here, under the name that a run without a file uses.
    const std::string cluster =
        folder.write("cluster.toml", "[[machine]]\nname = \"local\"\ndevices = [\"cpu\"]\n");
    const Outcome outcome = motley(
        {"profile", folder.write("job.toml", kSmallJob), "--cluster", cluster, "--output", file});
    if (outcome.status != 0) throw std::runtime_error(outcome.err);
    return file;
  }();
  return path;
}

// Whether what was measured for the plain job may not be of use with the word.
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
    words.insert(words.end(), {"--profile", shared_profile()});
  }
  return words;
}

std::vector<std::string> SmallJob::as_measured_for(const std::string& run) const {
  return {"--profile", run_dir(run) + "/profile.json"};
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
