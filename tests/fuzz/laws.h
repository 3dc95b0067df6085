// Properties that must hold for any bytes that are read as a document. Each property returns the
// violation, or "". The properties of one module's formats, with valid documents, are in the
// *_laws.h beside this file. The fuzzers and the modules' damage tests use them.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace motley {

// An error has a documented code, names its source and gives a cause or a remedy, and is short.
inline std::string wrong_error(const Error& error,
                               std::initializer_list<ErrorCode> documented,
                               std::string_view source) {
  constexpr std::size_t kBytesMax = 2000;
  const std::string text = describe(error);
  if (std::find(documented.begin(), documented.end(), error.code) == documented.end()) {
    return "undocumented code: " + text;
  }
  if (error.what.find(source) == std::string::npos) return "does not name its source: " + text;
  if (error.cause.empty() && error.remedy.empty()) return "says too little: " + text;
  return text.size() > kBytesMax ? "says too much: " + text : "";
}

// A value that was read is equal after writing and reading it again.
template <class Read, class Write>
std::string wrong_way_back(const Read& value, const Read& again, const Write& write) {
  if (!again.ok()) return "written and refused: " + describe(again.error());
  return write(*again) == write(*value) ? "" : "written and read, and not the same";
}

template <class Parse, class Write>
std::string wrong_with_json(std::string_view text, const Parse& parse, const Write& write) {
  static const std::string kSource = "p.json";
  const auto value = parse(text, kSource);
  if (!value.ok()) {
    return wrong_error(value.error(), {ErrorCode::kConfig, ErrorCode::kCorrupt}, kSource);
  }
  return wrong_way_back(value, parse(write(*value).dump(), kSource), write);
}

}  // namespace motley
