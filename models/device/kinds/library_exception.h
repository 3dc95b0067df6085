// The messages of a library's exceptions.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <string_view>

namespace motley {

// The first line; LibTorch appends a stack trace.
[[nodiscard]] inline std::string first_line_of(const std::exception& thrown) {
  const std::string_view all = thrown.what();
  return std::string(all.substr(0, all.find('\n')));
}

// Whether it reports that memory ran out, the host's or a device's. LibTorch has no exception type
// for it that all devices throw.
[[nodiscard]] inline bool is_out_of_memory(const std::exception& thrown) {
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr) return true;
  const std::string said = first_line_of(thrown);
  return said.find("allocate memory") != said.npos || said.find("out of memory") != said.npos ||
         said.find("STATUS_ALLOC_FAILED") != said.npos;  // cuBLAS and cuDNN on a full card
}

}  // namespace motley
