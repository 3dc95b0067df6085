#include "checkpoint/replication/restored_view.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/system/files.h"
#include "checkpoint/folders.h"
#include "checkpoint/manifest.h"
#include "checkpoint/replication/checkpoint_metadata.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// "exp_avg/h.0.mlp.c_fc.weight" -> "h.0.mlp.c_fc.weight"
std::string parameter_of(const WrittenFile& file, const std::string& tensor) {
  return is_parameter_file(file.name) ? tensor : tensor.substr(tensor.find('/') + 1);
}

}  // namespace

std::vector<RequiredFile> required_files(const Manifest& manifest,
                                         const std::set<std::string>& parameters) {
  std::vector<RequiredFile> needs;
  for (WrittenFile& file : tensor_files(manifest)) {
    std::set<std::string> tensors;
    for (const auto& [tensor, hash] : file.tensor_hashes) {
      if (parameters.contains(parameter_of(file, tensor))) tensors.insert(tensor);
    }
    if (!tensors.empty()) needs.push_back({std::move(file), std::move(tensors)});
  }
  return needs;
}

fs::path restored_view_folder(const SaveLocation& location) {
  return checkpoints_root(location.run_dir) /
         folder_name({location.step, FolderKind::kRestored, location.launch});
}

Result<void> discard_restored_view(const SaveLocation& location) {
  return discard_folder(checkpoints_root(location.run_dir),
                        {location.step, FolderKind::kRestored, location.launch});
}

bool is_in_shard_set(const SaveLocation& location, const Manifest& described) {
  const fs::path part = checkpoint_folder(location.run_dir, location.step);
  Result<Manifest> there = read_manifest(part);
  if (!there.ok()) return false;
  Manifest wanted = described;
  std::ranges::sort(wanted.files, {}, &WrittenFile::name);
  std::erase_if(there->files, [&](const WrittenFile& file) {
    return std::ranges::count(wanted.files, file.name, &WrittenFile::name) == 0;
  });
  std::ranges::sort(there->files, {}, &WrittenFile::name);
  return format_manifest(*there) == format_manifest(wanted);
}

Result<void> begin_restored_view(const SaveLocation& location) {
  MOTLEY_TRY(discard_restored_view(location));
  return make_folders(restored_view_folder(location));
}

Result<void> link_into_restored_view(const SaveLocation& location, const fs::path& file) {
  const fs::path link = restored_view_folder(location) / file.filename();
  std::error_code code;
  fs::create_hard_link(file, link, code);
  // The file system has no hard links.
  if (code) fs::copy_file(file, link, code);
  if (code) return file_error("copy", file, code.value());
  return {};
}

Result<void> end_restored_view(const SaveLocation& location,
                               Manifest manifest,
                               const std::vector<RequiredFile>& needs) {
  manifest.files.clear();
  for (const RequiredFile& need : needs) manifest.files.push_back(need.file);
  return write_file_atomic(restored_view_folder(location) / kManifestName,
                           format_manifest(manifest));
}

}  // namespace motley
