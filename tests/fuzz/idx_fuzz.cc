#include "tests/fuzz/array_laws.h"
#include "tests/fuzz/one_input.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  return motley::check_property(motley::wrong_with_idx, {data, size});
}
