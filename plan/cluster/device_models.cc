#include "plan/cluster/device_models.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/toml.h"

namespace motley {
namespace {

// The table of docs/devices.md; a test compares the two.
constexpr auto kDeviceModels = std::to_array<DeviceModel>({
    {"gtx-1080-ti", 5900, 11},   {"rtx-2080-ti", 6500, 11},  {"titan-rtx", 8400, 24},
    {"titan-v", 6800, 12},       {"v100", 9000, 16},         {"t4", 4000, 15},
    {"rtx-3060", 4200, 12},      {"rtx-3070", 6300, 8},      {"rtx-3080", 10'000, 10},
    {"rtx-3090", 18'200, 24},    {"rtx-4060", 5300, 8},      {"rtx-4070", 10'200, 12},
    {"rtx-4080", 17'000, 16},    {"rtx-4090", 29'100, 24},   {"a100-40gb", 11'000, 40},
    {"a100-80gb", 11'000, 80},   {"h100-pcie", 25'500, 80},  {"h100-sxm", 33'500, 80},
    {"apple-m1", 1300, 0},       {"apple-m1-pro", 2650, 0},  {"apple-m1-max", 5300, 0},
    {"apple-m2", 1800, 0},       {"apple-m2-pro", 3400, 0},  {"apple-m2-max", 6800, 0},
    {"apple-m4", 2000, 0},       {"ryzen-5-3600", 480, 0},   {"ryzen-5-5600x", 500, 0},
    {"ryzen-7-5800x", 680, 0},   {"ryzen-9-5950x", 1200, 0}, {"ryzen-9-7950x", 1600, 0},
    {"core-i5-8250u", 140, 0},   {"core-i7-8700", 430, 0},   {"core-i9-9900k", 650, 0},
    {"xeon-e5-2680-v4", 750, 0}, {"epyc-7302", 1100, 0},     {"epyc-7763", 3500, 0},
});

// "RTX 3090" becomes "rtx-3090".
std::string as_names_are_spelt(std::string name) {
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == ' ' || c == '_') c = '-';
  }
  return name;
}

}  // namespace

std::span<const DeviceModel> device_models() {
  return kDeviceModels;
}

const DeviceModel* find_device_model(std::string_view name) {
  const auto found = std::ranges::find(kDeviceModels, name, &DeviceModel::name);
  return found == kDeviceModels.end() ? nullptr : &*found;
}

std::string closest_device_model(const std::string& name) {
  const std::string spelt = as_names_are_spelt(name);
  std::vector<std::string> names;
  std::string within;  // the longest name contained in the text
  for (const DeviceModel& model : kDeviceModels) {
    names.emplace_back(model.name);
    const bool is_within = ("-" + spelt + "-").find("-" + names.back() + "-") != std::string::npos;
    if (is_within && model.name.size() > within.size()) within = model.name;
  }
  if (!within.empty()) return within;
  // Prefers the first variant of "h100", or Apple's "m2", over a name with a changed letter, which
  // is another device.
  const auto longer = std::ranges::find_if(names, [&](const std::string& other) {
    return ("-" + other + "-").find("-" + spelt + "-") != std::string::npos;
  });
  return longer != names.end() ? *longer : closest_word(spelt, names);
}

}  // namespace motley
