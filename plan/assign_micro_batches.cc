#include "plan/assign_micro_batches.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace motley {

// Smooth weighted round robin: what a replica is owed grows by its share with each micro-batch and
// falls by the whole when it takes one.
std::vector<std::size_t> assign_micro_batches(std::span<const int> shares) {
  const std::int64_t micro_batches = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  std::vector<std::int64_t> owed(shares.size(), 0);
  std::vector<std::size_t> owners;
  owners.reserve(static_cast<std::size_t>(micro_batches));
  for (std::int64_t m = 0; m < micro_batches; ++m) {
    for (std::size_t i = 0; i < owed.size(); ++i) owed[i] += shares[i];
    const auto next = std::ranges::max_element(owed);
    *next -= micro_batches;
    owners.push_back(static_cast<std::size_t>(next - owed.begin()));
  }
  return owners;
}

std::vector<int> most_in_a_row(std::span<const std::size_t> owners,
                               std::size_t replicas,
                               int window) {
  const auto width = static_cast<std::size_t>(window);
  std::vector<int> now(replicas, 0);
  std::vector<int> most(replicas, 0);
  for (std::size_t m = 0; m < owners.size(); ++m) {
    if (m >= width) --now[owners[m - width]];
    const std::size_t replica = owners[m];
    most[replica] = std::max(most[replica], ++now[replica]);
  }
  return most;
}

}  // namespace motley
