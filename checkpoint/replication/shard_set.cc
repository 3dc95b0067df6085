#include "checkpoint/replication/shard_set.h"

#include <set>
#include <system_error>

#include "base/system/files.h"
#include "checkpoint/folders.h"
#include "checkpoint/publish.h"
#include "checkpoint/replication/intact_file.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

bool is_kept(const fs::path& part, const CheckpointMetadata& step_metadata) {
  if (!has_manifest(part)) return false;
  const Result<CheckpointMetadata> there = read_metadata(part);
  return there.ok() && there->files.at(kManifestName) == step_metadata.files.at(kManifestName);
}

// Makes the partial folder, with the files already in it, the part.
Result<void> publish_with(const SaveLocation& location, const CheckpointMetadata& step_metadata) {
  const fs::path partial = partial_folder(location);
  MOTLEY_TRY(make_folders(partial));
  std::set<std::string> names;
  for (const WrittenFile& file : tensor_files(step_metadata.manifest)) names.insert(file.name);
  MOTLEY_TRY(remove_all_but(partial, names));
  for (const auto& [name, text] : step_metadata.files) {
    if (name != kManifestName) MOTLEY_TRY(write_file_atomic(partial / name, text));
  }
  MOTLEY_TRY(write_file_atomic(partial / kManifestName, step_metadata.files.at(kManifestName)));
  return publish_partial(location);
}

// Links rather than moves: a file of an older checkpoint's folder is needed until its successor is
// complete.
Result<void> link_into(const fs::path& folder, const fs::path& file) {
  std::error_code code;
  fs::create_hard_link(file, folder / file.filename(), code);
  if (code == std::errc::operation_not_supported || code == std::errc::operation_not_permitted) {
    fs::rename(file, folder / file.filename(), code);  // a file system without links
  }
  if (code) return file_error("link", file, code.value());
  return {};
}

// Adds to `folder` the files that the step's other folders have.
Result<void> gather(const fs::path& folder,
                    const SaveLocation& location,
                    const CheckpointMetadata& step_metadata,
                    ProgressCounter* work,
                    const std::stop_token& stop) {
  std::error_code code;
  for (const WrittenFile& file : tensor_files(step_metadata.manifest)) {
    const fs::path path = folder / file.name;
    MOTLEY_ASSIGN(const bool is_present, is_intact(path, file, work, stop));
    if (is_present) continue;
    MOTLEY_ASSIGN(const FileSearch found,
                  find_file(location.run_dir, location.step, file, work, stop));
    if (!found.intact) continue;
    fs::remove(path, code);  // damaged or absent
    MOTLEY_TRY(link_into(folder, *found.intact));
  }
  return sync_folder(folder);
}

}  // namespace

Result<void> store_shards(const fs::path& run_dir,
                          const std::string& launch,
                          const CheckpointMetadata& step_metadata) {
  const SaveLocation location{run_dir, launch, step_metadata.step()};
  const fs::path part = checkpoint_folder(run_dir, step_metadata.step());
  if (!is_kept(part, step_metadata)) return publish_with(location, step_metadata);
  // The step was saved again with the same bits: replaces damaged or missing files of the part.
  std::error_code code;
  const bool is_saved_again = fs::exists(partial_folder(location), code);
  return is_saved_again ? gather(part, location, step_metadata, nullptr, {}) : Result<void>();
}

Result<void> adopt_shards(const fs::path& run_dir,
                          const std::string& launch,
                          const CheckpointMetadata& step_metadata,
                          ProgressCounter* work,
                          const std::stop_token& stop) {
  const SaveLocation location{run_dir, launch, step_metadata.step()};
  const fs::path part = checkpoint_folder(run_dir, step_metadata.step());
  if (is_kept(part, step_metadata)) return gather(part, location, step_metadata, work, stop);
  MOTLEY_TRY(make_folders(partial_folder(location)));
  MOTLEY_TRY(gather(partial_folder(location), location, step_metadata, work, stop));
  return publish_with(location, step_metadata);
}

}  // namespace motley
