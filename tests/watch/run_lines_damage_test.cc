// Lines of a run's files with random damage are read or ignored; tests/fuzz/ searches further with
// the same properties.
#include "tests/fuzz/metrics_laws.h"
#include "tests/support/damage.h"

namespace motley {
namespace {

RC_GTEST_PROP(DamagedRunLines, AreReadOrLeftOut, ()) {
  RC_ASSERT(wrong_with_run_lines(right_run_lines()) == "");
  RC_ASSERT(wrong_with_run_lines(damaged(right_run_lines(), fragments_of_text())) == "");
}

}  // namespace
}  // namespace motley
