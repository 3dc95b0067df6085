// Passes one input of a fuzzer to a law.
#pragma once

#include <string_view>

#include "base/check.h"
#include "tests/fuzz/heap_bound.h"

namespace motley {

template <class Law>
int ask_law(const Law& law, std::string_view input) {
  const HeapBound bound(input.size());
  const auto wrong = law(input);
  MOTLEY_CHECK(wrong.empty(), "{}", wrong);
  return 0;
}

}  // namespace motley
