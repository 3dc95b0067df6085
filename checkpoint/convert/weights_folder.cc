#include "checkpoint/convert/weights_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "base/hash.h"
#include "base/system/files.h"
#include "checkpoint/convert/new_output.h"
#include "checkpoint/folders.h"
#include "checkpoint/input_file.h"
#include "checkpoint/manifest.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// The user chose the folder, so symbolic links are followed, as for weights.
Result<InputFile> open_beside(const fs::path& path) {
  std::error_code code;
  const fs::path resolved = fs::canonical(path, code);
  if (code) return file_error("read", path, code.value());
  return InputFile::open(resolved);
}

Result<WrittenFile> copy_beside(const fs::path& path, const fs::path& folder, WorkObserver& watch) {
  constexpr std::uint64_t kBlockBytes = std::uint64_t{1} << 20;
  MOTLEY_ASSIGN(const InputFile from, open_beside(path));
  WrittenFile written{.name = path.filename().string(), .bytes = from.bytes()};
  MOTLEY_ASSIGN(OutputFile to, OutputFile::create(folder / written.name));
  std::vector<std::byte> block;
  Hasher128 hasher;
  for (std::uint64_t done = 0; done < from.bytes(); done += block.size()) {
    block.resize(std::min(kBlockBytes, from.bytes() - done));
    MOTLEY_TRY(from.read_at(done, block));
    hasher.add(block);
    MOTLEY_TRY(to.write(block));
    MOTLEY_TRY(watch.advance(block.size()));
  }
  MOTLEY_TRY(to.close());
  written.hash = hasher.hex();
  return written;
}

Result<std::uint64_t> bytes_beside(const std::vector<fs::path>& paths) {
  std::uint64_t bytes = 0;
  for (const fs::path& path : paths) {
    MOTLEY_ASSIGN(const InputFile file, open_beside(path));
    bytes += file.bytes();
  }
  return bytes;
}

Result<std::vector<WrittenFile>> write_files(const fs::path& place,
                                             const WeightsFolder& folder,
                                             const FileParts& parts,
                                             WorkObserver& watch) {
  const int count = static_cast<int>(parts.size());
  std::vector<WrittenFile> files;
  std::map<std::string, std::string> places;
  for (int i = 0; i < count; ++i) {
    const std::string name = count == 1 ? fmt::format("{}.safetensors", folder.name)
                                        : shard_file_name(folder.name, i, count);
    MOTLEY_ASSIGN(WrittenFile file, write_tensors(place / name, parts[static_cast<std::size_t>(i)],
                                                  folder.rule, watch));
    for (const auto& [tensor, hash] : file.tensor_hashes) places.emplace(tensor, name);
    files.push_back(std::move(file));
  }
  if (count > 1) {
    const Json index = weights_index(places, bytes_of(folder.tensors, folder.rule.format));
    MOTLEY_ASSIGN(WrittenFile file, write_json_file(place, kIndexName, index));
    files.push_back(std::move(file));
  }
  if (!folder.config.is_null()) {
    MOTLEY_ASSIGN(WrittenFile file, write_json_file(place, kModelConfigName, folder.config));
    files.push_back(std::move(file));
  }
  for (const fs::path& path : folder.beside) {
    MOTLEY_ASSIGN(WrittenFile file, copy_beside(path, place, watch));
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

Result<std::vector<WrittenFile>> write_weights_folder(const fs::path& destination,
                                                      const WeightsFolder& folder,
                                                      WorkObserver& watch) {
  MOTLEY_TRY(check_writable(folder.tensors));
  MOTLEY_ASSIGN(const std::uint64_t beside_bytes, bytes_beside(folder.beside));
  const FloatFormat format = folder.rule.format;
  MOTLEY_ASSIGN(NewOutput output,
                NewOutput::begin(destination, NewOutput::Kind::kFolder,
                                 files_bytes_max(folder.tensors, format) + beside_bytes));
  watch.begin("writing", bytes_of(folder.tensors, format) + beside_bytes);
  const FileParts parts = parts_up_to(folder.tensors, format, folder.file_bytes_max);
  MOTLEY_ASSIGN(std::vector<WrittenFile> files, write_files(output.place(), folder, parts, watch));
  MOTLEY_TRY(output.commit());
  return files;
}

Result<WrittenFile> write_weights_file(const fs::path& destination,
                                       const std::vector<NewTensor>& tensors,
                                       const FormatRule& rule,
                                       WorkObserver& watch) {
  MOTLEY_TRY(check_writable(tensors));
  MOTLEY_ASSIGN(NewOutput output, NewOutput::begin(destination, NewOutput::Kind::kFile,
                                                   files_bytes_max(tensors, rule.format)));
  watch.begin("writing", bytes_of(tensors, rule.format));
  MOTLEY_ASSIGN(WrittenFile file, write_tensors(output.place(), tensors, rule, watch));
  MOTLEY_TRY(output.commit());
  return file;
}

}  // namespace motley
