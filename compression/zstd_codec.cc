#include "compression/zstd_codec.h"

#include <fmt/format.h>

#include <mutex>
#include <utility>
#include <vector>

#include <zstd.h>

#include "base/check.h"

namespace motley {
namespace {

// What one encode or decode works in. Kept between calls: a context costs about a megabyte.
struct Workspace {
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }

    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  std::unique_ptr<ZSTD_CCtx, Free> compressor{ZSTD_createCCtx()};
  std::unique_ptr<ZSTD_DCtx, Free> decompressor{ZSTD_createDCtx()};
  std::vector<std::byte> inner_B;
};

// Never more workspaces than threads that used the codec at once.
class WorkspacePool {
 public:
  [[nodiscard]] std::unique_ptr<Workspace> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<Workspace>();
    auto workspace = std::move(idle_.back());
    idle_.pop_back();
    return workspace;
  }

  void give_back(std::unique_ptr<Workspace> workspace) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(workspace));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_;  // guarded by mutex_
};

Error damaged(const std::string& codec, const std::string& cause) {
  return {ErrorCode::kCorrupt, fmt::format("unreadable {} message", codec), cause,
          "start both ends from one plan; if it comes back, check the network and the memory"};
}

class ZstdCodec : public Codec {
 public:
  ZstdCodec(std::unique_ptr<const Codec> inner, int level)
      : inner_(std::move(inner)), level_(level) {}

  std::string name() const override {
    const std::string inner = inner_->name();
    return inner == "none" ? fmt::format("zstd({})", level_)
                           : fmt::format("{}|zstd({})", inner, level_);
  }

  std::size_t bytes_max(std::size_t count) const override {
    return ZSTD_compressBound(inner_->bytes_max(count));
  }

  std::size_t encode(std::span<const float> values_N, std::span<std::byte> wire_B) const override {
    MOTLEY_CHECK(wire_B.size() >= bytes_max(values_N.size()), "{} bytes of room for {}",
                 wire_B.size(), bytes_max(values_N.size()));
    auto work = pool_.take();
    work->inner_B.resize(inner_->bytes_max(values_N.size()));
    const std::size_t inner_bytes = inner_->encode(values_N, work->inner_B);
    // Into a buffer of the bound's size this fails only for want of memory.
    const std::size_t bytes =
        ZSTD_compressCCtx(work->compressor.get(), wire_B.data(), wire_B.size(),
                          work->inner_B.data(), inner_bytes, level_);
    MOTLEY_CHECK(!ZSTD_isError(bytes), "zstd: {}", ZSTD_getErrorName(bytes));
    pool_.give_back(std::move(work));
    return bytes;
  }

  Result<void> decode(std::span<const std::byte> wire_B, std::span<float> values_N) const override {
    const std::size_t expected_bytes = inner_->bytes_max(values_N.size());
    const auto declared_bytes = ZSTD_getFrameContentSize(wire_B.data(), wire_B.size());
    if (declared_bytes != expected_bytes) {
      return damaged(name(), fmt::format("it does not declare the expected {} bytes of content",
                                         expected_bytes));
    }
    if (ZSTD_findFrameCompressedSize(wire_B.data(), wire_B.size()) != wire_B.size()) {
      return damaged(name(), "it is not one whole zstd frame");
    }
    auto work = pool_.take();
    work->inner_B.resize(expected_bytes);
    // In one piece: the output is the window, so what the frame says of its window costs nothing.
    const std::size_t bytes = ZSTD_decompressDCtx(work->decompressor.get(), work->inner_B.data(),
                                                  expected_bytes, wire_B.data(), wire_B.size());
    Result<void> outcome;
    if (ZSTD_isError(bytes)) {
      outcome = damaged(name(), ZSTD_getErrorName(bytes));
    } else if (bytes != expected_bytes) {
      outcome = damaged(name(), "its content is shorter than it declares");
    } else {
      outcome = inner_->decode(work->inner_B, values_N);
    }
    pool_.give_back(std::move(work));
    return outcome;
  }

 private:
  std::unique_ptr<const Codec> inner_;
  int level_;
  mutable WorkspacePool pool_;
};

}  // namespace

std::unique_ptr<const Codec> make_zstd_codec(std::unique_ptr<const Codec> inner, int level) {
  MOTLEY_CHECK(kZstdLevelMin <= level && level <= kZstdLevelMax, "zstd level {}", level);
  return std::make_unique<ZstdCodec>(std::move(inner), level);
}

}  // namespace motley
