#include "partitioner/simulate/allreduce_messages.h"

#include <algorithm>

namespace motley {

AllreduceMessages::AllreduceMessages(const std::vector<ReducePrice>& prices,
                                     std::size_t ranks,
                                     std::size_t first_number,
                                     std::size_t pieces)
    : pieces_(pieces), end_number_(first_number), of_rank_(ranks), early_(ranks, 0) {
  std::vector<bool> has_got(ranks, false);
  for (auto begin = prices.begin(); begin != prices.end();) {
    const auto end = std::find_if(begin, prices.end(), [&](const ReducePrice& it) {
      return it.message.phase != begin->message.phase;
    });
    std::vector<Message> messages;
    for (auto it = begin; it != end; ++it) {
      const std::size_t from = it->message.from.index();
      const bool uses_legacy_rates = !has_got[from];
      messages.push_back({&*it, end_number_, uses_legacy_rates ? pieces_ : 1});
      end_number_ += messages.back().pieces;
      of_rank_[from].push_back(messages.back());
      if (uses_legacy_rates) ++early_[from];
    }
    for (const Message& message : messages) {
      const std::size_t to = message.price->message.to.index();
      of_rank_[to].push_back(message);
      has_got[to] = true;
    }
    begin = end;
  }
}

}  // namespace motley
