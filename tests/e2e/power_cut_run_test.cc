// A training with power cuts: the disk operations of launcher and workers are recorded, and after
// each operation the run folder is checked in states that a cut may leave.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "e2e/small_job.h"
#include "tests/support/disk_model.h"

namespace motley::test {
namespace {

namespace fs = std::filesystem;

using motley::testing::Cut;
using motley::testing::DiskAction;
using motley::testing::DiskModel;
using motley::testing::DiskOperation;
using motley::testing::DiskTree;
using motley::testing::EvenCut;
using motley::testing::RandomCut;
using Words = std::vector<std::string>;

constexpr int kSteps = 9;
constexpr int kEvery = 3;

class PowerCutRun : public ::testing::Test {
 protected:
  [[nodiscard]] static Words words(const Words& more) {
    Words all = {"--stages", "2", "--stop-after", std::to_string(kSteps)};
    for (const char* const key : {"checkpoint.every=3", "checkpoint.keep=2"}) {
      all.insert(all.end(), {"--set", key});
    }
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  // A run into disk/runs/first; before it only disk/ exists.
  [[nodiscard]] std::vector<DiskOperation> recorded_run() const {
    const fs::path disk = job_.folder() / "disk";
    fs::create_directory(disk);
    Words all = {fmt::format("LD_PRELOAD={}", MOTLEY_DISK_RECORDER),
                 fmt::format("MOTLEY_DISK_ROOT={}", fs::canonical(disk).string()),
                 fmt::format("MOTLEY_DISK_LOG={}", (job_.folder() / "log").string()),
                 (stage_program().parent_path() / "motley").string()};
    const Words train = job_.train_words("disk/runs/first", words({}));
    all.insert(all.end(), train.begin(), train.end());
    const Outcome outcome = motley(all, "/usr/bin/env");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return motley::testing::parse_disk_log(read_text(job_.folder() / "log"));
  }

  // Writes the state after a cut into a separate folder; returns its run folder.
  [[nodiscard]] fs::path found(const DiskTree& tree) const {
    const fs::path disk = job_.folder() / "found";
    fs::remove_all(disk);
    fs::create_directory(disk);
    for (const auto& [name, bytes] : tree) {
      if (bytes) {
        std::ofstream(disk / name, std::ios::binary) << *bytes;
      } else {
        fs::create_directory(disk / name);
      }
    }
    return disk / "runs/first";
  }

  // "", or the fault of the state after a cut, if the checkpoints of all steps up to `reported`
  // were reported.
  [[nodiscard]] std::string fault_in(const fs::path& run_dir, std::int64_t reported) const {
    if (const auto all_count = require_all_count(run_dir); !all_count) {
      return describe(all_count.error());
    }
    std::vector<std::int64_t> steps;
    for (const CheckpointInfo& info : list_checkpoints(run_dir)) {
      if (const auto whole = verify_checkpoint(info.folder); !whole) return describe(whole.error());
      const auto manifest = read_manifest(info.folder);
      if (!manifest) return describe(manifest.error());
      if (manifest->parameter_hash != hashes_.at(info.step)) {
        return fmt::format("step {} holds other parameters", info.step);
      }
      steps.push_back(info.step);
    }
    const bool is_there = reported == 0 || std::ranges::find(steps, reported) != steps.end();
    return is_there ? "" : fmt::format("step {} is lost", reported);
  }

  SmallJob job_;
  std::map<std::int64_t, std::string> hashes_;  // of parameters, by step
};

// The step whose checkpoint gets its name by this operation; 0 if none.
std::int64_t named_by(const DiskOperation& operation) {
  constexpr std::string_view kWords = "/checkpoints/step-";
  const std::size_t at = operation.other.find(kWords);
  const bool is_it = operation.action == DiskAction::kRename && at != std::string::npos;
  return is_it ? std::stoll(operation.other.substr(at + kWords.size())) : 0;
}

// A hash of everything that `fault_in` depends on.
std::string fingerprint(const DiskTree& tree, std::int64_t reported) {
  Hasher128 hasher;
  hasher.add(fmt::format("{}\n", reported));
  for (const auto& [path, bytes] : tree) {
    if (path.find("/checkpoints") == path.npos) continue;
    hasher.add(fmt::format("\n{} {}\n", path, bytes ? bytes->size() : 0));
    if (bytes) hasher.add(*bytes);
  }
  return hasher.hex();
}

TEST_F(PowerCutRun, KeepsWhatPeopleWereToldAndGoesOnToTheSameBits) {
  ASSERT_EQ(job_.train("whole", words({"--set", "checkpoint.keep=0"})).status, 0);
  for (int step = kEvery; step <= kSteps; step += kEvery) {
    hashes_[step] = job_.parameter_hash("whole", step);
  }
  const std::vector<DiskOperation> log = recorded_run();
  DiskModel model({});
  std::int64_t named = 0;     // the newest step whose checkpoint has its name
  std::int64_t reported = 0;  // the newest step that may have been reported
  std::vector<std::string> faults;
  std::set<std::string> seen;
  std::map<std::int64_t, DiskTree> worst;  // by the last reported step: the minimal state after a
                                           // cut
  for (std::size_t i = 0; i < log.size() && faults.size() < 4; ++i) {
    model.apply(log[i]);
    named = std::max(named, named_by(log[i]));
    // The last operation before the report.
    if (log[i].action == DiskAction::kSync && log[i].path == "runs/first") reported = named;
    EvenCut nothing(false, false);
    EvenCut names(true, false);
    EvenCut bytes(false, true);
    RandomCut any(i);
    for (Cut* const cut : {static_cast<Cut*>(&nothing), static_cast<Cut*>(&names),
                           static_cast<Cut*>(&bytes), static_cast<Cut*>(&any)}) {
      const DiskTree tree = model.after(*cut);
      if (cut == &nothing) worst.emplace(reported, tree);
      if (!seen.insert(fingerprint(tree, reported)).second) continue;
      const std::string fault = fault_in(found(tree), reported);
      if (!fault.empty()) faults.push_back(fmt::format("after operation {}: {}", i, fault));
    }
  }
  EXPECT_THAT(faults, ::testing::IsEmpty());
  EXPECT_EQ(reported, kSteps);
  EXPECT_EQ(worst.size(), 1U + kSteps / kEvery);
  for (const auto& [step, tree] : worst) {
    if (step == 0 || step == kSteps) continue;  // nothing to resume from, or no step left
    const fs::path run_dir = found(tree);
    const Outcome outcome = job_.train("found/runs/first", words({"--resume"}));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(read_manifest(checkpoint_folder(run_dir, kSteps))->parameter_hash,
              hashes_.at(kSteps));
  }
}

}  // namespace
}  // namespace motley::test
