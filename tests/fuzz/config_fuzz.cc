// The first byte selects whether the rest is a file, or one setting of the command line and the
// environment.
#include "tests/fuzz/config_laws.h"
#include "tests/fuzz/one_input.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  if (size == 0) return 0;
  const bool setting = *data == '\1';
  return motley::check_property(setting ? motley::wrong_with_setting : motley::wrong_with_config,
                                {data + 1, size - 1});
}
