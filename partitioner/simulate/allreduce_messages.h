// AllreduceMessages: the messages of one all-reduce (R, T) in a step's program: the order in which
// a rank sends and receives them, and their numbers.
//
// Messages that depend on no other rank are early: they are sent as soon as their values are final.
// A chunk's values become final gradually in its last backward, so early messages are sent in
// pieces, one after each part of it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "partitioner/cost/step_prices.h"

namespace motley {

class AllreduceMessages {
 public:
  // prices: phase after phase, for `ranks` ranks; borrowed. first_number: of the first message; the
  // others follow. pieces: of each early message, from 1.
  AllreduceMessages(const std::vector<ReducePrice>& prices,
                    std::size_t ranks,
                    std::size_t first_number,
                    std::size_t pieces);

  // The number after its last message.
  [[nodiscard]] std::size_t end_number() const { return end_number_; }

  // The number of pieces of its early messages.
  [[nodiscard]] std::size_t pieces() const { return pieces_; }

  struct Message {
    const ReducePrice* price = nullptr;
    std::size_t number = 0;  // of its first piece; the others follow
    std::size_t pieces = 1;
  };

  // The early messages that the rank sends.
  [[nodiscard]] std::span<const Message> early(std::size_t rank) const {
    return std::span(of_rank_[rank]).first(early_[rank]);
  }

  // All others, phase after phase: sent ones, then received ones.
  [[nodiscard]] std::span<const Message> later(std::size_t rank) const {
    return std::span(of_rank_[rank]).subspan(early_[rank]);
  }

 private:
  std::size_t pieces_;
  std::size_t end_number_;
  std::vector<std::vector<Message>> of_rank_;  // [Rank]
  std::vector<std::size_t> early_;             // [Rank] their number at the front
};

}  // namespace motley
