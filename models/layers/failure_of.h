// The error for an exception that a library threw while layers computed.
#pragma once

#include <exception>
#include <string>

#include "base/result.h"

namespace motley {

// `during` names the work: "forward of micro-batch 3". kInfeasible if memory ran out, the layer's
// error if the graph of a package cannot run, else kInternal, also if a device did not finish in
// time.
[[nodiscard]] Error failure_of(const std::exception& thrown, const std::string& during);

}  // namespace motley
