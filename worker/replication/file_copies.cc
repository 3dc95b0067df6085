#include "worker/replication/file_copies.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/replication/checkpoint_metadata.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/transfer/file_transfer.h"

namespace motley {
namespace {

// Some files of one save.
struct FileBatch {
  std::int64_t step = 0;
  std::vector<WrittenFile> files;
};

// Processes batches of files, each from one save, in order on its own thread.
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

namespace fs = std::filesystem;

constexpr std::int32_t kStreams = 65'536;

}  // namespace

std::uint64_t unexpected_copy_bytes(const Job& job) {
  const bool gets_any = job.replicator && !job.replicator->copies_from.empty();
  return gets_any ? 2 * kBackgroundRate.part_bytes : 0;  // a part and its control messages
}

struct FileCopies::Impl {
  // The files between this rank and another, in one direction.
  struct Stream {
    Rank peer;
    FrameLink link;
    std::int32_t next = 0;                // used by the thread
    std::unique_ptr<BatchThread> thread;  // declared last, so that it is destroyed first
  };

  Impl(const Job& given,
       const StallTimeout& how_long,
       LauncherChannel& channel,
       ProgressCounter& counter)
      : job(given), stall_timeout(how_long), launcher(channel), work(counter) {}

  void open(std::vector<std::unique_ptr<Stream>>& streams,
            const std::vector<Rank>& peers,
            const FrameLink& link,
            bool sends) {
    for (const Rank peer : peers) {
      auto stream = std::make_unique<Stream>(Stream{peer, link, 0, nullptr});
      Stream* const each = stream.get();
      each->thread = std::make_unique<BatchThread>(
          [this, each, sends](const FileBatch& batch, const std::stop_token& stop) {
            sends ? send_all(*each, batch, stop) : receive_all(*each, batch, stop);
          });
      streams.push_back(std::move(stream));
    }
  }

  // Every file of a batch is attempted even after failures, so that both ends count alike.
  FileOrder next_order(Stream& stream, std::int64_t step, const WrittenFile& file) const {
    const FileOrder order{stream.next, step, file, {}};
    stream.next = (stream.next + 1) % kStreams;
    return order;
  }

  // The sender learns of failures at either end and reports them.
  void send_all(Stream& stream, const FileBatch& batch, const std::stop_token& stop) const {
    std::optional<Error> failure;
    for (const WrittenFile& file : batch.files) {
      if (stop.stop_requested()) return;
      const Result<void> sent = send(stream, next_order(stream, batch.step, file), stop);
      if (!sent.ok() && !failure) failure = sent.error();
    }
    if (stop.stop_requested()) return;
    failure ? fail(batch.step, stream.peer, *failure) : log_copied(batch.step, stream.peer);
  }

  void receive_all(Stream& stream, const FileBatch& batch, const std::stop_token& stop) const {
    for (const WrittenFile& file : batch.files) {
      if (stop.stop_requested()) return;
      (void)receive(stream, next_order(stream, batch.step, file), stop);
    }
  }

  Result<void> send(Stream& stream, const FileOrder& order, const std::stop_token& stop) const {
    const fs::path path = checkpoint_folder(job.run_dir, order.step) / order.file.name;
    return send_file(stream.link, stream.peer, order, path, kBackgroundRate, stall_timeout, stop,
                     &work);
  }

  Result<void> receive(Stream& stream, const FileOrder& order, const std::stop_token& stop) const {
    return receive_into_shards(stream.link, stream.peer, order,
                               {checkpoint_folder(job.run_dir, order.step), job.launch},
                               kBackgroundRate, stall_timeout, stop, &work);
  }

  void log_copied(std::int64_t step, Rank to) const {
    launcher.send({{"event", "copied"}, {"step", step}, {"to", to.value}});
  }

  void fail(std::int64_t step, Rank peer, const Error& error) const {
    Json event = error_to_json(error);
    event["event"] = "copy_failed";
    event["step"] = step;
    event["peer"] = peer.value;
    launcher.send(event);
  }

  const Job& job;
  const StallTimeout stall_timeout;
  LauncherChannel& launcher;
  ProgressCounter& work;
  std::vector<std::unique_ptr<Stream>> going;   // one per peer
  std::vector<std::unique_ptr<Stream>> coming;  // one per peer
};

FileCopies::FileCopies(const Job& job,
                       const FrameLink& link,
                       const StallTimeout& stall_timeout,
                       LauncherChannel& launcher,
                       ProgressCounter& work)
    : impl_(std::make_unique<Impl>(job, stall_timeout, launcher, work)) {
  impl_->open(impl_->going, job.replicator->copies_to, link, /*sends=*/true);
  impl_->open(impl_->coming, job.replicator->copies_from, link, /*sends=*/false);
}

FileCopies::~FileCopies() = default;

void FileCopies::add(const ReplicationOrder& order) {
  const auto files_of = [&](Rank replicator) {
    FileBatch batch{order.step_metadata.step(), {}};
    const auto names = order.files_of.find(replicator.value);
    if (names == order.files_of.end()) return batch;
    for (WrittenFile& file : tensor_files(order.step_metadata.manifest)) {
      if (std::ranges::count(names->second, file.name) > 0) batch.files.push_back(std::move(file));
    }
    return batch;
  };
  for (const auto& stream : impl_->going) stream->thread->add(files_of(impl_->job.rank));
  for (const auto& stream : impl_->coming) stream->thread->add(files_of(stream->peer));
}

void FileCopies::finish() {
  for (const auto& stream : impl_->going) stream->thread->finish();
  for (const auto& stream : impl_->coming) stream->thread->finish();
}

}  // namespace motley
