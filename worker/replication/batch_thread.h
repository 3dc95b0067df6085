// BatchThread: processes batches of files, each from one save, in order on its own thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "checkpoint/safetensors.h"

namespace motley {

// Some files of one save.
struct FileBatch {
  std::int64_t step = 0;
  std::vector<WrittenFile> files;
};

class BatchThread {
 public:
  using Do = std::function<void(const FileBatch& batch, const std::stop_token& stop)>;

  explicit BatchThread(Do work)
      : do_(std::move(work)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

  void add(FileBatch batch) {
    const std::lock_guard lock(mutex_);
    batches_.push_back(std::move(batch));
    changed_.notify_all();
  }

  // Waits until all added batches are done.
  void finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return batches_.empty(); });
  }

 private:
  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !batches_.empty(); })) {
      const FileBatch batch = batches_.front();
      lock.unlock();
      do_(batch, stop);
      lock.lock();
      batches_.pop_front();  // only now, because finish() waits for it
      changed_.notify_all();
    }
  }

  const Do do_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<FileBatch> batches_;  // guarded by mutex_; the first is being processed
  std::jthread thread_;            // declared last, so that it is destroyed first
};

}  // namespace motley
