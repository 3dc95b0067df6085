#include "plan/assign_micro_batches.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace motley {

// Smooth weighted round robin: a replica's deficit grows by its share with each micro-batch, and
// falls by the sum of all shares when it is assigned one.
std::vector<std::size_t> assign_micro_batches(std::span<const int> shares) {
  const std::int64_t micro_batches = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  std::vector<std::int64_t> deficits(shares.size(), 0);
  std::vector<std::size_t> owners;
  owners.reserve(static_cast<std::size_t>(micro_batches));
  for (std::int64_t m = 0; m < micro_batches; ++m) {
    for (std::size_t i = 0; i < deficits.size(); ++i) deficits[i] += shares[i];
    const auto next = std::ranges::max_element(deficits);
    *next -= micro_batches;
    owners.push_back(static_cast<std::size_t>(next - deficits.begin()));
  }
  return owners;
}

std::vector<int> max_in_window(std::span<const std::size_t> owners,
                               std::size_t replicas,
                               int window) {
  const auto width = static_cast<std::size_t>(window);
  std::vector<int> in_window(replicas, 0);
  std::vector<int> largest(replicas, 0);
  for (std::size_t m = 0; m < owners.size(); ++m) {
    if (m >= width) --in_window[owners[m - width]];
    const std::size_t replica = owners[m];
    largest[replica] = std::max(largest[replica], ++in_window[replica]);
  }
  return largest;
}

}  // namespace motley
