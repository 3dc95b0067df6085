// Reads tensors from safetensors files written by PyTorch, for tests and benchmarks that compare
// with it.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include <ATen/ATen.h>

#include "base/result.h"
#include "checkpoint/safetensors.h"

namespace motley::testing {

// Throws the error, which fails the test or the program.
template <class T>
T must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(describe(result.error()));
  return std::move(result).value();
}

// With the shape it has in the file.
inline at::Tensor read_tensor(const SafetensorsFile& file, const std::string& name) {
  if (!file.entries().contains(name)) throw std::runtime_error("no tensor '" + name + "'");
  const SafetensorsFile::Entry& entry = file.entries().at(name);
  const at::ScalarType type = entry.dtype == "I64"    ? at::kLong
                              : entry.dtype == "BOOL" ? at::kBool
                                                      : at::kFloat;
  at::Tensor tensor = at::empty(entry.shape, type);
  const std::span bytes(static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes());
  const auto read = file.read_bytes(name, entry.dtype, entry.shape, bytes);
  if (!read.ok()) throw std::runtime_error(describe(read.error()));
  return tensor;
}

}  // namespace motley::testing
