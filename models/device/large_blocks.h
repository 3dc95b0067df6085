// LargeBlocks: memory for large tensors, which a heap would be torn into holes by: of the logits of
// a large vocabulary and the gradient of its matrix, which come and go in turn, each takes a place
// that the next one does not fit into.
//
// Each block is mapped on its own. One that is given back serves the next tensor of its size; those
// that do not are unmapped before another is mapped, as far as all blocks together would else be
// more than were ever in use at once. So a process holds what its tensors need at their peak and no
// more, and what repeats itself, as steps do, maps nothing. Safe to use from several threads.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

namespace motley {

class LargeBlocks {
 public:
  // What is smaller belongs into the heap: below it mapping costs more than holes do.
  static constexpr std::size_t kLeastBytes = std::size_t{16} << 20;

  struct Block {
    void* memory = nullptr;  // of whole pages; nullptr where the system has none
    std::size_t bytes = 0;
  };

  LargeBlocks() = default;
  LargeBlocks(const LargeBlocks&) = delete;
  LargeBlocks& operator=(const LargeBlocks&) = delete;
  ~LargeBlocks();  // of what was given back

  // At least so many bytes, of any content.
  [[nodiscard]] Block take(std::size_t bytes);
  // REQUIRES: take() gave it, once.
  void give_back(const Block& block);
  // Unmaps all that is not in use.
  void release();

  [[nodiscard]] std::size_t mapped_bytes() const;

 private:
  // The smallest unused block for so many bytes that is not much larger; an empty one if there is
  // none.
  Block take_unused(std::size_t bytes);
  void unmap_oldest();

  mutable std::mutex mutex_;
  std::vector<Block> unused_;  // the one that was given back first comes first
  std::size_t used_bytes_ = 0;
  std::size_t unused_bytes_ = 0;
  std::size_t most_used_bytes_ = 0;
};

}  // namespace motley
