#include "comm/transport/network_interface.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
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

// The kind from the interface's folder under /sys/class/net.
std::string kind_of(const std::filesystem::path& folder) {
  std::error_code code;
  const auto has = [&](const char* name) { return std::filesystem::exists(folder / name, code); };
  if (!std::filesystem::exists(folder, code)) return "unknown";
  if (has("bridge")) return "bridge";
  if (has("wireless") || has("phy80211")) return "wireless";
  return has("device") ? "wired" : "virtual";
}

// Reading fails without a carrier, and gives -1 if the speed is unknown.
int mbps_of(const std::filesystem::path& folder) {
  std::ifstream in(folder / "speed");
  int mbps = 0;
  return in >> mbps && mbps > 0 ? mbps : 0;
}

// Any port: connect() on a datagram socket only selects a route.
constexpr std::uint16_t kAnyPort = 9;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
};

// bytes = 0 if the text is not a numeric address.
SocketAddress to_socket_address(const std::string& address) {
  SocketAddress result;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&result.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&result.storage);
  if (inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(kAnyPort);
    result.bytes = sizeof *v4;
  } else if (inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(kAnyPort);
    result.bytes = sizeof *v6;
  }
  return result;
}

Error no_route(const std::string& peer, int error) {
  return {ErrorCode::kPeer, fmt::format("this machine has no route to {}", peer),
          std::strerror(error), "check the addresses in the cluster file and the network"};
}

}  // namespace

Result<std::vector<NetworkInterface>> network_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    return Error{ErrorCode::kPeer, "cannot list the network interfaces", std::strerror(errno), ""};
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, freeifaddrs);
  std::vector<NetworkInterface> interfaces;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    const std::string address = to_text(entry->ifa_addr);
    if (address.empty()) continue;
    const std::filesystem::path folder = std::filesystem::path("/sys/class/net") / entry->ifa_name;
    NetworkInterface& interface = interfaces.emplace_back();
    interface.name = entry->ifa_name;
    interface.address = address;
    interface.is_up = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_RUNNING) != 0;
    interface.kind = (entry->ifa_flags & IFF_LOOPBACK) != 0 ? "loopback" : kind_of(folder);
    interface.mbps = mbps_of(folder);
  }
  return interfaces;
}

Result<std::string> interface_of(const std::string& address) {
  MOTLEY_ASSIGN(const auto interfaces, network_interfaces());
  std::string present;
  for (const NetworkInterface& each : interfaces) {
    const bool is_it = address.empty() ? each.kind == "loopback" : each.address == address;
    if (is_it) return each.name;
    present += fmt::format("{}{} ({})", present.empty() ? "" : ", ", each.address, each.name);
  }
  return Error{ErrorCode::kPeer,
               fmt::format("no network interface has the address '{}'",
                           address.empty() ? "loopback" : address),
               fmt::format("this machine has {}", present),
               "give the machine's own numeric address in the cluster file"};
}

Result<std::string> source_address_to(const std::string& peer) {
  const SocketAddress to = to_socket_address(peer);
  if (to.bytes == 0) return no_route(peer, EINVAL);
  const int fd = ::socket(to.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return no_route(peer, errno);
  sockaddr_storage from{};
  socklen_t from_bytes = sizeof from;
  const bool found = ::connect(fd, reinterpret_cast<const sockaddr*>(&to.storage), to.bytes) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&from), &from_bytes) == 0;
  const int error = errno;
  ::close(fd);
  if (!found) return no_route(peer, error);
  return to_text(reinterpret_cast<const sockaddr*>(&from));
}

}  // namespace motley
