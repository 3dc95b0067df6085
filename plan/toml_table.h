// Typed and range-checked members of a user's TOML table: the counterpart of JsonFields.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/toml.h"

namespace motley {

// Reads one table of a document, which must outlive it. A read leaves the value unchanged if the
// key is absent, and marks the key as known; finish() rejects all other keys. All errors are
// kConfig and name the key with line and column.
class TomlTable {
 public:
  explicit TomlTable(const TomlDocument& document) : TomlTable(document, document.root, "") {}

  // One line of at most 4096 bytes.
  [[nodiscard]] Result<void> read(const char* key, std::string& value);
  [[nodiscard]] Result<void> read(const char* key, bool& value);
  [[nodiscard]] Result<void> read(const char* key, std::vector<std::string>& value);
  [[nodiscard]] Result<void> read(const char* key, double& value, double min, double max);
  [[nodiscard]] Result<void> read(const char* key, int& value, int min, int max);

  // The tables of an array of tables; empty if the key is absent.
  [[nodiscard]] Result<std::vector<TomlTable>> tables(const char* key);
  [[nodiscard]] Result<std::optional<TomlTable>> table(const char* key);

  [[nodiscard]] bool has(const char* key) const { return table_->contains(key); }

  // REQUIRES: all allowed keys were read.
  [[nodiscard]] Result<void> finish() const;

  // `key` may be "" for the table itself, or nested, as in "devices[2]".
  [[nodiscard]] Error bad(const std::string& key,
                          const std::string& cause,
                          const std::string& remedy) const;

 private:
  TomlTable(const TomlDocument& document, const Json& table, std::string path)
      : document_(&document), table_(&table), path_(std::move(path)) {}

  const Json* find(const char* key);

  const TomlDocument* document_;
  const Json* table_;
  std::string path_;
  std::vector<std::string> known_;
};

}  // namespace motley
