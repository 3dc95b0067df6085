// What must hold for any bytes that are read as a file: no crash, and what is accepted is written
// and read back as the same value. Each gives what is wrong with the answer, or "".
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "plan/profile.h"

namespace motley {

inline std::string wrong_error(const Error& error, bool corrupt_allowed) {
  const bool documented =
      error.code == ErrorCode::kConfig || (corrupt_allowed && error.code == ErrorCode::kCorrupt);
  if (!documented) return "undocumented code: " + describe(error);
  if (error.what.empty() || error.cause.empty()) return "says too little: " + describe(error);
  return describe(error).size() > 2000 ? "says too much: " + describe(error) : "";
}

inline std::string wrong_with_cluster(std::string_view text) {
  const auto cluster = parse_cluster(text, "c.toml");
  if (!cluster.ok()) return wrong_error(cluster.error(), false);
  const auto again = parse_cluster(text, "c.toml");
  return again.ok() && *again == *cluster ? "" : "read twice, and not the same";
}

template <class Parse, class Write>
std::string wrong_with_json(std::string_view text, const Parse& parse, const Write& write) {
  const auto value = parse(text, "p.json");
  if (!value.ok()) return wrong_error(value.error(), true);
  const Json written = write(*value);
  const auto again = parse(written.dump(), "p.json");
  if (!again.ok()) return "written and refused: " + describe(again.error());
  return write(*again) == written ? "" : "written and read, and not the same";
}

inline std::string wrong_with_plan(std::string_view text) {
  return wrong_with_json(text, parse_plan, plan_to_json);
}

inline std::string wrong_with_profile(std::string_view text) {
  return wrong_with_json(text, parse_profile, profile_to_json);
}

}  // namespace motley
