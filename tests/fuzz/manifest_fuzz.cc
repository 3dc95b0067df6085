// The first byte says whether what follows is a manifest, or one without the hash that it ends in,
// which no fuzzer would guess.
#include "tests/fuzz/checkpoint_laws.h"
#include "tests/fuzz/one_input.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(data + 1, size - 1);
  const bool put_right = (*data & 1) != 0;
  return motley::ask_law(motley::wrong_with_manifest,
                         put_right ? motley::with_right_hash(text) : text);
}
