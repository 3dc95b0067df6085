// The bytes of a topk message.
#include "tests/fuzz/codec_laws.h"
#include "tests/fuzz/one_input.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  static const auto codecs = motley::codecs_of(motley::kTopkChains);
  return motley::check_property(
      [](std::string_view input) { return motley::wrong_with_message(codecs, input); },
      {data, size});
}
