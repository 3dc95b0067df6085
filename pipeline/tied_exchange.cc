#include "pipeline/tied_exchange.h"

#include <algorithm>

namespace motley {
namespace {

// The ranks of one end that lack `other`, the end of the ranks `givers`.
void pair_up(const std::vector<Rank>& takers,
             const std::vector<Rank>& givers,
             ChunkId other,
             Rank self,
             TiedExchange& exchange) {
  for (std::size_t i = 0; i < takers.size(); ++i) {
    if (std::ranges::binary_search(givers, takers[i])) continue;
    const Rank giver = givers[i % givers.size()];
    if (takers[i] == self) exchange.from = giver;
    if (giver == self) exchange.gifts.push_back({other, takers[i]});
  }
}

}  // namespace

TiedExchange tied_exchange(const Schedule& schedule, Rank self) {
  const ChunkId first{0};
  const ChunkId last{schedule.chunk_count() - 1};
  TiedExchange exchange;
  pair_up(schedule.holders(first), schedule.holders(last), last, self, exchange);
  pair_up(schedule.holders(last), schedule.holders(first), first, self, exchange);
  return exchange;
}

}  // namespace motley
