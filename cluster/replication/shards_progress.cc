#include "cluster/replication/shards_progress.h"

#include <algorithm>

namespace motley {

ShardsProgress::~ShardsProgress() {
  if (line_ != nullptr) line_->clear();
}

void ShardsProgress::follow(const ProgressCounter& work) {
  if (line_ == nullptr) return;
  line_->follow([what = what_, &work] { return progress_text(what, work.bytes()); });
}

void ShardsProgress::take(int worker, const ProgressBytes& bytes) {
  if (bytes.total == 0) return;
  by_worker_[worker] = {std::min(bytes.done, bytes.total), bytes.total};
  sum_ = {};
  for (const auto& [number, each] : by_worker_) {
    sum_.done += each.done;
    sum_.total += each.total;
  }
  if (line_ != nullptr) line_->say(progress_text(what_, sum_));
}

FilesProgress::~FilesProgress() {
  if (line_ != nullptr) line_->clear();
}

void FilesProgress::begin(const char* what, std::uint64_t bytes_total) {
  what_ = what;
  bytes_ = {0, bytes_total};
}

Result<void> FilesProgress::advance(std::uint64_t bytes) {
  bytes_.done += bytes;
  if (line_ != nullptr) line_->say(progress_text(what_, bytes_));
  return {};
}

}  // namespace motley
