// take_first() takes the elements waiting under a tag in FIFO order.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "comm/transport/transport.h"

namespace motley {

// Removes and returns the tag's first element; nullopt if there is none.
template <class T>
[[nodiscard]] std::optional<T> take_first(std::map<Tag, std::deque<T>>& waiting, Tag tag) {
  const auto entry = waiting.find(tag);
  if (entry == waiting.end()) return std::nullopt;
  std::optional<T> first(std::move(entry->second.front()));
  entry->second.pop_front();
  if (entry->second.empty()) waiting.erase(entry);
  return first;
}

}  // namespace motley
