#include "compression/formats/zstd_codec.h"

#include <fmt/format.h>

#include <mutex>
#include <utility>
#include <vector>

#include <zstd.h>

#include "base/check.h"

namespace motley {
namespace {

// Buffers of one encode or decode. Reused between calls: a context takes about a megabyte.
struct Workspace {
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  explicit Workspace(int level) : packer(level) {}

  ZstdPacker packer;
  std::unique_ptr<ZSTD_DCtx, Free> decompressor{ZSTD_createDCtx()};
  std::vector<std::byte> inner_B;
};

// Holds at most as many workspaces as threads have used the codec at once.
class WorkspacePool {
 public:
  [[nodiscard]] std::unique_ptr<Workspace> take(int level) {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<Workspace>(level);
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
          "start both ends from one plan; if it happens again, check the network and the memory"};
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
    return ZstdPacker::bytes_max(inner_->bytes_max(count));
  }

  bool has_fixed_size() const override { return false; }

  std::size_t encode(std::span<const float> values_N, std::span<std::byte> wire_B) const override {
    MOTLEY_CHECK(wire_B.size() >= bytes_max(values_N.size()), "buffer: {} of {} bytes",
                 wire_B.size(), bytes_max(values_N.size()));
    auto work = pool_.take(level_);
    work->inner_B.resize(inner_->bytes_max(values_N.size()));
    const std::size_t inner_bytes = inner_->encode(values_N, work->inner_B);
    const std::size_t bytes =
        work->packer.pack(std::span(work->inner_B).first(inner_bytes), wire_B);
    pool_.give_back(std::move(work));
    return bytes;
  }

  Result<void> decode(std::span<const std::byte> wire_B, std::span<float> values_N) const override {
    return unpack(wire_B, values_N.size(), [&](std::span<const std::byte> inner_B) {
      return inner_->decode(inner_B, values_N);
    });
  }

  Result<void> decode_add(std::span<const std::byte> wire_B,
                          std::span<float> sum_N) const override {
    return unpack(wire_B, sum_N.size(), [&](std::span<const std::byte> inner_B) {
      return inner_->decode_add(inner_B, sum_N);
    });
  }

 private:
  // Calls use(content) with the content of a frame of `count` values.
  template <class Use>
  Result<void> unpack(std::span<const std::byte> wire_B, std::size_t count, const Use& use) const {
    const std::size_t inner_bytes_max = inner_->bytes_max(count);
    // The result for an invalid frame or an undeclared size is larger than any valid size.
    const auto declared_bytes = ZSTD_getFrameContentSize(wire_B.data(), wire_B.size());
    if (declared_bytes > inner_bytes_max) {
      return damaged(name(), fmt::format("it does not declare the expected {} bytes of content, "
                                         "or fewer",
                                         inner_bytes_max));
    }
    if (ZSTD_findFrameCompressedSize(wire_B.data(), wire_B.size()) != wire_B.size()) {
      return damaged(name(), "it is not one complete zstd frame");
    }
    auto work = pool_.take(level_);
    work->inner_B.resize(declared_bytes);
    // In one piece: the output is the window, so the frame's declared window size needs no memory.
    const std::size_t bytes = ZSTD_decompressDCtx(work->decompressor.get(), work->inner_B.data(),
                                                  declared_bytes, wire_B.data(), wire_B.size());
    Result<void> outcome;
    if (ZSTD_isError(bytes)) {
      outcome = damaged(name(), ZSTD_getErrorName(bytes));
    } else if (bytes != declared_bytes) {
      outcome = damaged(name(), "its content is shorter than it declares");
    } else {
      outcome = use(work->inner_B);
    }
    pool_.give_back(std::move(work));
    return outcome;
  }

  std::unique_ptr<const Codec> inner_;
  int level_;
  mutable WorkspacePool pool_;
};

}  // namespace

void ZstdPacker::Free::operator()(ZSTD_CCtx_s* context) const {
  ZSTD_freeCCtx(context);
}

ZstdPacker::ZstdPacker(int level) : level_(level), context_(ZSTD_createCCtx()) {
  MOTLEY_CHECK(kZstdLevelMin <= level && level <= kZstdLevelMax, "zstd level {}", level);
}

std::size_t ZstdPacker::bytes_max(std::size_t content_bytes) {
  return ZSTD_compressBound(content_bytes);
}

// With a buffer of the bound's size this fails only for lack of memory.
std::size_t ZstdPacker::pack(std::span<const std::byte> content_B, std::span<std::byte> frame_B) {
  const std::size_t bytes = ZSTD_compressCCtx(context_.get(), frame_B.data(), frame_B.size(),
                                              content_B.data(), content_B.size(), level_);
  MOTLEY_CHECK(!ZSTD_isError(bytes), "zstd: {}", ZSTD_getErrorName(bytes));
  return bytes;
}

std::unique_ptr<const Codec> make_zstd_codec(std::unique_ptr<const Codec> inner, int level) {
  MOTLEY_CHECK(kZstdLevelMin <= level && level <= kZstdLevelMax, "zstd level {}", level);
  return std::make_unique<ZstdCodec>(std::move(inner), level);
}

}  // namespace motley
