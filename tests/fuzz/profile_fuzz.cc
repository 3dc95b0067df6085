#include "base/check.h"
#include "tests/fuzz/laws.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string wrong = motley::wrong_with_profile({data, size});
  MOTLEY_CHECK(wrong.empty(), "{}", wrong);
  return 0;
}
