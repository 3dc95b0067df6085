// Reads the golden files of make_gpt2_golden.py.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/system/files.h"

namespace motley::testing {

class Golden {
 public:
  // Throws if the file does not have the script's format, which fails the test.
  explicit Golden(const std::string& path) {
    text_ = read_file(path).value();
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, text_.data(), sizeof header_bytes);
    begin_ = sizeof header_bytes + header_bytes;
    header_ = parse_json(text_.substr(sizeof header_bytes, header_bytes), path).value();
  }

  [[nodiscard]] std::vector<float> floats(const std::string& name) const {
    return values<float>(name);
  }

  [[nodiscard]] std::vector<std::int64_t> ids(const std::string& name) const {
    return values<std::int64_t>(name);
  }

 private:
  template <class T>
  std::vector<T> values(const std::string& name) const {
    const auto offsets = header_.at(name).at("data_offsets").get<std::vector<std::uint64_t>>();
    std::vector<T> result((offsets[1] - offsets[0]) / sizeof(T));
    const std::string bytes = text_.substr(begin_ + offsets[0], result.size() * sizeof(T));
    if (bytes.size() != result.size() * sizeof(T)) throw std::runtime_error(name + " is cut off");
    std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }

  std::string text_;
  std::uint64_t begin_ = 0;
  Json header_;
};

}  // namespace motley::testing
