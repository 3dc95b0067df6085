// Which computer this is, whatever names it has in a cluster file.
#pragma once

#include <string>

namespace motley {

// The same for all processes of one computer since it was started, in whatever container; "" =
// unknown.
[[nodiscard]] std::string computer_id();

}  // namespace motley
