#include "checkpoint/save/sealed_json.h"

#include <cstdint>
#include <span>
#include <string>

#include "base/hash.h"
#include "base/json.h"
#include "base/system/files.h"
#include "checkpoint/input_file.h"

namespace motley {
namespace {

constexpr std::uint64_t kBytesMax = 64ULL << 20;

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string hash_of(const Json& content) {
  const std::string text = text_of(content);
  return hash128_hex(std::as_bytes(std::span(text)));
}

}  // namespace

Result<void> write_sealed_json(const std::filesystem::path& path, const Json& content) {
  return write_file_atomic(path,
                           text_of({{"content", content}, {"hash", hash_of(content)}}) + "\n");
}

Result<Json> read_sealed_json(const std::filesystem::path& path) {
  MOTLEY_ASSIGN(const InputFile file, InputFile::open(path));
  MOTLEY_ASSIGN(const std::string text, file.read_all(kBytesMax));
  MOTLEY_ASSIGN(const Json json, parse_json(text, path.string()));
  const auto content = json.find("content");
  if (content == json.end() || json.value("hash", Json()) != hash_of(*content)) {
    return Error{ErrorCode::kCorrupt, "damaged file, " + path.string(),
                 "its own hash does not match", ""};
  }
  return *content;
}

}  // namespace motley
