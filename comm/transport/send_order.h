// SendOrder: the queue of messages to one peer. Messages of one tag stay in order; those whose tag
// has kBulkTag are sent after all others. Not thread safe.
#pragma once

#include <cstddef>
#include <deque>
#include <iterator>
#include <utility>

#include "comm/transport/transport.h"

namespace motley {

template <class Send>
class SendOrder {
 public:
  void push(Tag tag, Send send) {
    ((tag & kBulkTag) != 0 ? bulk_ : urgent_).push_back(std::move(send));
  }

  // Inserts before all others.
  void push_front(Send send) { urgent_.push_front(std::move(send)); }

  [[nodiscard]] bool empty() const { return urgent_.empty() && bulk_.empty(); }

  [[nodiscard]] bool has_urgent() const { return !urgent_.empty(); }

  // The element that pop() would return. REQUIRES: !empty().
  [[nodiscard]] const Send& front() const { return (urgent_.empty() ? bulk_ : urgent_).front(); }

  // REQUIRES: !empty().
  [[nodiscard]] Send pop() {
    std::deque<Send>& from = urgent_.empty() ? bulk_ : urgent_;
    Send next = std::move(from.front());
    from.pop_front();
    return next;
  }

  // Removes and returns all elements.
  [[nodiscard]] std::deque<Send> drain() {
    std::deque<Send> all = std::exchange(urgent_, {});
    all.insert(all.end(), std::move_iterator(bulk_.begin()), std::move_iterator(bulk_.end()));
    bulk_.clear();
    return all;
  }

 private:
  std::deque<Send> urgent_;
  std::deque<Send> bulk_;
};

}  // namespace motley
