// GraphFailure: the error of a graph that cannot run. Layers return tensors
// (models/layers/layer.h), so the error travels as an exception up to the worker's main, which
// reports it with its exit status.
#pragma once

#include <stdexcept>
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

}  // namespace motley
