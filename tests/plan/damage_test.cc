// Files with random damage are accepted or refused with an error; tests/fuzz/ searches further
// with the same properties.
#include "tests/support/damage.h"

#include "base/system/files.h"
#include "tests/fuzz/plan_laws.h"
#include "tests/plan/value_fixtures.h"

namespace motley {
namespace {

std::string damaged_text(const std::string& text) {
  return damaged(text, fragments_of_text());
}

RC_GTEST_PROP(DamagedFile, OfAClusterIsReadOrRefused, ()) {
  const auto text =
      read_file(*rc::gen::element<std::string>(MOTLEY_CLUSTER_EXAMPLE, MOTLEY_VIRTUAL_EXAMPLE));
  RC_ASSERT(text.ok());
  RC_ASSERT(wrong_with_cluster(*text) == "");
  RC_ASSERT(wrong_with_cluster(damaged_text(*text)) == "");
}

RC_GTEST_PROP(DamagedFile, OfAPlanIsReadOrRefused, ()) {
  RC_ASSERT(wrong_with_plan(plan_text()) == "");
  RC_ASSERT(wrong_with_plan(damaged_text(plan_text())) == "");
}

// Without its hash a damaged plan reaches later checks.
RC_GTEST_PROP(DamagedFile, OfAPlanWithoutHashIsReadOrRefused, ()) {
  Json json = plan_to_json(two_stages());
  json.erase("hash");
  RC_ASSERT(wrong_with_plan(damaged_text(json.dump())) == "");
}

RC_GTEST_PROP(DamagedFile, OfAProfileIsReadOrRefused, ()) {
  RC_ASSERT(wrong_with_profile(profile_text()) == "");
  RC_ASSERT(wrong_with_profile(damaged_text(profile_text())) == "");
}

RC_GTEST_PROP(DamagedFile, OfLinksIsReadOrRefused, ()) {
  RC_ASSERT(wrong_with_links(links_text()) == "");
  RC_ASSERT(wrong_with_links(damaged_text(links_text())) == "");
}

RC_GTEST_PROP(DamagedPins, AreReadOrRefused, ()) {
  RC_ASSERT(wrong_with_pins(right_pins()) == "");
  RC_ASSERT(wrong_with_pins(damaged_text(right_pins())) == "");
}

}  // namespace
}  // namespace motley
