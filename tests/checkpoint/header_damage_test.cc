// Headers and manifests with random damage are accepted or refused with an error, also if their
// own hashes are correct; tests/fuzz/ searches further with the same properties.
#include "tests/fuzz/checkpoint_laws.h"
#include "tests/support/damage.h"

namespace motley {
namespace {

RC_GTEST_PROP(DamagedHeader, OfSafetensorsIsReadOrRefused, ()) {
  const std::string right = right_header_input();
  RC_ASSERT(wrong_with_safetensors(right) == "");
  const std::string text = right.substr(sizeof(std::uint64_t));
  const auto data_bytes = *rc::gen::weightedOneOf<std::uint64_t>(
      {{9, rc::gen::just<std::uint64_t>(40)}, {1, rc::gen::arbitrary<std::uint64_t>()}});
  RC_ASSERT(wrong_with_safetensors(header_input(data_bytes, damaged(text, fragments_of_text()))) ==
            "");
}

RC_GTEST_PROP(DamagedManifest, IsReadOrRefused, ()) {
  const std::string right = format_manifest(right_manifest());
  RC_ASSERT(wrong_with_manifest(right) == "");
  RC_ASSERT(wrong_with_manifest(damaged(right, fragments_of_text())) == "");
}

RC_GTEST_PROP(DamagedManifest, WithTheRightHashIsReadOrRefused, ()) {
  const std::string right = right_manifest_body();
  RC_ASSERT(with_right_hash(right) == format_manifest(right_manifest()));
  RC_ASSERT(wrong_with_manifest(with_right_hash(damaged(right, fragments_of_text()))) == "");
}

}  // namespace
}  // namespace motley
