// MatrixShape: the size of a matrix in row-major order.
#pragma once

#include <cstdint>

namespace motley {

struct MatrixShape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  friend bool operator==(const MatrixShape&, const MatrixShape&) = default;
};

}  // namespace motley
