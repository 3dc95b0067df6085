// One rank's part of a checkpoint: its two files, and the report of them to the launcher.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/check.h"
#include "base/system/files.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/folders.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors_header.h"
#include "checkpoint/save/finite.h"
#include "checkpoint/save/shard_files.h"

namespace motley {
namespace {

std::uint64_t file_bytes_max(const std::vector<TensorOutline>& tensors) {
  constexpr std::uint64_t kHeaderBytes = 4096;
  constexpr std::uint64_t kEntryBytes = 256;  // per tensor in the header, without its name
  std::uint64_t bytes = kHeaderBytes;
  for (const TensorOutline& tensor : tensors) {
    bytes += kEntryBytes + tensor.name.size() + tensor_bytes(tensor);
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
    return Error{ErrorCode::kCorrupt, fmt::format("malformed shard report, {}", source),
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

std::uint64_t ShardOutline::bytes_max() const {
  return file_bytes_max(parameters) + file_bytes_max(moments);
}

Result<Shard> write_shard_files(const SaveLocation& location,
                                int rank,
                                int rank_count,
                                const ShardOutline& outline,
                                const AddValues& add_values,
                                ProgressCounter* work) {
  MOTLEY_CHECK(location.step >= 0 && rank >= 0 && rank < rank_count, "step {}, rank {} of {}",
               location.step, rank, rank_count);
  const std::filesystem::path folder = partial_folder(location);
  MOTLEY_TRY(make_folders(folder));

  std::optional<ProgressCounter::Task> saving;
  if (work != nullptr) saving.emplace(*work, "saving", outline.bytes_max());
  std::size_t next = 0;
  const auto write = [&](const char* part,
                         const std::vector<TensorOutline>& tensors) -> Result<WrittenFile> {
    // transformers rejects a file without this key, which names the framework.
    MOTLEY_ASSIGN(SafetensorsWriter writer,
                  SafetensorsWriter::create(folder / shard_file_name(part, rank, rank_count),
                                            tensors, {{"format", "pt"}}, work));
    for (std::size_t i = 0; i < tensors.size(); ++i) MOTLEY_TRY(add_values(next++, writer));
    return writer.close();
  };
  Shard shard{.rank = rank};
  MOTLEY_ASSIGN(shard.model, write("model", outline.parameters));
  MOTLEY_ASSIGN(shard.optimizer, write("optimizer", outline.moments));
  // The files may be committed by another machine, which cannot sync the names that lead to them
  // here; other ranks of this machine may have created some of the folders.
  for (const std::filesystem::path& names :
       {folder, folder.parent_path(), folder.parent_path().parent_path()}) {
    MOTLEY_TRY(sync_folder(names));
  }
  return shard;
}

Result<Shard> write_shard(const SaveLocation& location,
                          int rank,
                          int rank_count,
                          const std::vector<TensorView>& parameters,
                          const std::vector<TensorView>& moments,
                          ProgressCounter* work) {
  MOTLEY_TRY(require_finite(parameters));
  const auto add_values = [&](std::size_t tensor, SafetensorsWriter& writer) {
    const bool is_parameter = tensor < parameters.size();
    const TensorView& view =
        is_parameter ? parameters[tensor] : moments[tensor - parameters.size()];
    return writer.append(std::as_bytes(view.values));
  };
  return write_shard_files(location, rank, rank_count,
                           {outlines_of(parameters), outlines_of(moments)}, add_values, work);
}

}  // namespace motley
