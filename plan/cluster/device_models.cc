#include "plan/cluster/device_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/toml.h"

namespace motley {
namespace {

constexpr HalfTypes kNone = HalfTypes::kNone;
constexpr HalfTypes kBf16 = HalfTypes::kBf16;
constexpr HalfTypes kFp16 = HalfTypes::kFp16;
constexpr HalfTypes kBoth = HalfTypes::kBf16AndFp16;

// The table of docs/devices.md; a test compares the two. Name, fp32, 16 bits, memory.
constexpr auto kDeviceModels = std::to_array<DeviceModel>({
    {"titan-x-maxwell", 3400, 0, kNone, 12},
    {"titan-x-pascal", 5700, 0, kNone, 12},
    {"gtx-1060", 2300, 0, kNone, 0},
    {"gtx-1070", 3400, 0, kNone, 8},
    {"gtx-1080", 4600, 0, kNone, 8},
    {"gtx-1080-ti", 5900, 0, kNone, 11},
    {"p100", 5000, 0, kNone, 16},
    {"rtx-2060", 3100, 8900, kFp16, 0},
    {"rtx-2070", 3600, 10'300, kFp16, 8},
    {"rtx-2080", 4800, 13'800, kFp16, 8},
    {"rtx-2080-ti", 6500, 18'700, kFp16, 11},
    {"titan-rtx", 8400, 26'200, kFp16, 24},
    {"titan-v", 6800, 30'400, kFp16, 12},
    {"v100", 9000, 40'300, kFp16, 16},
    {"t4", 2500, 13'400, kFp16, 15},
    {"rtx-3050", 3000, 7800, kBoth, 0},
    {"rtx-3060", 4200, 10'900, kBoth, 12},
    {"rtx-3060-ti", 5300, 13'900, kBoth, 8},
    {"rtx-3070", 6300, 17'000, kBoth, 8},
    {"rtx-3080", 10'000, 26'200, kBoth, 10},
    {"rtx-3080-ti", 11'300, 29'300, kBoth, 12},
    {"rtx-3090", 18'200, 36'500, kBoth, 24},
    {"rtx-4060", 5300, 11'500, kBoth, 8},
    {"rtx-4060-ti", 7700, 16'800, kBoth, 0},
    {"rtx-4070", 10'200, 22'100, kBoth, 12},
    {"rtx-4070-super", 12'400, 27'000, kBoth, 12},
    {"rtx-4070-ti", 14'000, 30'500, kBoth, 12},
    {"rtx-4070-ti-super", 15'400, 33'500, kBoth, 16},
    {"rtx-4080", 17'000, 37'000, kBoth, 16},
    {"rtx-4080-super", 18'300, 39'700, kBoth, 16},
    {"rtx-4090", 29'100, 63'100, kBoth, 24},
    {"rtx-5060", 7700, 15'600, kBoth, 8},
    {"rtx-5060-ti", 10'100, 18'700, kBoth, 0},
    {"rtx-5070", 14'000, 26'200, kBoth, 12},
    {"rtx-5070-ti", 19'200, 38'600, kBoth, 16},
    {"rtx-5080", 19'500, 40'000, kBoth, 16},
    {"rtx-5090", 39'000, 92'000, kBoth, 32},
    {"rtx-a6000", 13'900, 42'000, kBoth, 48},
    {"rtx-6000-ada", 27'200, 54'200, kBoth, 48},
    {"a10", 8100, 28'700, kBoth, 22},
    {"l4", 7900, 26'700, kBoth, 22},
    {"l40s", 27'200, 54'200, kBoth, 45},
    {"a100-40gb", 11'000, 88'400, kBoth, 40},
    {"a100-80gb", 11'000, 94'000, kBoth, 80},
    {"h100-pcie", 25'500, 150'000, kBoth, 80},
    {"h100-sxm", 41'800, 226'000, kBoth, 80},
    {"h200", 41'800, 246'000, kBoth, 139},
    {"b200", 53'000, 372'000, kBoth, 179},
    {"dgx-spark", 9800, 22'000, kBoth, 119},
    {"jetson-orin-nano", 760, 4200, kBoth, 0},
    {"jetson-agx-orin", 1900, 10'700, kBoth, 0},
    {"mi210", 14'100, 25'000, kBoth, 64},
    {"mi250", 14'100, 25'000, kBoth, 64},
    {"mi300x", 51'000, 181'000, kBoth, 192},
    {"rx-6800-xt", 10'100, 0, kNone, 16},
    {"rx-7900-xt", 13'300, 32'400, kBoth, 20},
    {"rx-7900-xtx", 14'900, 35'500, kBoth, 24},
    {"strix-halo", 1800, 12'900, kBoth, 0},
    {"apple-m1", 1300, 1300, kFp16, 0},
    {"apple-m1-pro", 2650, 2650, kFp16, 0},
    {"apple-m1-max", 5300, 5300, kFp16, 0},
    {"apple-m2", 1800, 1800, kFp16, 0},
    {"apple-m2-pro", 3400, 3400, kFp16, 0},
    {"apple-m2-max", 6800, 6800, kFp16, 0},
    {"apple-m3", 1700, 1700, kFp16, 0},
    {"apple-m3-pro", 3000, 3000, kFp16, 0},
    {"apple-m3-max", 6600, 6600, kFp16, 0},
    {"apple-m4", 2000, 2000, kFp16, 0},
    {"apple-m4-pro", 3900, 3900, kFp16, 0},
    {"apple-m4-max", 7800, 7800, kFp16, 0},
    {"apple-m5", 2000, 2000, kFp16, 0},
    {"raspberry-pi-5", 42, 0, kNone, 0},
    {"ryzen-5-3600", 480, 0, kNone, 0},
    {"ryzen-5-5600x", 500, 0, kNone, 0},
    {"ryzen-5-7600", 510, 510, kBf16, 0},
    {"ryzen-5-9600x", 520, 520, kBf16, 0},
    {"ryzen-7-5800x", 680, 0, kNone, 0},
    {"ryzen-7-7700x", 810, 810, kBf16, 0},
    {"ryzen-7-7800x3d", 750, 750, kBf16, 0},
    {"ryzen-7-9700x", 680, 680, kBf16, 0},
    {"ryzen-9-5950x", 1200, 0, kNone, 0},
    {"ryzen-9-7900x", 1260, 1260, kBf16, 0},
    {"ryzen-9-7950x", 1600, 1600, kBf16, 0},
    {"ryzen-9-9900x", 1180, 1180, kBf16, 0},
    {"ryzen-9-9950x", 1540, 1540, kBf16, 0},
    {"core-i5-8250u", 140, 0, kNone, 0},
    {"core-i7-8700", 430, 0, kNone, 0},
    {"core-i9-9900k", 650, 0, kNone, 0},
    {"xeon-e5-2680-v4", 750, 0, kNone, 0},
    {"xeon-8480", 2500, 5200, kBf16, 0},
    {"epyc-7302", 1100, 0, kNone, 0},
    {"epyc-7763", 3500, 0, kNone, 0},
    {"epyc-9354", 2330, 2330, kBf16, 0},
    {"epyc-9654", 5160, 5160, kBf16, 0},
});

// Other names of a device, as its system or its vendor has them.
struct OtherName {
  std::string_view name;
  std::string_view model;
};

constexpr auto kOtherNames = std::to_array<OtherName>({
    {"titan-x", "titan-x-maxwell"},
    {"gb10", "dgx-spark"},
    {"radeon-8060s", "strix-halo"},
    {"ryzen-ai-max", "strix-halo"},
    {"raspberry-pi", "raspberry-pi-5"},
});

// "RTX 3090" becomes "rtx-3090", "TITAN X (Pascal)" "titan-x-pascal".
std::string as_names_are_spelt(std::string name) {
  std::erase_if(name, [](char c) { return c == '(' || c == ')'; });
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == ' ' || c == '_' || c == '+') c = '-';
  }
  return name;
}

bool contains_words(std::string_view text, std::string_view words) {
  return fmt::format("-{}-", text).find(fmt::format("-{}-", words)) != std::string::npos;
}

}  // namespace

std::span<const DeviceModel> device_models() {
  return kDeviceModels;
}

bool computes_in(const DeviceModel& model, std::string_view precision) {
  switch (model.half_types) {
    case HalfTypes::kNone:
      return precision == "fp32";
    case HalfTypes::kBf16:
      return precision != "fp16";
    case HalfTypes::kFp16:
      return precision != "bf16";
    case HalfTypes::kBf16AndFp16:
      return true;
  }
  return false;
}

bool rounds_intermediates(const DeviceModel& model, std::string_view precision) {
  return precision != "fp32" && computes_in(model, precision) &&
         model.half_types != HalfTypes::kBf16;
}

const DeviceModel* find_device_model(std::string_view name) {
  const auto found = std::ranges::find(kDeviceModels, name, &DeviceModel::name);
  return found == kDeviceModels.end() ? nullptr : &*found;
}

std::string closest_device_model(const std::string& name) {
  const std::string spelt = as_names_are_spelt(name);
  std::vector<std::string> names;
  OtherName within;  // the longest name contained in the text
  const auto try_within = [&](const OtherName& other) {
    if (contains_words(spelt, other.name) && other.name.size() > within.name.size()) within = other;
  };
  for (const DeviceModel& model : kDeviceModels) {
    names.emplace_back(model.name);
    try_within({model.name, model.name});
  }
  std::ranges::for_each(kOtherNames, try_within);
  if (!within.name.empty()) return std::string(within.model);
  // Prefers the first variant of "h100", or Apple's "m2", over a name with a changed letter, which
  // is another device.
  const auto longer = std::ranges::find_if(
      names, [&](const std::string& other) { return contains_words(other, spelt); });
  return longer != names.end() ? *longer : closest_word(spelt, names);
}

}  // namespace motley
