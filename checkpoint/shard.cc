// One rank's part of a checkpoint: its two files, and the report of them that the launcher gets.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/check.h"
#include "base/system/files.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/finite.h"
#include "checkpoint/folders.h"
#include "checkpoint/manifest.h"

namespace motley {
namespace {

std::uint64_t file_bytes_max(const std::vector<TensorView>& tensors) {
  constexpr std::uint64_t kHeaderBytes = 4096;
  constexpr std::uint64_t kEntryBytes = 256;  // of a tensor in the header, besides its name
  std::uint64_t bytes = kHeaderBytes;
  for (const TensorView& tensor : tensors) {
    bytes += kEntryBytes + tensor.name.size() + tensor.values.size_bytes();
  }
  return bytes;
}

}  // namespace

Json shard_to_json(const Shard& shard) {
  return {{"rank", shard.rank},
          {"model", written_file_to_json(shard.model)},
          {"optimizer", written_file_to_json(shard.optimizer)}};
}

Result<Shard> shard_from_json(const Json& json, const std::string& source) {
  Shard shard;
  MOTLEY_ASSIGN(const std::int64_t rank, json_get<std::int64_t>(json, "rank", source));
  if (!std::in_range<int>(rank) || rank < 0) {
    return Error{ErrorCode::kCorrupt, fmt::format("unusable report of a shard, {}", source),
                 fmt::format("its rank is {}", rank), ""};
  }
  shard.rank = static_cast<int>(rank);
  const auto file = [&](const char* key) -> Result<WrittenFile> {
    const auto found = json.find(key);
    return written_file_from_json(found == json.end() ? Json() : *found,
                                  fmt::format("{}, key '{}'", source, key));
  };
  MOTLEY_ASSIGN(shard.model, file("model"));
  MOTLEY_ASSIGN(shard.optimizer, file("optimizer"));
  return shard;
}

std::uint64_t shard_bytes_max(const std::vector<TensorView>& parameters,
                              const std::vector<TensorView>& moments) {
  return file_bytes_max(parameters) + file_bytes_max(moments);
}

Result<Shard> write_shard(const SavePlace& place,
                          int rank,
                          int rank_count,
                          const std::vector<TensorView>& parameters,
                          const std::vector<TensorView>& moments,
                          WorkCounter* work) {
  MOTLEY_CHECK(place.step >= 0 && rank >= 0 && rank < rank_count, "step {}, rank {} of {}",
               place.step, rank, rank_count);
  MOTLEY_TRY(require_finite(parameters));
  const std::filesystem::path folder = partial_folder(place);
  MOTLEY_TRY(make_folders(folder));

  std::optional<WorkCounter::Task> saving;
  if (work != nullptr) {
    saving.emplace(*work, "saving", file_bytes_max(parameters) + file_bytes_max(moments));
  }
  // transformers refuses a file without this key; it says how tensors are laid out.
  const std::map<std::string, std::string> metadata = {{"format", "pt"}};
  Shard shard{.rank = rank};
  MOTLEY_ASSIGN(shard.model, write_safetensors(folder / shard_file_name("model", rank, rank_count),
                                               parameters, metadata, work));
  MOTLEY_ASSIGN(shard.optimizer,
                write_safetensors(folder / shard_file_name("optimizer", rank, rank_count), moments,
                                  metadata, work));
  return shard;
}

}  // namespace motley
