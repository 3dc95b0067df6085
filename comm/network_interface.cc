#include "comm/network_interface.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace motley {
namespace {

// "" for an address that is neither IPv4 nor IPv6.
std::string to_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address != nullptr && address->sa_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  } else if (address != nullptr && address->sa_family == AF_INET6) {
    bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  }
  if (bytes == nullptr) return "";
  const char* done = inet_ntop(address->sa_family, bytes, text.data(), text.size());
  return done != nullptr ? done : "";
}

}  // namespace

Result<std::string> interface_of(const std::string& address) {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    return Error{ErrorCode::kPeer, "cannot list the network interfaces", std::strerror(errno), ""};
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, freeifaddrs);
  std::string present;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    const std::string text = to_text(entry->ifa_addr);
    if (text.empty()) continue;
    const bool loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    if (address.empty() ? loopback : text == address) return std::string(entry->ifa_name);
    present += fmt::format("{}{} ({})", present.empty() ? "" : ", ", text, entry->ifa_name);
  }
  return Error{ErrorCode::kPeer,
               fmt::format("no network interface has the address '{}'",
                           address.empty() ? "loopback" : address),
               fmt::format("this machine has {}", present),
               "give the machine's own numeric address in the cluster file"};
}

}  // namespace motley
