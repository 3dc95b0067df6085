// A job small enough to run dozens of times in a test.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "e2e/motley_command.h"

namespace motley::test {

inline constexpr const char* kSmallJob = R"(
[model]
kind = "gpt2"
layers = 2
width = 32
heads = 4
context = 16
vocab = 256
[data]
kind = "synthetic"
[train]
steps = 50
global_batch = 8
micro_batch = 2
warmup_steps = 5
lr = 3e-3
[checkpoint]
every = 0
[run]
threads = 1
restarts = 0
)";

// A cluster file of two machines that are this host. A test may append keys of the second one.
inline constexpr const char* kDeskAndBox = R"([network]
trusted = true
[[machine]]
name = "desk"
address = "127.0.0.1"
threads = 1
[[machine]]
name = "box"
address = "127.0.0.1"
threads = 1
)";

class SmallJob {
 public:
  SmallJob() : config_(folder_.write("job.toml", kSmallJob)) {}

  [[nodiscard]] const TemporaryFolder& folder() const { return folder_; }

  [[nodiscard]] std::string run_dir(const std::string& name) const {
    return (folder_ / name).string();
  }

  // motley train with these extra words, into the run folder `name`. If they change neither the
  // model, the codecs nor the machines, a profile is added that all tests of the program share,
  // since profiling takes longer than most of them.
  [[nodiscard]] std::vector<std::string> train_words(const std::string& name,
                                                     const std::vector<std::string>& extra) const;

  [[nodiscard]] Outcome train(const std::string& name, std::vector<std::string> extra) const {
    return motley(train_words(name, extra));
  }

  // Options by which another run of the same model uses that run's profile.
  [[nodiscard]] std::vector<std::string> as_measured_for(const std::string& run) const;

  // Options with these settings and a profile for them, which is measured once for all tests of
  // the program: of this machine's processor, or on the machines of a cluster file with this text.
  // The run's own cluster file may differ from it in properties that do not affect computing.
  [[nodiscard]] static std::vector<std::string> measured_with(
      const std::vector<std::string>& settings);
  [[nodiscard]] static std::vector<std::string> measured_with(
      const std::vector<std::string>& settings, const std::string& cluster_text);

  // Writes the plan of a run with a change to a file; returns its path.
  [[nodiscard]] std::string changed_plan(const std::string& run,
                                         const std::function<void(Json&)>& change) const;

  // The parameter hash of a checkpoint of a run.
  [[nodiscard]] std::string parameter_hash(const std::string& name, int step) const;

 private:
  TemporaryFolder folder_;
  std::string config_;
};

}  // namespace motley::test
