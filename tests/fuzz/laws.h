// What must hold for any bytes that are read as a document. Each law gives what is wrong with the
// answer, or ""; the laws of one module's formats, with a document of each that is right, stand in
// the *_laws.h beside this file. The fuzzers and the damage tests of the modules ask them.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace motley {

// An error has a documented code, names its source and says why or what to do, in few words.
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

// What is read is written and read back as the same.
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
