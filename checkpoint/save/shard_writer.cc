#include "checkpoint/save/shard_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "base/system/files.h"
#include "base/system/system_cores.h"
#include "checkpoint/save/own_pages.h"
#include "checkpoint/save/shard_files.h"

namespace motley {
namespace {

constexpr std::size_t kPieceFloats = std::size_t{1} << 18;  // 1 MiB: the size of one write

ShardOutline outline_of(const ShardContents& contents) {
  ShardOutline outline{outlines_of(contents.parameters), outlines_of(contents.moments)};
  for (const OwnedTensor& residual : contents.residuals) {
    outline.moments.push_back({residual.name, "F32", residual.shape});
  }
  return outline;
}

// A new folder would block the return of a run folder that was moved away.
Result<void> check_run_is_there(const std::filesystem::path& run_dir) {
  MOTLEY_ASSIGN(const bool is_present, path_exists(run_dir));
  if (is_present) return {};
  return Error{ErrorCode::kCorrupt, fmt::format("cannot save into {}", run_dir.string()),
               "the run's folder no longer exists", "restore it"};
}

}  // namespace

std::uint64_t shard_bytes_max(const ShardContents& contents) {
  return outline_of(contents).bytes_max();
}

struct ShardWriter::Impl {
  // The values of one tensor that are still to be written.
  struct Values {
    std::span<const float> unread;
    std::optional<OwnPages> copy;  // the memory of `unread`, once it is not borrowed any more
    bool is_borrowed = true;
  };

  Impl(std::function<std::uint64_t()> spare, ProgressCounter* counter)
      : spare_bytes(std::move(spare)), work(counter), buffer(kPieceFloats) {}

  void take(ShardContents given) {
    contents = std::move(given);
    values.clear();
    for (const auto* views : {&contents.parameters, &contents.moments}) {
      for (const TensorView& view : *views) values.push_back({.unread = view.values});
    }
    for (const OwnedTensor& owned : contents.residuals) {
      values.push_back({.unread = owned.values, .is_borrowed = false});
    }
  }

  [[nodiscard]] std::uint64_t borrowed_bytes() const {
    std::uint64_t bytes = 0;
    for (const Values& each : values) {
      if (each.is_borrowed) bytes += each.unread.size_bytes();
    }
    return bytes;
  }

  // Copies from the last tensor to the first, so that copy_unwritten() waits for the next ones to
  // be written.
  void copy_up_to(std::uint64_t bytes) {
    for (auto it = values.rbegin(); it != values.rend(); ++it) {
      if (!it->is_borrowed || it->unread.empty()) continue;
      if (it->unread.size_bytes() > bytes) return;
      auto pages = OwnPages::of(it->unread.size_bytes());
      if (!pages) return;  // then wait for the disk
      bytes -= it->unread.size_bytes();
      const auto floats =
          std::span(reinterpret_cast<float*>(pages->bytes().data()), it->unread.size());
      std::ranges::copy(it->unread, floats.begin());
      it->unread = floats;
      it->copy = std::move(pages);
      it->is_borrowed = false;
    }
  }

  // The next values of the tensor, in `buffer`; empty after the last.
  Result<std::span<const float>> next_piece(std::size_t tensor) {
    const std::lock_guard lock(mutex);
    if (is_given_up) return Error{ErrorCode::kCorrupt, "the save was cancelled", "", ""};
    Values& from = values[tensor];
    const std::size_t count = std::min(buffer.size(), from.unread.size());
    std::ranges::copy(from.unread.first(count), buffer.begin());
    from.unread = from.unread.subspan(count);
    if (from.unread.empty()) from.copy.reset();
    was_read.notify_all();
    return std::span<const float>(buffer).first(count);
  }

  Result<void> add_values(std::size_t tensor, SafetensorsWriter& writer) {
    for (;;) {
      MOTLEY_ASSIGN(const std::span<const float> piece, next_piece(tensor));
      if (piece.empty()) return {};
      MOTLEY_TRY(writer.append(std::as_bytes(piece)));
    }
  }

  Result<Shard> write_files(const SaveLocation& location, int rank, int rank_count) {
    MOTLEY_TRY(check_run_is_there(location.run_dir));
    return write_shard_files(
        location, rank, rank_count, outline_of(contents),
        [this](std::size_t tensor, SafetensorsWriter& writer) {
          return add_values(tensor, writer);
        },
        work);
  }

  // Runs on the thread, at low priority so that no step takes much longer: the values are safe from
  // changes, so where all cores compute, the writing is spread over the following steps.
  void write(const SaveLocation& location, int rank, int rank_count, const Done& done) {
    yield_cores();
    const Result<Shard> shard = write_files(location, rank, rank_count);
    {
      // After a failure nothing more is read.
      const std::lock_guard lock(mutex);
      values.clear();
      contents = {};
      was_read.notify_all();
      if (is_given_up) return;
    }
    done(shard);
  }

  const std::function<std::uint64_t()> spare_bytes;
  ProgressCounter* const work;
  std::vector<float> buffer;  // used by the thread
  ShardContents contents;     // retained while the thread runs

  std::mutex mutex;
  std::condition_variable was_read;
  std::vector<Values> values;  // in the order of the files; guarded by mutex
  bool is_given_up = false;    // guarded by mutex

  std::jthread thread;  // last member, so that it is joined first
};

ShardWriter::ShardWriter(std::function<std::uint64_t()> spare_bytes, ProgressCounter* work)
    : impl_(std::make_unique<Impl>(std::move(spare_bytes), work)) {}

ShardWriter::~ShardWriter() {
  const std::lock_guard lock(impl_->mutex);
  impl_->is_given_up = true;
}

void ShardWriter::begin(
    const SaveLocation& location, int rank, int rank_count, ShardContents contents, Done done) {
  finish();
  impl_->take(std::move(contents));
  impl_->thread =
      std::jthread([impl = impl_.get(), location, rank, rank_count, notify = std::move(done)] {
        impl->write(location, rank, rank_count, notify);
      });
}

void ShardWriter::copy_unwritten() {
  std::unique_lock lock(impl_->mutex);
  const std::uint64_t bytes = impl_->borrowed_bytes();
  if (bytes == 0) return;
  impl_->copy_up_to(impl_->spare_bytes());
  impl_->was_read.wait(lock, [this] { return impl_->borrowed_bytes() == 0; });
}

void ShardWriter::finish() {
  if (impl_->thread.joinable()) impl_->thread.join();
}

}  // namespace motley
