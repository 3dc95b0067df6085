// SumMessages: the messages of one sum over ranks (R, T) in a step's program: in which order a rank
// sends and receives them, and their numbers.
//
// What a rank sends before it needs anything of the others is early: it goes as soon as the values
// are final. Those of a chunk become so bit by bit in its last backward, so that early messages go
// in pieces, one after each part of it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "partitioner/cost/step_prices.h"

namespace motley {

class SumMessages {
 public:
  // prices: phase after phase, of so many ranks; lent. first_number: of the first message, those of
  // the others follow. pieces: from 1, of each early message.
  SumMessages(const std::vector<ReducePrice>& prices,
              std::size_t ranks,
              std::size_t first_number,
              std::size_t pieces);

  // Behind its own.
  [[nodiscard]] std::size_t end_number() const { return end_number_; }

  // Of how many pieces its early messages are.
  [[nodiscard]] std::size_t pieces() const { return pieces_; }

  struct Message {
    const ReducePrice* price = nullptr;
    std::size_t number = 0;  // of its first piece; those of the others follow
    std::size_t pieces = 1;
  };

  // The early ones that the rank sends.
  [[nodiscard]] std::span<const Message> early(std::size_t rank) const {
    return std::span(of_rank_[rank]).first(early_[rank]);
  }

  // All others, phase after phase: what it sends, then what it gets.
  [[nodiscard]] std::span<const Message> later(std::size_t rank) const {
    return std::span(of_rank_[rank]).subspan(early_[rank]);
  }

 private:
  std::size_t pieces_;
  std::size_t end_number_;
  std::vector<std::vector<Message>> of_rank_;  // [Rank]
  std::vector<std::size_t> early_;             // [Rank] how many at the front
};

}  // namespace motley
