// Messages from the other end of a file transfer. The first byte selects whether the rest is the
// bytes of a file, or messages.
#include "tests/fuzz/file_laws.h"
#include "tests/fuzz/one_input.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(data + 1, size - 1);
  return motley::check_property(
      *data % 2 == 0 ? motley::wrong_with_file : motley::wrong_with_file_words, input);
}
