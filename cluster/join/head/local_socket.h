// The head's own socket, through which programs of this machine and this user have commands run on
// joined machines: whole messages, the first with the standard streams of the command.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/system/owned_fd.h"

namespace motley {

// A folder of this user alone with a listening socket; both are removed by the destructor.
class LocalSocket {
 public:
  [[nodiscard]] static Result<LocalSocket> open();

  LocalSocket(LocalSocket&& other) noexcept
      : folder_(std::exchange(other.folder_, {})), fd_(std::move(other.fd_)) {}

  LocalSocket& operator=(LocalSocket&&) = delete;
  ~LocalSocket();

  [[nodiscard]] int fd() const { return fd_.get(); }

  [[nodiscard]] std::filesystem::path path() const { return folder_ / "head"; }

  // A connection of this user; none if there is none now.
  [[nodiscard]] std::optional<OwnedFd> accept() const;

 private:
  LocalSocket() = default;

  std::filesystem::path folder_;
  OwnedFd fd_;
};

// A connection to a head's socket. kPeer if there is none.
[[nodiscard]] Result<OwnedFd> connect_local(const std::filesystem::path& socket);

struct LocalMessage {
  std::string text;
  std::vector<OwnedFd> fds;
};

// Sends one message, waiting if necessary; false if the other end is gone. `fds` are copied.
[[nodiscard]] bool send_local(const OwnedFd& connection,
                              std::string_view text,
                              const std::vector<int>& fds = {});
// The next message; waits if the connection is blocking. Nothing if the other end is gone, or if
// none is there and the connection is not blocking.
[[nodiscard]] std::optional<LocalMessage> receive_local(const OwnedFd& connection);

}  // namespace motley
