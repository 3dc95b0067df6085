#include "tests/checkpoint/saving_launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

namespace motley::testing {
namespace {

namespace fs = std::filesystem;

const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& shapes() {
  static const std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes = {
      {"wte.weight", {32, 24}},  {"h.0.ln_1.weight", {24}},    {"h.0.mlp.weight", {24, 16}},
      {"h.1.ln_1.weight", {24}}, {"h.1.mlp.weight", {24, 16}}, {"ln_f.weight", {24}}};
  return shapes;
}

// The version that the checkpoint's parameters have. An error if parameters are missing,
// additional or of different versions.
Result<int> version_in(const fs::path& folder) {
  MOTLEY_ASSIGN(const CheckpointReader reader, CheckpointReader::open(folder));
  const auto damaged = [&](const std::string& cause) {
    return Error{ErrorCode::kCorrupt, folder.string(), cause, ""};
  };
  std::vector<float> first(shapes()[0].second[0] * shapes()[0].second[1]);
  MOTLEY_TRY(reader.read(shapes()[0].first, shapes()[0].second, first));
  const int version = static_cast<int>(first[0]);
  const std::vector<OwnedTensor> expected = SavingLaunch::tensors(version);
  if (reader.tensors().size() != expected.size()) return damaged("tensors are missing");
  for (const OwnedTensor& tensor : expected) {
    std::vector<float> values(tensor.values.size());
    MOTLEY_TRY(reader.read(tensor.name, tensor.shape, values));
    if (std::memcmp(values.data(), tensor.values.data(), values.size() * sizeof(float)) != 0) {
      return damaged(fmt::format("{} is not that of version {}", tensor.name, version));
    }
  }
  return version;
}

}  // namespace

std::vector<OwnedTensor> SavingLaunch::tensors(int version) {
  std::vector<OwnedTensor> tensors;
  for (const char* const part : {"", "exp_avg/"}) {
    for (const auto& [name, shape] : shapes()) {
      std::int64_t count = 1;
      for (const std::int64_t size : shape) count *= size;
      OwnedTensor tensor{part + name, shape, {}};
      for (std::int64_t i = 0; i < count; ++i) {
        tensor.values.push_back(static_cast<float>(version) + static_cast<float>(i) / 1024);
      }
      tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

Result<std::vector<Shard>> SavingLaunch::write(std::int64_t step, int version) const {
  mark(fmt::format("begin {} {}", step, version));
  const std::vector<OwnedTensor> all = tensors(version);
  std::vector<std::optional<Result<Shard>>> written(static_cast<std::size_t>(ranks_));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks_; ++rank) {
      threads.emplace_back([&, rank] {
        std::vector<TensorView> parameters;
        std::vector<TensorView> moments;
        for (std::size_t i = 0; i < all.size(); ++i) {
          const std::size_t parameter = i % shapes().size();
          if (parameter % static_cast<std::size_t>(ranks_) != static_cast<std::size_t>(rank))
            continue;
          auto& list = i < shapes().size() ? parameters : moments;
          list.push_back({all[i].name, all[i].shape, all[i].values});
        }
        written[static_cast<std::size_t>(rank)].emplace(
            write_shard({run_dir_, launch_, step}, rank, ranks_, parameters, moments));
      });
    }
  }
  std::vector<Shard> shards;
  for (auto& shard : written) {
    MOTLEY_TRY(*shard);
    shards.push_back(std::move(*shard).value());
  }
  return shards;
}

Result<void> SavingLaunch::save(std::int64_t step, int version) const {
  MOTLEY_ASSIGN(const std::vector<Shard> shards, write(step, version));
  MOTLEY_TRY(commit_checkpoint(run_dir_, launch_, TestRun::state(step), shards,
                               Json{{"train", {{"seed", -7}}}}, Json{{"model_type", "gpt2"}}));
  mark(fmt::format("saved {} {}", step, version));
  return {};
}

Result<void> SavingLaunch::prune() const {
  mark("prune");
  MOTLEY_TRY(prune_checkpoints(run_dir_, {.newest = 2}, launch_));
  mark("pruned");
  return {};
}

void Promises::hear(const std::string& mark) {
  std::istringstream words(mark);
  std::string what;
  std::int64_t step = 0;
  int version = 0;
  words >> what >> step >> version;
  if (what == "begin") may_be_listed_[step].insert(version);
  if (what == "saved") {
    may_be_listed_[step] = {version};
    must_be_listed_.insert(step);
  }
  if (what == "prune") {
    while (must_be_listed_.size() > 2) must_be_listed_.erase(must_be_listed_.begin());
  }
  if (what == "pruned") {
    std::erase_if(may_be_listed_, [this](const auto& entry) {
      return !must_be_listed_.contains(entry.first) && entry.first < *must_be_listed_.begin();
    });
  }
}

std::string Promises::broken_by(const fs::path& run_dir) const {
  if (const auto all_count = require_all_count(run_dir); !all_count) return fault_of(all_count);
  std::set<std::int64_t> missing = must_be_listed_;
  for (const CheckpointInfo& info : list_checkpoints(run_dir)) {
    missing.erase(info.step);
    if (const auto verified = verify_checkpoint(info.folder); !verified) return fault_of(verified);
    const Result<int> version = version_in(info.folder);
    if (!version) return fault_of(version);
    const auto may_be = may_be_listed_.find(info.step);
    if (may_be == may_be_listed_.end() || !may_be->second.contains(*version)) {
      return fmt::format("step {} holds version {}", info.step, *version);
    }
  }
  return missing.empty() ? "" : fmt::format("steps {} are not listed", missing);
}

std::string Promises::text() const {
  return fmt::format("must be listed: {}; may be, by step: {}", must_be_listed_, may_be_listed_);
}

}  // namespace motley::testing
