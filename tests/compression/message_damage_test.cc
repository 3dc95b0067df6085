// Encoded values with random damage are accepted or refused with an error; tests/fuzz/ searches
// further with the same properties.
#include <cmath>

#include "tests/fuzz/codec_laws.h"
#include "tests/support/damage.h"

namespace motley {
namespace {

// Checks an encoded message of one of the chains, intact and damaged.
template <std::size_t kCount>
std::string wrong_with_some_message(const std::array<const char*, kCount>& chains) {
  static const Codecs codecs = codecs_of(chains);
  std::vector<float> values(*rc::gen::inRange<std::size_t>(1, 300));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i * i));
  const std::string right =
      message_input(chains, *rc::gen::inRange<std::size_t>(0, kCount), values);
  const std::string wrong = wrong_with_message(codecs, right);
  return wrong.empty() ? wrong_with_message(codecs, damaged(right, fragments_of_bytes())) : wrong;
}

RC_GTEST_PROP(DamagedMessage, OfZstdIsReadOrRefused, ()) {
  RC_ASSERT(wrong_with_some_message(kZstdChains) == "");
}

RC_GTEST_PROP(DamagedMessage, OfTopkIsReadOrRefused, ()) {
  RC_ASSERT(wrong_with_some_message(kTopkChains) == "");
}

}  // namespace
}  // namespace motley
