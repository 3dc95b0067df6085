// Two ranks that exchange files, and files to transfer.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/transfer/file_transfer.h"
#include "tests/checkpoint/fixture.h"
#include "tests/support/rank_group.h"

namespace motley::testing {

inline constexpr Rank kGiver{0};
inline constexpr Rank kTaker{1};
inline constexpr std::size_t kPartBytes = 1000;
inline constexpr TransferRate kSmallParts{kPartBytes, 3, false};

inline std::string bytes_of_size(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * i / 7 + i);
  return bytes;
}

// The manifest entry of a file with these bytes.
inline WrittenFile written(const std::string& name, const std::string& bytes) {
  return {name, bytes.size(), hash128_hex(std::as_bytes(std::span(bytes))), {}};
}

// A file of the sending rank, and the order for it.
struct GivenFile {
  GivenFile(const std::filesystem::path& folder, const std::string& name, const std::string& bytes)
      : path(folder / name) {
    write_bytes(path, bytes);
    order = {.step = 100, .file = written(name, bytes)};
  }

  GivenFile(const std::filesystem::path& folder,
            const std::vector<OwnedTensor>& tensors,
            std::optional<std::set<std::string>> ordered)
      : path(folder / "model.safetensors") {
    auto file = write_safetensors(path, views(tensors), {{"format", "pt"}});
    MOTLEY_CHECK(file.ok(), "{}", describe(file.error()));
    order = {.step = 100, .file = *file, .tensors = std::move(ordered)};
  }

  std::filesystem::path path;
  FileOrder order;
};

// Tensors of several sizes, one of them empty, not in the order of their names.
inline std::vector<OwnedTensor> some_tensors() {
  std::vector<OwnedTensor> tensors = {
      {"m", {300}, {}}, {"b", {5}, {}}, {"none", {0}, {}}, {"z", {100, 70}, {}}, {"a", {1}, {}}};
  float value = 0;
  for (OwnedTensor& tensor : tensors) {
    std::size_t count = 1;
    for (const std::int64_t size : tensor.shape) count *= static_cast<std::size_t>(size);
    for (std::size_t i = 0; i < count; ++i) tensor.values.push_back(value += 0.25F);
  }
  return tensors;
}

// The results of both ends of a transfer.
struct Outcome {
  Result<void> sent;
  Result<void> received;
};

class RankPair {
 public:
  explicit RankPair(const std::string& kind) : group_(kind, 2) {}

  // For use by one thread.
  [[nodiscard]] FrameLink link(Rank self) { return {group_.at(self), self, 7, 0xABC}; }

  [[nodiscard]] RankGroup& group() { return group_; }

  Outcome give(const GivenFile& file,
               const std::filesystem::path& target,
               const TransferRate& pace = kSmallParts) {
    return give(file.order, file.path, file.order, target, pace);
  }

  // For two ends with different orders.
  Outcome give(const FileOrder& sent_order,
               const std::filesystem::path& source,
               const FileOrder& received_order,
               const std::filesystem::path& target,
               const TransferRate& pace = kSmallParts) {
    Outcome outcome;
    group_.run([&](Rank self) {
      FrameLink own = link(self);
      if (self == kGiver) {
        outcome.sent =
            send_file(own, kTaker, sent_order, source, pace, StallTimeout(20), {}, nullptr);
      } else {
        outcome.received =
            receive_file(own, kGiver, received_order, target, pace, StallTimeout(20), {}, nullptr);
      }
    });
    return outcome;
  }

  Outcome give_into(const ShardFolder& part, const GivenFile& file) {
    Outcome outcome;
    group_.run([&](Rank self) {
      FrameLink own = link(self);
      if (self == kGiver) {
        outcome.sent = send_file(own, kTaker, file.order, file.path, kSmallParts, StallTimeout(20),
                                 {}, nullptr);
      } else {
        outcome.received = receive_into_shards(own, kGiver, file.order, part, kSmallParts,
                                               StallTimeout(20), {}, nullptr);
      }
    });
    return outcome;
  }

 private:
  RankGroup group_;
};

}  // namespace motley::testing
