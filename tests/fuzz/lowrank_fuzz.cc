// The bytes of a lowrank message.
#include "tests/fuzz/codec_laws.h"
#include "tests/fuzz/one_input.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  static const auto codecs = motley::codecs_of(motley::kLowRankChains);
  return motley::ask_law(
      [](std::string_view input) { return motley::wrong_with_message(codecs, input); },
      {data, size});
}
