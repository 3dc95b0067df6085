// What the JSON header of a safetensors file says, word for word: its keys, their kinds and their
// bounds. Whether the tensors fit the file is for parse_safetensors_header() to find.
#pragma once

#include <string>
#include <string_view>

#include "checkpoint/safetensors_header.h"

namespace motley {

// The one key of the header that names no tensor.
inline constexpr const char* kSafetensorsMetadataKey = "__metadata__";

// Whether a tensor of a file may have this name: any but an empty one or one with control
// characters.
[[nodiscard]] bool is_readable_tensor_name(const std::string& name);

// Reads untrusted text into `header`. "", or what is wrong with the text; then the header is as it
// was. Memory stays within a few times the text.
[[nodiscard]] std::string read_header_entries(std::string_view text, SafetensorsHeader& header);

}  // namespace motley
