// Fixture for a run whose machines have machine-local run folders.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

#include "e2e/small_job.h"

namespace motley::test {

// All machines are this computer; they differ in their runs_dir.
class OwnFolders : public testing::Test {
 protected:
  // `names`: of "desk", which is the launcher's machine, "box" and "lap".
  [[nodiscard]] std::string cluster_of(const std::vector<std::string>& names) const {
    std::string text = kNetwork;
    std::string file = "cluster";
    for (const std::string& name : names) {
      text += entry(name);
      if (name != "desk")
        text += fmt::format("runs_dir = \"{}\"\n", (job_.folder() / name).string());
      file += "-" + name;
    }
    return job_.folder().write(file + ".toml", text);
  }

  // A cluster of desk and of box; box stops answering once a file "gone" exists.
  [[nodiscard]] std::string cluster_with_leaving_box() const {
    return job_.folder().write(
        "leaves.toml",
        fmt::format("{}{}{}runs_dir = \"{}\"\nshell = [\"sh\", \"-c\", "
                    "\"test -e {} && exit 255; exec \\\"$0\\\" \\\"$@\\\"\"]\n",
                    kNetwork, entry("desk"), entry("box"), (job_.folder() / "box").string(),
                    (job_.folder() / "gone").string()));
  }

  // words() for these two.
  [[nodiscard]] std::vector<std::string> words_with_leaving_box(
      const std::vector<std::string>& more) const {
    std::vector<std::string> words = this->words({"desk", "box"}, more);
    *std::ranges::find(words, cluster_of({"desk", "box"})) = cluster_with_leaving_box();
    return words;
  }

  static std::string entry(const std::string& name) {
    return fmt::format("[[machine]]\nname = \"{}\"\naddress = \"127.0.0.1\"\nthreads = 1\n", name);
  }

  // All of the machines compute.
  [[nodiscard]] std::vector<std::string> words(const std::vector<std::string>& machines,
                                               const std::vector<std::string>& more = {}) const {
    std::string all;
    for (const std::string& machine : all_) all += entry(machine);
    std::vector<std::string> words = SmallJob::measured_with({"profile.seconds=2"}, kNetwork + all);
    words.insert(words.end(), {"--cluster", cluster_of(machines)});
    for (const char* setting : {"train.steps=30", "checkpoint.every=5"}) {
      words.insert(words.end(), {"--set", setting});
    }
    // Settings with the same rounding for any assignment of layers.
    for (const char* setting : {"parallel.replicas=false", "compression.activations=none"}) {
      words.insert(words.end(), {"--set", setting});
    }
    for (const std::string& machine : machines) {
      words.insert(words.end(), {"--pin", "always " + machine});
    }
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  [[nodiscard]] Outcome train(const std::vector<std::string>& machines,
                              const std::vector<std::string>& more = {}) const {
    return job_.train("run", words(machines, more));
  }

  // The parameter hash of an uninterrupted run in one folder.
  static std::string undisturbed_hash(int steps = 30) {
    static std::map<int, std::string> hashes;
    std::string& hash = hashes[steps];
    if (hash.empty()) {
      const SmallJob job;
      EXPECT_EQ(job.train("run", {"--set", fmt::format("train.steps={}", steps)}).status, 0);
      hash = job.parameter_hash("run", steps);
    }
    return hash;
  }

  [[nodiscard]] std::filesystem::path folder_of(const std::string& machine) const {
    return machine == "desk" ? std::filesystem::path(job_.run_dir("run"))
                             : job_.folder() / machine / "run";
  }

  // The number of tensor files of a step on a machine.
  [[nodiscard]] int files_of(const std::string& machine, int step) const {
    int count = 0;
    std::error_code code;
    const std::filesystem::path part =
        folder_of(machine) / fmt::format("checkpoints/step-{:06}", step);
    for (const auto& entry : std::filesystem::directory_iterator(part, code)) {
      count += entry.path().extension() == ".safetensors" ? 1 : 0;
    }
    return count;
  }

  // Whether the launcher has committed this step or a later one.
  [[nodiscard]] bool has_part(int step) const {
    std::error_code code;
    const std::filesystem::path folder = folder_of("desk") / "checkpoints";
    for (const auto& entry : std::filesystem::directory_iterator(folder, code)) {
      if (entry.path().filename() >= fmt::format("step-{:06}", step)) return true;
    }
    return false;
  }

  static inline const std::string kNetwork = "[network]\ntrusted = true\n";
  const std::vector<std::string> all_ = {"desk", "box", "lap"};
  SmallJob job_;
};

}  // namespace motley::test
