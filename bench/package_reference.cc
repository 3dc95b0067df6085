// Checks layers of packages against their references. Prints for each layer the seconds, the
// largest deviation relative to the limit, and the bytes of the reference.
//
//   build/release/bench/package_reference [--products bf16|fp16] PACKAGE...
//
// docs/measurements.md has results; docs/numerics.md defines the comparison.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>

#include <c10/core/ScalarType.h>

#include "base/clock.h"
#include "models/graph/reference_check.h"

namespace motley {
namespace {

void compare(const std::string& folder, at::ScalarType products) {
  const auto package = read_package(folder);
  if (!package.ok()) return fmt::print("{}", describe(package.error()));
  const auto references = read_references(**package);
  if (!references.ok()) return fmt::print("{}", describe(references.error()));
  if (!*references) return fmt::print("{}: no reference\n", folder);
  double seconds = 0;
  double worst = 0;
  int wrong = 0;
  double loosest = 0;
  std::string where;
  for (const LayerReference& reference : (*references)->layers) {
    const double start_s = now_s();
    const auto results = compare_with_reference(*package, reference, c10::kCPU, products);
    if (!results.ok()) {
      ++wrong;
      fmt::print("{}", describe(results.error()));
      continue;
    }
    seconds += now_s() - start_s;
    for (const ComparedResult& result : *results) {
      loosest = std::max(loosest, result.allowed);
      if (!(result.deviation <= result.allowed)) ++wrong;
      const double share = result.deviation / result.allowed;
      if (share <= worst) continue;
      worst = share;
      where = fmt::format("{}:{} of layer {}, {:.2g} of {:.2g}", role_name(result.role.role),
                          result.role.index, reference.layer, result.deviation, result.allowed);
    }
    const auto checked = check_against_reference(*package, reference, c10::kCPU, products);
    if (!checked.ok()) fmt::print("{}", describe(checked.error()));
  }
  fmt::print(
      "{}: {} layers of {}, {:.3f} s, {} bytes; {} wrong; nearest {} ({:.2g}); loosest {:.2g}\n",
      folder, (*references)->layers.size(), (*package)->layers.size(), seconds,
      std::filesystem::file_size((*package)->folder / kReferenceFileName), wrong, where, worst,
      loosest);
}

}  // namespace
}  // namespace motley

int main(int argc, char** argv) {
  at::ScalarType products = at::kFloat;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--products" && i + 1 < argc) {
      products = std::string(argv[++i]) == "bf16" ? at::kBFloat16 : at::kHalf;
      continue;
    }
    motley::compare(argument, products);
  }
  return 0;
}
