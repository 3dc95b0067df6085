// Arrays and images with random damage are accepted or refused with an error; tests/fuzz/ searches
// further with the same properties.
#include "tests/fuzz/array_laws.h"
#include "tests/support/damage.h"

namespace motley {
namespace {

RC_GTEST_PROP(DamagedArray, IsReadOrRefused, ()) {
  RC_ASSERT(wrong_with_npy(right_npy()) == "");
  static const std::vector<std::string> fragments = {"{",
                                                     "}",
                                                     "(",
                                                     ")",
                                                     ",",
                                                     ":",
                                                     "'",
                                                     "\"",
                                                     "True",
                                                     "False",
                                                     "shape",
                                                     "descr",
                                                     "fortran_order",
                                                     "|u1",
                                                     "|b1",
                                                     "<i2",
                                                     "<f8",
                                                     ">i4",
                                                     "-1",
                                                     "0",
                                                     "1099511627776",
                                                     "99999999999999999999",
                                                     "\n",
                                                     "\x93NUMPY"};
  RC_ASSERT(wrong_with_npy(damaged(right_npy(), fragments)) == "");
}

RC_GTEST_PROP(DamagedArray, IsReadOrRefusedByItsLengths, ()) {
  constexpr std::size_t kHeadBytes = 12;
  RC_ASSERT(wrong_with_npy(damaged(right_npy().substr(0, kHeadBytes), fragments_of_bytes()) +
                           right_npy().substr(kHeadBytes)) == "");
}

RC_GTEST_PROP(DamagedImages, AreReadOrRefused, ()) {
  RC_ASSERT(wrong_with_idx(right_idx()) == "");
  RC_ASSERT(wrong_with_idx(damaged(right_idx(), fragments_of_bytes())) == "");
}

}  // namespace
}  // namespace motley
