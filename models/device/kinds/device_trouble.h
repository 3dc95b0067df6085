// What is wrong with a device, for people.
#pragma once

#include <string>

namespace motley {

struct DeviceTrouble {
  std::string cause;
  std::string remedy;
  // Whether the machine shows such a device all the same: then something is missing that somebody
  // will want.
  bool is_shown = false;

  friend bool operator==(const DeviceTrouble&, const DeviceTrouble&) = default;
};

}  // namespace motley
