// The JSON files of a checkpoint. Format: docs/formats/checkpoint.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/input_file.h"

namespace motley {

// The version written. Version 1, which can be read too, numbers residuals by rank and has no
// machines.
inline constexpr int kManifestVersion = 2;

// The hash of parameters by name: hash128 over the lines "<hash of the values> <name>\n", sorted by
// the bytes of the names.
[[nodiscard]] std::string parameter_hash(const std::map<std::string, std::string>& tensor_hashes);

// {"name", "bytes", "hash", "tensors": [{"name", "hash"}, …], "machine" if there is one}
[[nodiscard]] Json written_file_to_json(const WrittenFile& file);
[[nodiscard]] Result<WrittenFile> written_file_from_json(const Json& json,
                                                         const std::string& source);

// kCorrupt: the data at `source` contradicts the manifest, for this reason.
[[nodiscard]] Error damaged_checkpoint(const std::string& source, std::string cause);

// Opens the file of a checkpoint in that folder, where it must exist: otherwise kCorrupt, which
// names the machine that wrote it if the manifest does.
[[nodiscard]] Result<InputFile> open_file_of(const std::filesystem::path& folder,
                                             const WrittenFile& file);

// The text ends with a hash of all bytes before it.
[[nodiscard]] std::string format_manifest(const Manifest& manifest);

// kCorrupt if the text is not what format_manifest wrote, byte for byte, or has an unknown version.
[[nodiscard]] Result<Manifest> parse_manifest(std::string_view text, const std::string& source);

// model.safetensors.index.json: the file of each parameter, and the bytes of all values.
[[nodiscard]] Json weights_index(const std::map<std::string, std::string>& parameter_files,
                                 std::uint64_t parameter_bytes);

// Writes one of the JSON files beside the manifest, synced.
[[nodiscard]] Result<WrittenFile> write_json_file(const std::filesystem::path& folder,
                                                  const std::string& name,
                                                  const Json& json);

}  // namespace motley
