// The graphics cards of a machine, with or without a driver.
#pragma once

#include <filesystem>

namespace motley {

// The number of NVIDIA graphics and compute cards on the PCI bus, as the system lists its devices
// in `top`; 0 if it lists none.
[[nodiscard]] int visible_nvidia_gpus(const std::filesystem::path& top = "/sys/bus/pci/devices");

}  // namespace motley
