// The entries of a safetensors file's JSON header: its keys, their types and their bounds.
// parse_safetensors_header() checks whether the tensors fit the file.
#pragma once

#include <string>
#include <string_view>

#include "checkpoint/safetensors_header.h"

namespace motley {

// The only key of the header that is not a tensor's name.
inline constexpr const char* kSafetensorsMetadataKey = "__metadata__";

// Whether a file's tensor may have this name: not empty, no control characters.
[[nodiscard]] bool is_readable_tensor_name(const std::string& name);

// Parses untrusted text into `header`. Returns "", or the defect of the text; then the header is
// unchanged. Memory stays within a few times the text.
[[nodiscard]] std::string read_header_entries(std::string_view text, SafetensorsHeader& header);

}  // namespace motley
