// Reports and predictions of runs with random damage are accepted or refused with an error;
// tests/fuzz/ searches further with the same properties.
#include "tests/fuzz/report_laws.h"
#include "tests/support/damage.h"

namespace motley {
namespace {

RC_GTEST_PROP(DamagedFile, OfAReportIsReadOrRefused, ()) {
  RC_ASSERT(wrong_with_report(right_report()) == "");
  RC_ASSERT(wrong_with_report(damaged(right_report(), fragments_of_text())) == "");
}

RC_GTEST_PROP(DamagedFile, OfAPredictionIsReadOrRefused, ()) {
  RC_ASSERT(wrong_with_prediction(right_prediction()) == "");
  RC_ASSERT(wrong_with_prediction(damaged(right_prediction(), fragments_of_text())) == "");
}

}  // namespace
}  // namespace motley
