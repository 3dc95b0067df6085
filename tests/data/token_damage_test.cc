// Files of tokens with random damage are accepted or refused with an error; tests/fuzz/ searches
// further with the same properties.
#include "tests/fuzz/token_laws.h"
#include "tests/support/damage.h"

namespace motley {
namespace {

RC_GTEST_PROP(DamagedTokens, AreReadOrRefused, ()) {
  const std::string right = *rc::gen::element(right_short_tokens(), right_long_tokens());
  RC_ASSERT(wrong_with_tokens(right) == "");
  RC_ASSERT(wrong_with_tokens(damaged(right, fragments_of_bytes())) == "");
}

// Most errors are in the first three numbers.
RC_GTEST_PROP(DamagedTokens, AreReadOrRefusedByTheirHead, ()) {
  const std::string right = *rc::gen::element(right_short_tokens(), right_long_tokens());
  constexpr std::size_t kHeadBytes = 12;
  RC_ASSERT(wrong_with_tokens(damaged(right.substr(0, kHeadBytes), fragments_of_bytes()) +
                              right.substr(kHeadBytes)) == "");
}

}  // namespace
}  // namespace motley
