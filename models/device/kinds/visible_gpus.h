// Which cards a machine shows, whether anything drives them or not.
#pragma once

#include <filesystem>

namespace motley {

// Graphics and computing cards of NVIDIA's on the PCI bus, as the system lists its devices in
// `top`; 0 where it tells nothing.
[[nodiscard]] int visible_nvidia_gpus(const std::filesystem::path& top = "/sys/bus/pci/devices");

}  // namespace motley
