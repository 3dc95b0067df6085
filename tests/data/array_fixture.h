// Arrays in NumPy's format, and samples as a model's inputs.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "data/source.h"
#include "tests/data/fixture.h"
#include "tests/support/npy_text.h"

namespace motley {

template <class T>
std::string npy(const std::string& type,
                const std::vector<std::int64_t>& shape,
                const std::vector<T>& values) {
  return npy_of(npy_header(type, shape), bytes_of(values));
}

inline std::string npy_bytes(const std::vector<std::int64_t>& shape,
                             const std::vector<std::uint8_t>& values) {
  return npy("|u1", shape, values);
}

inline std::string npy_longs(const std::vector<std::int64_t>& shape,
                             const std::vector<std::int64_t>& values) {
  return npy("<i8", shape, values);
}

inline std::string npy_floats(const std::vector<std::int64_t>& shape,
                              const std::vector<float>& values) {
  return npy("<f4", shape, values);
}

// A model with float inputs of this shape and one of `classes` as output.
inline SampleFormat classifier(std::vector<std::int64_t> shape, std::int64_t classes = 10) {
  SampleFormat format;
  format.inputs = {{"", {Dtype::kFloat32, std::move(shape)}, {}}};
  format.target = {Dtype::kInt64, {}};
  format.target_limit = classes;
  return format;
}

inline std::vector<float> floats_of(const std::vector<std::int32_t>& words) {
  std::vector<float> floats;
  for (const std::int32_t word : words) floats.push_back(std::bit_cast<float>(word));
  return floats;
}

inline Sample empty_sample(const SampleFormat& format) {
  return {std::vector<std::int32_t>(static_cast<std::size_t>(format.input_count())),
          std::vector<std::int32_t>(static_cast<std::size_t>(format.target.count()))};
}

inline Sample train_sample(const Source& source, std::uint64_t index, const SampleFormat& format) {
  Sample sample = empty_sample(format);
  source.train_sample(index, sample.inputs, sample.targets);
  return sample;
}

inline Sample eval_sample(const Source& source, std::uint64_t index, const SampleFormat& format) {
  Sample sample = empty_sample(format);
  source.eval_sample(index, sample.inputs, sample.targets);
  return sample;
}

inline std::unique_ptr<const Source> opened(const DataConfig& data,
                                            const SampleFormat& format,
                                            std::int64_t seed = 1) {
  auto source = open_source(data, format, seed);
  EXPECT_TRUE(source.ok()) << (source.ok() ? "" : describe(source.error()));
  return source.ok() ? std::move(source).value() : nullptr;
}

// The error of a source that must not open.
inline Error open_error(const DataConfig& data, const SampleFormat& format) {
  const auto source = open_source(data, format, 1);
  EXPECT_FALSE(source.ok());
  return source.ok() ? Error{} : source.error();
}

}  // namespace motley
