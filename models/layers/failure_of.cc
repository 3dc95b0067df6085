#include "models/layers/failure_of.h"

#include <fmt/format.h>

#include "models/device/device_stall.h"
#include "models/device/kinds/library_exception.h"
#include "models/graph/graph_failure.h"

namespace motley {

Error failure_of(const std::exception& thrown, const std::string& during) {
  if (const auto* graph = dynamic_cast<const GraphFailure*>(&thrown)) return graph->error();
  if (const auto* stood = dynamic_cast<const DeviceStall*>(&thrown)) {
    return stood->error(during);
  }
  const std::string said = first_line_of(thrown);
  if (!is_out_of_memory(thrown)) {
    return {ErrorCode::kInternal, "the stage failed during " + during, said,
            "see its log; if its machine has free memory, this is a bug: please report it"};
  }
  return {ErrorCode::kInfeasible, "too little memory for " + during, said,
          "make the model or train.micro_batch smaller, or spread it over more machines"};
}

}  // namespace motley
