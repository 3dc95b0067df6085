// The first byte selects whether the rest is a manifest, or one without the hash at its end, which
// no fuzzer would guess.
#include "tests/fuzz/checkpoint_laws.h"
#include "tests/fuzz/one_input.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(data + 1, size - 1);
  const bool corrects_hash = (*data & 1) != 0;
  return motley::check_property(motley::wrong_with_manifest,
                                corrects_hash ? motley::with_right_hash(text) : text);
}
