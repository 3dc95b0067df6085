// SharedMemory: memory pages shared by processes of one user on one machine. One process creates
// them and sends others an offer; each of these opens the memory, or fails, as between containers.
// It has no name in a file system, so a killed process leaves nothing behind. Its size is fixed: no
// process can truncate the pages that others use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace motley {

// A MemoryOffer identifies the memory for another process; all zeros mean that there is none.
struct MemoryOffer {
  std::uint32_t process = 0;
  std::uint32_t file = 0;   // a descriptor of that process
  std::uint64_t nonce = 0;  // random; also stored in the memory

  friend bool operator==(const MemoryOffer&, const MemoryOffer&) = default;
};

class SharedMemory {
 public:
  // Creates zeroed memory. The system allocates a page when it is first touched, so unused ones
  // cost nothing. kInternal if the system refuses.
  [[nodiscard]] static Result<SharedMemory> make(std::size_t bytes);

  // Opens another process's memory. The offer is untrusted: only memory of this kind is opened, and
  // it is rejected if it has another size, could shrink, or does not contain the nonce. kPeer names
  // the reason.
  [[nodiscard]] static Result<SharedMemory> open(const MemoryOffer& offer, std::size_t bytes);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  [[nodiscard]] const MemoryOffer& offer() const { return offer_; }

  // From now on no process can open it any more; existing mappings stay valid.
  void withdraw();

  // Aligned to a cache line.
  [[nodiscard]] std::span<std::byte> bytes() const;

 private:
  SharedMemory(int file, std::span<std::byte> mapped) : file_(file), mapped_(mapped) {}

  int file_ = -1;                // the creator's descriptor, until withdraw()
  std::span<std::byte> mapped_;  // the nonce's cache line, then bytes()
  MemoryOffer offer_;
};

}  // namespace motley
