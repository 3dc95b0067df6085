// What is said of an exception that a library threw while layers computed.
#pragma once

#include <exception>
#include <string>

#include "base/result.h"

namespace motley {

// `during` is what was under way: "forward of micro-batch 3". kInfeasible where memory ran out, the
// error of its layer where the graph of a package cannot run, else kInternal: also where a device
// did not finish it in time.
[[nodiscard]] Error failure_of(const std::exception& thrown, const std::string& during);

}  // namespace motley
