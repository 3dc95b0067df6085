// Messages between launcher and worker with random damage are accepted or refused with an error;
// tests/fuzz/ searches further with the same properties.
#include "tests/fuzz/event_laws.h"
#include "tests/support/damage.h"

namespace motley {
namespace {

RC_GTEST_PROP(DamagedEvent, IsReadOrRefused, ()) {
  const std::string right = (*rc::gen::elementOf(right_messages())).dump() + "\n";
  RC_ASSERT(wrong_with_events(right) == "");
  RC_ASSERT(wrong_with_events(damaged(right, fragments_of_text())) == "");
}

RC_GTEST_PROP(DamagedEvent, AmongOthersIsReadOrRefused, ()) {
  RC_ASSERT(wrong_with_events(damaged(right_events(), fragments_of_text())) == "");
}

}  // namespace
}  // namespace motley
