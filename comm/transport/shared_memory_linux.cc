// A memfd: memory with a file descriptor but no name. The other process opens the descriptor's path
// in /proc, which the system permits only to the same user.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/secret.h"
#include "comm/transport/shared_memory.h"

namespace motley {
namespace {

constexpr std::size_t kHeadBytes = 64;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr const char* kName = "motley";
constexpr std::string_view kNameInProc = "/memfd:motley";

Error failed(ErrorCode code, const char* what) {
  return {code, "cannot share memory with another process of this machine",
          fmt::format("{}: {}", what, std::strerror(errno)), ""};
}

Error unusable(const std::string& cause) {
  return {ErrorCode::kPeer, "cannot use the shared memory of another process", cause, ""};
}

std::span<std::byte> mapped(int file, std::size_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) return {};
  return {static_cast<std::byte*>(at), bytes};
}

// The target of a /proc path is checked before it is opened: opening a device can have side
// effects.
bool is_shared_memory(const std::string& path) {
  std::array<char, kNameInProc.size()> begin{};
  const ssize_t count = ::readlink(path.c_str(), begin.data(), begin.size());
  return count == static_cast<ssize_t>(begin.size()) &&
         std::string_view(begin.data(), begin.size()) == kNameInProc;
}

bool has_form(int file, std::size_t bytes) {
  struct stat found {};

  return ::fstat(file, &found) == 0 && found.st_size == static_cast<off_t>(bytes) &&
         (::fcntl(file, F_GET_SEALS) & kSeals) == kSeals;
}

}  // namespace

Result<SharedMemory> SharedMemory::make(std::size_t bytes) {
  bytes += kHeadBytes;
  MOTLEY_ASSIGN(const std::string random, make_secret());
  const int file = ::memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return failed(ErrorCode::kInternal, "memfd_create");
  SharedMemory memory(file, {});
  if (::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    return failed(ErrorCode::kInternal, "ftruncate");
  }
  if (::fcntl(file, F_ADD_SEALS, kSeals) != 0) return failed(ErrorCode::kInternal, "F_ADD_SEALS");
  memory.mapped_ = mapped(file, bytes);
  if (memory.mapped_.empty()) return failed(ErrorCode::kInternal, "mmap");
  memory.offer_.process = static_cast<std::uint32_t>(::getpid());
  memory.offer_.file = static_cast<std::uint32_t>(file);
  std::memcpy(&memory.offer_.nonce, random.data(), sizeof memory.offer_.nonce);
  std::memcpy(memory.mapped_.data(), &memory.offer_.nonce, sizeof memory.offer_.nonce);
  return memory;
}

Result<SharedMemory> SharedMemory::open(const MemoryOffer& offer, std::size_t bytes) {
  bytes += kHeadBytes;
  const std::string path = fmt::format("/proc/{}/fd/{}", offer.process, offer.file);
  if (!is_shared_memory(path)) return unusable("it is not accessible");
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return failed(ErrorCode::kPeer, "open");
  SharedMemory memory(file, {});
  if (!has_form(file, bytes)) return unusable("its size is not the agreed one, or not fixed");
  memory.mapped_ = mapped(file, bytes);
  if (memory.mapped_.empty()) return failed(ErrorCode::kPeer, "mmap");
  memory.withdraw();
  memory.offer_ = offer;
  std::uint64_t nonce = 0;
  std::memcpy(&nonce, memory.mapped_.data(), sizeof nonce);
  if (nonce != offer.nonce) return unusable("it is not the one that was offered");
  return memory;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      mapped_(std::exchange(other.mapped_, {})),
      offer_(other.offer_) {}

SharedMemory::~SharedMemory() {
  withdraw();
  if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
}

void SharedMemory::withdraw() {
  if (file_ >= 0) ::close(std::exchange(file_, -1));
}

std::span<std::byte> SharedMemory::bytes() const {
  return mapped_.subspan(kHeadBytes);
}

}  // namespace motley
