// A second reading of the lowrank messages of docs/formats/frame.md, byte by byte and for tests
// only.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "compression/formats/half.h"
#include "tests/compression/slices.h"

namespace motley {

class LowRankReader {
 public:
  // format: "none", "fp16" or "int8".
  LowRankReader(const Bytes& wire, std::size_t rank, std::string format)
      : wire_(wire), rank_(rank), format_(std::move(format)) {}

  // Nothing when the bytes are no message of so many values.
  std::optional<Floats> read(std::size_t count) {
    Floats values;
    while (values.size() < count)
      read_matrix(std::min<std::size_t>(65536, count - values.size()), values);
    if (failed_ || at_ != wire_.size()) return std::nullopt;
    return values;
  }

 private:
  void read_matrix(std::size_t count, Floats& values) {
    std::size_t columns = 16;
    while (columns * columns < count) columns *= 2;
    const std::size_t rows = (count + columns - 1) / columns;
    if (2 * rank_ * (rows + columns) > count) {
      const Floats plain = factors(count);
      values.insert(values.end(), plain.begin(), plain.end());
      return;
    }
    Floats scales;
    for (std::size_t r = 0; r < rank_; ++r) scales.push_back(binary32());
    const Floats p = factors(rank_ * rows);
    const Floats q = factors(rank_ * columns);
    for (std::size_t k = 0; k < count; ++k) {
      float sum = 0;
      for (std::size_t r = 0; r < rank_; ++r) {
        const float scaled = scales[r] * q[r * columns + k % columns];
        const float product = p[r * rows + k / columns] * scaled;
        sum = r == 0 ? product : sum + product;
      }
      values.push_back(sum);
    }
  }

  Floats factors(std::size_t count) {
    Floats values;
    float scale = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (format_ == "none") {
        values.push_back(binary32());
      } else if (format_ == "fp16") {
        values.push_back(float_from_fp16(static_cast<std::uint16_t>(number(2))));
      } else {
        if (i % 128 == 0) scale = binary32();
        const auto code = static_cast<int>(number(1));
        values.push_back(static_cast<float>(code < 128 ? code : code - 256) * scale);
      }
    }
    return values;
  }

  std::size_t number(std::size_t bytes) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      if (at_ == wire_.size()) {
        failed_ = true;
        return 0;
      }
      value |= static_cast<std::size_t>(wire_[at_++]) << (8 * i);
    }
    return value;
  }

  float binary32() {
    const auto bits = static_cast<std::uint32_t>(number(4));
    float value = 0;
    std::memcpy(&value, &bits, 4);
    return value;
  }

  const Bytes& wire_;
  std::size_t rank_;
  std::string format_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace motley
