#include "base/process/line_splitter.h"

#include <utility>

namespace motley {

std::optional<std::string> LineSplitter::next() {
  const std::size_t end = pending_.find('\n', scanned_);
  if (end == std::string::npos) {
    pending_.erase(0, std::exchange(start_, 0));
    scanned_ = pending_.size();
    return std::nullopt;
  }
  std::string line = pending_.substr(start_, end - start_);
  if (!line.empty() && line.back() == '\r') line.pop_back();
  start_ = scanned_ = end + 1;
  return line;
}

std::string LineSplitter::take_rest() {
  std::string rest = pending_.substr(start_);
  pending_.clear();
  start_ = scanned_ = 0;
  return rest;
}

}  // namespace motley
