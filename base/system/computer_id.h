// Identifies this computer independently of its names in cluster files.
#pragma once

#include <string>

namespace motley {

// The same for all processes on one computer since its last boot, in any container; "" = unknown.
[[nodiscard]] std::string computer_id();

// The same across boots of one installed system; "" = unknown. Derived from /etc/machine-id, which
// copies of a system may share.
[[nodiscard]] std::string installation_id();

}  // namespace motley
