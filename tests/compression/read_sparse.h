// A second decoder of the topk messages of docs/formats/frame.md, byte by byte and for tests only.
#pragma once

#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "compression/formats/half.h"
#include "tests/compression/slices.h"

namespace motley {

struct SparseMessage {
  std::size_t count = 0;              // of the slice
  std::map<std::size_t, float> kept;  // by position in the slice
  std::set<std::size_t> not_finite;   // blocks
};

class SparseReader {
 public:
  // format: "none", "fp16" or "int8".
  SparseReader(const Bytes& wire, std::string format) : wire_(wire), format_(std::move(format)) {}

  // nullopt if the bytes are not a valid message.
  std::optional<SparseMessage> read() {
    message_.count = number(8);
    for (std::size_t first = 0; first < message_.count && !failed_; first += 4096) {
      read_block(first, std::min<std::size_t>(4096, message_.count - first));
    }
    if (failed_ || at_ != wire_.size()) return std::nullopt;
    return message_;
  }

 private:
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

  std::vector<std::size_t> places(std::size_t kept, std::size_t size) {
    std::vector<std::size_t> found;
    const std::size_t mask_bytes = (size + 7) / 8;
    if (kept >= mask_bytes) {
      for (std::size_t j = 0; j < mask_bytes; ++j) {
        const std::size_t byte = number(1);
        for (std::size_t bit = 0; bit < 8; ++bit) {
          if ((byte >> bit & 1) != 0) found.push_back(8 * j + bit);
        }
      }
    } else {
      std::size_t next = 0;
      while (found.size() < kept && !failed_) {
        const std::size_t byte = number(1);
        next += byte;
        if (byte < 255) found.push_back(next++);
      }
    }
    if (found.size() != kept || (kept > 0 && found.back() >= size)) failed_ = true;
    return found;
  }

  void read_block(std::size_t first, std::size_t size) {
    const std::size_t kept = number(2);
    if (kept == 65535) {
      message_.not_finite.insert(first / 4096);
      return;
    }
    float scale = 0;
    std::size_t i = 0;
    for (const std::size_t place : places(kept, size)) {
      if (format_ == "int8" && i++ % 128 == 0) scale = binary32();
      message_.state_array[first + place] = value(scale);
    }
  }

  float value(float scale) {
    if (format_ == "none") return binary32();
    if (format_ == "fp16") return float_from_fp16(static_cast<std::uint16_t>(number(2)));
    const auto code = static_cast<int>(number(1));
    return static_cast<float>(code < 128 ? code : code - 256) * scale;
  }

  const Bytes& wire_;
  std::string format_;
  std::size_t at_ = 0;
  bool failed_ = false;
  SparseMessage message_;
};

}  // namespace motley
