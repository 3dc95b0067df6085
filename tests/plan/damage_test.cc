// Files with random damage are read or refused, and never more than that; tests/fuzz/ searches
// further with the same laws.
#include <functional>

#include "base/system/files.h"
#include "tests/fuzz/laws.h"
#include "tests/plan/value_fixtures.h"
#include "tests/support/property.h"

namespace motley {
namespace {

std::size_t place_in(const std::string& text) {
  return *rc::gen::inRange<std::size_t>(0, text.size() + 1);
}

// Bytes and tokens that mean something to one of the readers.
std::string fragment() {
  return *rc::gen::oneOf(
      rc::gen::container<std::string>(rc::gen::arbitrary<char>()),
      rc::gen::element<std::string>("{", "}", "[", "]", "[[machine]]\n", "\"", "'", ",", ":", "=",
                                    "\n", "#", "\\", "\\u0000", "null", "nan", "-inf", "1e999",
                                    "-1", "99999999999999999999", "0.1.2.3.4.5.6.7.8.9", "\xff"));
}

std::string damaged(std::string text) {
  const int changes = *rc::gen::inRange(1, 5);
  for (int change = 0; change < changes; ++change) {
    const std::size_t at = place_in(text);
    const std::size_t length = *rc::gen::inRange<std::size_t>(0, 40);
    const std::string piece = text.substr(at, length);
    const int kind = *rc::gen::inRange(0, 4);
    if (kind == 0) text.erase(at, length);
    if (kind == 1) text.insert(place_in(text), piece);
    if (kind == 2) text.insert(at, fragment());
    if (kind == 3) text.replace(at, piece.size(), fragment());
  }
  return text;
}

RC_GTEST_PROP(DamagedFile, OfAClusterIsReadOrRefused, ()) {
  const auto text =
      read_file(*rc::gen::element<std::string>(MOTLEY_CLUSTER_EXAMPLE, MOTLEY_VIRTUAL_EXAMPLE));
  RC_ASSERT(text.ok());
  RC_ASSERT(wrong_with_cluster(*text) == "");
  RC_ASSERT(wrong_with_cluster(damaged(*text)) == "");
}

RC_GTEST_PROP(DamagedFile, OfAPlanIsReadOrRefused, ()) {
  RC_ASSERT(wrong_with_plan(plan_text()) == "");
  RC_ASSERT(wrong_with_plan(damaged(plan_text())) == "");
}

// Without its hash a damaged plan gets further.
RC_GTEST_PROP(DamagedFile, OfAPlanWithoutHashIsReadOrRefused, ()) {
  Json json = plan_to_json(two_stages());
  json.erase("hash");
  RC_ASSERT(wrong_with_plan(damaged(json.dump())) == "");
}

RC_GTEST_PROP(DamagedFile, OfAProfileIsReadOrRefused, ()) {
  RC_ASSERT(wrong_with_profile(profile_text()) == "");
  RC_ASSERT(wrong_with_profile(damaged(profile_text())) == "");
}

}  // namespace
}  // namespace motley
