// What this process does to a folder, as a list of operations. Only in a program that
// tests/support/disk_recorder.cc is linked into.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/disk_log.h"

namespace motley::testing {

// What this process does below the folder is recorded from now on.
void begin_recording(const std::filesystem::path& folder);
[[nodiscard]] std::vector<DiskOperation> end_recording();
// A note in the record, where there is one. Any thread.
void mark(const std::string& text);

}  // namespace motley::testing
