// BestCandidates: the best candidates that a search offers, best first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "partitioner/cost/search_space.h"

namespace motley {

class BestCandidates {
 public:
  explicit BestCandidates(std::size_t count_max) : count_max_(count_max) {}

  // Candidates above this are not stored.
  [[nodiscard]] double limit_s() const {
    return best_.size() < count_max_ ? std::numeric_limits<double>::infinity()
                                     : best_.back().estimate_s;
  }

  void offer(Candidate candidate) {
    const auto place = std::lower_bound(best_.begin(), best_.end(), candidate, comes_before);
    if (place != best_.end() && !comes_before(candidate, *place)) return;  // a duplicate
    best_.insert(place, std::move(candidate));
    if (best_.size() > count_max_) best_.pop_back();
  }

  [[nodiscard]] const std::vector<Candidate>& list() const { return best_; }

 private:
  static bool comes_before(const Candidate& a, const Candidate& b) {
    return a.estimate_s != b.estimate_s ? a.estimate_s < b.estimate_s : is_simpler(a, b);
  }

  std::size_t count_max_;
  std::vector<Candidate> best_;
};

}  // namespace motley
