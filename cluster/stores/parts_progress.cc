#include "cluster/stores/parts_progress.h"

#include <algorithm>

namespace motley {

PartsProgress::~PartsProgress() {
  if (line_ != nullptr) line_->clear();
}

void PartsProgress::follow(const WorkCounter& work) {
  if (line_ == nullptr) return;
  line_->follow([what = what_, &work] { return work_text(what, work.bytes()); });
}

void PartsProgress::take(int worker, const WorkBytes& bytes) {
  if (bytes.total == 0) return;
  by_worker_[worker] = {std::min(bytes.done, bytes.total), bytes.total};
  sum_ = {};
  for (const auto& [number, each] : by_worker_) {
    sum_.done += each.done;
    sum_.total += each.total;
  }
  if (line_ != nullptr) line_->say(work_text(what_, sum_));
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
  if (line_ != nullptr) line_->say(work_text(what_, bytes_));
  return {};
}

}  // namespace motley
