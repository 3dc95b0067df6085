// Passes one input of a fuzzer to a property.
#pragma once

#include <string_view>

#include "base/check.h"
#include "tests/fuzz/heap_bound.h"

namespace motley {

template <class Property>
int check_property(const Property& property, std::string_view input) {
  const HeapBound bound(input.size());
  const auto wrong = property(input);
  MOTLEY_CHECK(wrong.empty(), "{}", wrong);
  return 0;
}

}  // namespace motley
