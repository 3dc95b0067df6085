#include "checkpoint/convert/checkpoint_writer.h"

#include <span>
#include <utility>

#include "base/check.h"
#include "base/system/files.h"
#include "checkpoint/convert/new_output.h"
#include "checkpoint/folders.h"
#include "checkpoint/manifest.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

Result<void> write_part(const fs::path& folder,
                        const std::string& part,
                        const std::vector<NewTensor>& tensors,
                        const std::vector<std::size_t>& ends,
                        Manifest& manifest,
                        WorkObserver& watch) {
  const int files = static_cast<int>(ends.size());
  std::size_t first = 0;
  for (int file = 0; file < files; ++file) {
    const std::size_t end = ends[static_cast<std::size_t>(file)];
    MOTLEY_CHECK(first <= end && end <= tensors.size(), "file {} ends at {}", file, end);
    MOTLEY_ASSIGN(WrittenFile written,
                  write_tensors(folder / shard_file_name(part, file, files),
                                std::span(tensors).subspan(first, end - first), {}, watch));
    manifest.files.push_back(std::move(written));
    first = end;
  }
  return {};
}

Result<void> write_all(const fs::path& folder,
                       const NewCheckpoint& checkpoint,
                       Manifest& manifest,
                       WorkObserver& watch) {
  MOTLEY_TRY(write_part(folder, "model", checkpoint.parameters, checkpoint.parameter_ends, manifest,
                        watch));
  std::map<std::string, std::string> hashes;
  std::map<std::string, std::string> files;
  for (const WrittenFile& file : manifest.files) {
    for (const auto& [name, hash] : file.tensor_hashes) {
      hashes.emplace(name, hash);
      files.emplace(name, file.name);
    }
  }
  manifest.parameter_hash = parameter_hash(hashes);
  MOTLEY_TRY(
      write_part(folder, "optimizer", checkpoint.moments, checkpoint.moment_ends, manifest, watch));
  const Json index = weights_index(files, bytes_of(checkpoint.parameters, FloatFormat::kFp32));
  MOTLEY_ASSIGN(WrittenFile index_file, write_json_file(folder, kIndexName, index));
  manifest.files.push_back(std::move(index_file));
  if (!checkpoint.model_config.is_null()) {
    MOTLEY_ASSIGN(WrittenFile config_file,
                  write_json_file(folder, kModelConfigName, checkpoint.model_config));
    manifest.files.push_back(std::move(config_file));
  }
  return write_file_atomic(folder / kManifestName, format_manifest(manifest));
}

}  // namespace

Result<Manifest> write_checkpoint(const fs::path& destination,
                                  const NewCheckpoint& checkpoint,
                                  WorkObserver& watch) {
  MOTLEY_TRY(check_writable(checkpoint.parameters));
  MOTLEY_TRY(check_writable(checkpoint.moments));
  MOTLEY_ASSIGN(NewOutput output,
                NewOutput::begin(destination, NewOutput::Kind::kFolder,
                                 files_bytes_max(checkpoint.parameters, FloatFormat::kFp32) +
                                     files_bytes_max(checkpoint.moments, FloatFormat::kFp32)));
  watch.begin("writing", bytes_of(checkpoint.parameters, FloatFormat::kFp32) +
                             bytes_of(checkpoint.moments, FloatFormat::kFp32));
  Manifest manifest{
      .state = checkpoint.state, .files = {}, .parameter_hash = {}, .config = checkpoint.config};
  MOTLEY_TRY(write_all(output.place(), checkpoint, manifest, watch));
  MOTLEY_TRY(output.commit());
  return manifest;
}

}  // namespace motley
