// Files of a package that other programs need to open the trained model: the configuration that
// transformers reads, a tokenizer's files (docs/formats/package.md, "Model files").
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/progress_counter.h"
#include "base/result.h"

namespace motley {

class JsonFields;

struct ModelFile {
  std::string name;  // without folder
  std::uint64_t bytes = 0;
  std::string sha256;  // 64 lower-case hexadecimal digits
};

inline constexpr const char* kModelFilesFolder = "files";

// kCorrupt: a file of a package does not match package.json.
[[nodiscard]] Error damaged_package(const std::filesystem::path& path, std::string cause);

// 64 lower-case hexadecimal digits of the member `key`.
[[nodiscard]] Result<std::string> read_sha256(const JsonFields& fields, const char* key);

// Members "files" and "adapter" of package.json; empty where they are absent.
[[nodiscard]] Result<std::vector<ModelFile>> read_model_files(const JsonFields& fields);
[[nodiscard]] Result<std::map<std::string, std::string>> read_adapter_names(
    const JsonFields& fields);

// The contents of a file of the package in `folder`. kCorrupt if it does not exist, is a link, or
// has another size or hash. `work` counts its bytes; nullptr: not counted.
[[nodiscard]] Result<std::string> read_model_file(const std::filesystem::path& folder,
                                                  const ModelFile& file,
                                                  ProgressCounter* work = nullptr);

}  // namespace motley
