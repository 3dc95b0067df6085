#include "tests/fuzz/join_laws.h"
#include "tests/fuzz/one_input.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  return motley::check_property(motley::wrong_with_ticket, {data, size});
}
