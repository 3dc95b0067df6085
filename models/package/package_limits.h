// The versions and limits of packages (docs/formats/package.md). The limits are far above the sizes
// of real models, and low enough to bound the reading of a package.
#pragma once

#include <cstddef>
#include <cstdint>

namespace motley {

inline constexpr std::int64_t kPackageVersionMax = 3;       // of package.json
inline constexpr std::int64_t kExactValuesVersion = 2;      // the first with exact boundary values
inline constexpr std::int64_t kNarrowConstantsVersion = 2;  // the first with narrow constants
inline constexpr std::int64_t kNamedInputsVersion = 3;      // the first with inputs by name
inline constexpr std::uint64_t kPackageBytesMax = 64ULL << 20;
inline constexpr std::size_t kPackageLayersMax = 10'000;
inline constexpr std::size_t kPackageNodesMax = 1'000'000;  // of all graphs
inline constexpr std::size_t kGraphNodesMax = 10'000;
inline constexpr int kGraphValuesMax = 20'000;
inline constexpr std::size_t kNodeArgumentsMax = 64;
inline constexpr std::size_t kTensorDimsMax = 8;
inline constexpr std::int64_t kTensorCountMax = 1LL << 40;  // elements
inline constexpr std::size_t kPackageNameMax = 1000;        // characters
inline constexpr std::size_t kBoundaryTensorsMax = 1000;
inline constexpr std::size_t kPackageInputsMax = 64;
inline constexpr std::size_t kInputNameMax = 100;  // characters
inline constexpr std::int64_t kPackageTensorBytesMax = 1LL
                                                       << 50;  // of the weights; a layer's memory
inline constexpr std::int64_t kPackageUnitsMax = 1LL << 40;    // of a sample; values of integers
inline constexpr std::size_t kLayerTensorsMax = 10'000;  // parameters, statistics or constants
inline constexpr std::size_t kPackageQuantisedMax = 100'000;
inline constexpr std::size_t kModelFilesMax = 64;
inline constexpr std::int64_t kModelFileBytesMax = 64LL << 20;

}  // namespace motley
