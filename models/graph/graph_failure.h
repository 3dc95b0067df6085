// GraphFailure: how a graph that cannot run ends the work that it is part of. Layers return tensors
// (models/layers/layer.h), so the error travels as an exception up to the worker's main, which
// reports it with its exit status. And how a lack of memory, which is no graph's fault, is told
// from it.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace motley {

class GraphFailure : public std::runtime_error {
 public:
  explicit GraphFailure(Error error)
      : std::runtime_error(describe(error)), error_(std::move(error)) {}

  [[nodiscard]] const Error& error() const { return error_; }

 private:
  Error error_;
};

// Whether what a library threw says that memory ran out, the host's or a device's. LibTorch has no
// type for it that all its devices throw.
[[nodiscard]] inline bool lacks_memory(const std::exception& thrown) {
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr) return true;
  const std::string_view all = thrown.what();
  const std::string_view said = all.substr(0, all.find('\n'));
  return said.find("allocate memory") != said.npos || said.find("out of memory") != said.npos;
}

}  // namespace motley
