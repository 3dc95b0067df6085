#include "checkpoint/store/view.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/system/files.h"
#include "checkpoint/folders.h"
#include "checkpoint/manifest.h"
#include "checkpoint/store/texts.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// "exp_avg/h.0.mlp.c_fc.weight" -> "h.0.mlp.c_fc.weight"
std::string parameter_of(const WrittenFile& file, const std::string& tensor) {
  return is_parameter_file(file.name) ? tensor : tensor.substr(tensor.find('/') + 1);
}

}  // namespace

std::vector<FileNeed> needs_of(const Manifest& manifest, const std::set<std::string>& parameters) {
  std::vector<FileNeed> needs;
  for (WrittenFile& file : tensor_files(manifest)) {
    std::set<std::string> tensors;
    for (const auto& [tensor, hash] : file.tensor_hashes) {
      if (parameters.contains(parameter_of(file, tensor))) tensors.insert(tensor);
    }
    if (!tensors.empty()) needs.push_back({std::move(file), std::move(tensors)});
  }
  return needs;
}

fs::path view_folder(const SavePlace& place) {
  return checkpoints_root(place.run_dir) /
         folder_name({place.step, FolderKind::kRestored, place.launch});
}

Result<void> discard_view(const SavePlace& place) {
  return discard_folder(checkpoints_root(place.run_dir),
                        {place.step, FolderKind::kRestored, place.launch});
}

bool is_in_part(const SavePlace& place, const Manifest& described) {
  const fs::path part = checkpoint_folder(place.run_dir, place.step);
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

Result<void> begin_view(const SavePlace& place) {
  MOTLEY_TRY(discard_view(place));
  return make_folders(view_folder(place));
}

Result<void> link_into_view(const SavePlace& place, const fs::path& file) {
  const fs::path link = view_folder(place) / file.filename();
  std::error_code code;
  fs::create_hard_link(file, link, code);
  // The file system has no hard links.
  if (code) fs::copy_file(file, link, code);
  if (code) return file_error("copy", file, code.value());
  return {};
}

Result<void> end_view(const SavePlace& place,
                      Manifest manifest,
                      const std::vector<FileNeed>& needs) {
  manifest.files.clear();
  for (const FileNeed& need : needs) manifest.files.push_back(need.file);
  return write_file_atomic(view_folder(place) / kManifestName, format_manifest(manifest));
}

}  // namespace motley
