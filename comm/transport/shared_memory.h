// SharedMemory: pages that processes of one user on one machine all see. One makes them and tells
// others by an offer; each of these opens what was offered, or finds that it cannot, as between
// containers. Nothing of it has a name in a file system, so nothing is left behind by whoever is
// killed. Its size can never change: none of them can take pages from under the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace motley {

// A MemoryOffer tells the other process where the memory is; all zeros mean that there is none.
struct MemoryOffer {
  std::uint32_t process = 0;
  std::uint32_t file = 0;   // of that process
  std::uint64_t nonce = 0;  // random; stands in the memory too

  friend bool operator==(const MemoryOffer&, const MemoryOffer&) = default;
};

class SharedMemory {
 public:
  // Zeros. The system gives a page when it is first touched, so that what is not used costs
  // nothing. kInternal where it refuses.
  [[nodiscard]] static Result<SharedMemory> make(std::size_t bytes);

  // Opens what another process offers. The offer is not trusted: nothing is opened that is not such
  // memory, and nothing is used that has another size, could shrink, or does not hold the nonce.
  // kPeer says why not.
  [[nodiscard]] static Result<SharedMemory> open(const MemoryOffer& offer, std::size_t bytes);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  [[nodiscard]] const MemoryOffer& offer() const { return offer_; }

  // From here on nobody can open it any more; who has it keeps it.
  void withdraw();

  // The memory begins on a cache line's boundary.
  [[nodiscard]] std::span<std::byte> bytes() const;

 private:
  SharedMemory(int file, std::span<std::byte> mapped) : file_(file), mapped_(mapped) {}

  int file_ = -1;                // of the one who made it, until withdraw()
  std::span<std::byte> mapped_;  // the nonce's cache line, then bytes()
  MemoryOffer offer_;
};

}  // namespace motley
