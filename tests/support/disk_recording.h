// The operations of this process on a folder, as a list. Only for programs that
// tests/support/disk_recorder.cc is linked into.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/disk_log.h"

namespace motley::testing {

// Starts recording the operations of this process below the folder.
void begin_recording(const std::filesystem::path& folder);
[[nodiscard]] std::vector<DiskOperation> end_recording();
// Adds a marker to the record, if there is one. Thread-safe.
void mark(const std::string& text);

}  // namespace motley::testing
