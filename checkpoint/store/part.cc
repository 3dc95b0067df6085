#include "checkpoint/store/part.h"

#include <set>
#include <system_error>

#include "base/system/files.h"
#include "checkpoint/folders.h"
#include "checkpoint/publish.h"
#include "checkpoint/store/whole_file.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

bool is_kept(const fs::path& part, const CheckpointMetadata& texts) {
  if (!has_manifest(part)) return false;
  const Result<CheckpointMetadata> there = read_texts(part);
  return there.ok() && there->files.at(kManifestName) == texts.files.at(kManifestName);
}

// Makes the partial folder, with the files already in it, the part.
Result<void> publish_with(const SavePlace& place, const CheckpointMetadata& texts) {
  const fs::path partial = partial_folder(place);
  MOTLEY_TRY(make_folders(partial));
  std::set<std::string> names;
  for (const WrittenFile& file : tensor_files(texts.manifest)) names.insert(file.name);
  MOTLEY_TRY(keep_only(partial, names));
  for (const auto& [name, text] : texts.files) {
    if (name != kManifestName) MOTLEY_TRY(write_file_atomic(partial / name, text));
  }
  MOTLEY_TRY(write_file_atomic(partial / kManifestName, texts.files.at(kManifestName)));
  return publish_partial(place);
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
                    const SavePlace& place,
                    const CheckpointMetadata& texts,
                    WorkCounter* work,
                    const std::stop_token& stop) {
  std::error_code code;
  for (const WrittenFile& file : tensor_files(texts.manifest)) {
    const fs::path path = folder / file.name;
    MOTLEY_ASSIGN(const bool is_there, is_whole(path, file, work, stop));
    if (is_there) continue;
    MOTLEY_ASSIGN(const FoundFile found, find_file(place.run_dir, place.step, file, work, stop));
    if (!found.whole) continue;
    fs::remove(path, code);  // damaged or absent
    MOTLEY_TRY(link_into(folder, *found.whole));
  }
  return sync_folder(folder);
}

}  // namespace

Result<void> keep_part(const fs::path& run_dir,
                       const std::string& launch,
                       const CheckpointMetadata& texts) {
  const SavePlace place{run_dir, launch, texts.step()};
  const fs::path part = checkpoint_folder(run_dir, texts.step());
  if (!is_kept(part, texts)) return publish_with(place, texts);
  // The step was saved again with the same bits: replaces damaged or missing files of the part.
  std::error_code code;
  const bool is_saved_again = fs::exists(partial_folder(place), code);
  return is_saved_again ? gather(part, place, texts, nullptr, {}) : Result<void>();
}

Result<void> adopt_part(const fs::path& run_dir,
                        const std::string& launch,
                        const CheckpointMetadata& texts,
                        WorkCounter* work,
                        const std::stop_token& stop) {
  const SavePlace place{run_dir, launch, texts.step()};
  const fs::path part = checkpoint_folder(run_dir, texts.step());
  if (is_kept(part, texts)) return gather(part, place, texts, work, stop);
  MOTLEY_TRY(make_folders(partial_folder(place)));
  MOTLEY_TRY(gather(partial_folder(place), place, texts, work, stop));
  return publish_with(place, texts);
}

}  // namespace motley
