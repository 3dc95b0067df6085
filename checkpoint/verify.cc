// Compares every byte of a checkpoint with its manifest.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "base/hash.h"
#include "base/system/files.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/fencing_token.h"
#include "checkpoint/folders.h"
#include "checkpoint/input_file.h"
#include "checkpoint/manifest.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

Error differs(const fs::path& path, std::string cause) {
  return damaged_checkpoint(path.string(), std::move(cause));
}

Result<void> verify_file(const fs::path& folder, const WrittenFile& expected, WorkObserver* watch) {
  MOTLEY_ASSIGN(const InputFile file, open_file_of(folder, expected));
  if (file.bytes() != expected.bytes) {
    return differs(file.path(), fmt::format("it has {} bytes; the manifest says {}", file.bytes(),
                                            expected.bytes));
  }
  Hasher128 hasher;
  std::vector<std::byte> block(std::min<std::uint64_t>(expected.bytes, 1 << 20));
  for (std::uint64_t done = 0; done < expected.bytes;) {
    const auto part =
        std::span(block).first(std::min<std::uint64_t>(block.size(), expected.bytes - done));
    MOTLEY_TRY(file.read_at(done, part));
    hasher.add(part);
    done += part.size();
    if (watch != nullptr) MOTLEY_TRY(watch->advance(part.size()));
  }
  if (hasher.hex() != expected.hash) {
    return differs(file.path(), fmt::format("its hash is {}; the manifest says {}", hasher.hex(),
                                            expected.hash));
  }
  return {};
}

// A partly received copy of one of the files, left by a launch that ended: ".NAME.LAUNCH".
bool is_copy_given_up(const std::string& name, const std::set<std::string>& known) {
  const std::size_t dot = name.rfind('.');
  return name.starts_with('.') && dot > 0 && known.contains(name.substr(1, dot - 1)) &&
         parse_launch(name.substr(dot + 1)).ok();
}

Result<void> verify_no_extra_files(const fs::path& folder, const Manifest& manifest) {
  std::set<std::string> known = {kManifestName};
  for (const WrittenFile& file : manifest.files) known.insert(file.name);
  std::error_code code;
  fs::directory_iterator it(folder, code);
  for (; !code && it != fs::directory_iterator(); it.increment(code)) {
    const std::string name = it->path().filename().string();
    if (!known.contains(name) && !is_copy_given_up(name, known)) {
      return differs(it->path(), "the manifest does not list it");
    }
  }
  if (code) return file_error("list", folder, code.value());
  return {};
}

Result<void> verify_step(const fs::path& folder, const Manifest& manifest) {
  fs::path plain = fs::absolute(folder).lexically_normal();
  if (!plain.has_filename()) plain = plain.parent_path();  // it ended in '/'
  const auto name = parse_folder_name(plain.filename().string());
  if (name && name->step != manifest.state.step) {
    return differs(folder, fmt::format("the manifest is of step {}", manifest.state.step));
  }
  return {};
}

Result<void> verify_parameter_hash(const fs::path& folder, const Manifest& manifest) {
  std::map<std::string, std::string> parameters;
  for (const WrittenFile& file : manifest.files) {
    if (!is_parameter_file(file.name)) continue;
    parameters.insert(file.tensor_hashes.begin(), file.tensor_hashes.end());
  }
  if (parameter_hash(parameters) == manifest.parameter_hash) return {};
  return differs(folder / kManifestName, "parameter_hash is not that of the parameters");
}

Result<void> verify_files(const fs::path& folder,
                          const std::vector<const WrittenFile*>& files,
                          WorkObserver* watch) {
  std::uint64_t bytes = 0;
  for (const WrittenFile* file : files) bytes += file->bytes;
  if (watch != nullptr) watch->begin("verifying", bytes);
  for (const WrittenFile* file : files) MOTLEY_TRY(verify_file(folder, *file, watch));
  return {};
}

}  // namespace

Result<void> verify_checkpoint(const fs::path& folder, WorkObserver* watch) {
  MOTLEY_ASSIGN(const Manifest manifest, read_manifest(folder));
  MOTLEY_TRY(verify_step(folder, manifest));
  std::vector<const WrittenFile*> files;
  for (const WrittenFile& file : manifest.files) files.push_back(&file);
  MOTLEY_TRY(verify_files(folder, files, watch));
  MOTLEY_TRY(verify_parameter_hash(folder, manifest));
  return verify_no_extra_files(folder, manifest);
}

Result<void> verify_parameters(const fs::path& folder, WorkObserver* watch) {
  MOTLEY_ASSIGN(const Manifest manifest, read_manifest(folder));
  MOTLEY_TRY(verify_step(folder, manifest));
  std::vector<const WrittenFile*> files;
  for (const WrittenFile& file : manifest.files) {
    if (!is_optimizer_file(file.name)) files.push_back(&file);
  }
  MOTLEY_TRY(verify_files(folder, files, watch));
  return verify_parameter_hash(folder, manifest);
}

}  // namespace motley
