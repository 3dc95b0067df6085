// LargeBlocks: memory for large tensors, which would fragment a heap: the logits of a large
// vocabulary and the gradient of its matrix are allocated and freed in turn, and each leaves a hole
// that the next one does not fit into.
//
// Each block is mapped separately. A freed block is reused for the next tensor of its size. Before
// a new block is mapped, unused blocks are unmapped, as far as all blocks together would otherwise
// exceed the largest size that was ever in use. A process therefore holds the peak of its tensors
// and no more, and repeated patterns, such as steps, map nothing. Thread-safe.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

namespace motley {

class LargeBlocks {
 public:
  // Smaller blocks belong on the heap: for them mapping costs more than fragmentation.
  static constexpr std::size_t kLeastBytes = std::size_t{16} << 20;

  struct Block {
    void* memory = nullptr;  // whole pages; nullptr if the system has no memory
    std::size_t bytes = 0;
  };

  LargeBlocks() = default;
  LargeBlocks(const LargeBlocks&) = delete;
  LargeBlocks& operator=(const LargeBlocks&) = delete;
  ~LargeBlocks();  // unmaps unused blocks

  // At least `bytes` bytes, with unspecified contents.
  [[nodiscard]] Block take(std::size_t bytes);
  // REQUIRES: `block` was returned by take(), and not given back since.
  void give_back(const Block& block);
  // Unmaps all unused blocks.
  void release();

  [[nodiscard]] std::size_t mapped_bytes() const;

 private:
  // The smallest unused block of at least `bytes` bytes that is not much larger; an empty one if
  // there is none.
  Block take_unused(std::size_t bytes);
  void unmap_oldest();

  mutable std::mutex mutex_;
  std::vector<Block> unused_;  // ordered by the time of give_back()
  std::size_t used_bytes_ = 0;
  std::size_t unused_bytes_ = 0;
  std::size_t most_used_bytes_ = 0;
};

}  // namespace motley
