#include "tests/fuzz/one_input.h"
#include "tests/fuzz/picture_laws.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  return motley::check_property(motley::wrong_with_picture, {data, size});
}
