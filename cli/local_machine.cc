#include "cli/local_machine.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "comm/transport/network_interface.h"
#include "plan/cluster/joined_shell.h"

namespace motley {
namespace {

std::string own_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

bool leads_outside(const NetworkInterface& interface) {
  return interface.is_up && interface.kind != "loopback" && interface.kind != "bridge" &&
         !interface.address.starts_with("fe80:");
}

std::string numeric(const addrinfo& found) {
  std::array<char, NI_MAXHOST> text{};
  const int status = ::getnameinfo(found.ai_addr, found.ai_addrlen, text.data(), text.size(),
                                   nullptr, 0, NI_NUMERICHOST);
  return status == 0 ? text.data() : "";
}

}  // namespace

LocalMachine local_machine() {
  LocalMachine here;
  here.name = own_name();
  const auto interfaces = network_interfaces();
  if (!interfaces.ok()) return here;
  for (const NetworkInterface& each : *interfaces) here.addresses.insert(each.address);
  return here;
}

std::string full_host_name() {
  const std::string name = own_name();
  addrinfo hints{};
  hints.ai_flags = AI_CANONNAME;
  addrinfo* first = nullptr;
  const int status = ::getaddrinfo(name.c_str(), nullptr, &hints, &first);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(first, ::freeaddrinfo);
  return status == 0 && first->ai_canonname != nullptr ? first->ai_canonname : name;
}

Result<std::string> own_address(const std::vector<std::string>& peers) {
  if (!peers.empty()) return source_address_to(peers.front());
  MOTLEY_ASSIGN(const auto interfaces, network_interfaces());
  for (const char* mark : {".", ":"}) {  // IPv4 first
    for (const NetworkInterface& each : interfaces) {
      if (leads_outside(each) && each.address.find(mark) != std::string::npos) return each.address;
    }
  }
  return Error{ErrorCode::kPeer, "this machine has no address that other machines can reach", "",
               "connect it to the network of the other machines"};
}

std::vector<std::string> outside_addresses() {
  std::vector<std::string> addresses;
  const auto interfaces = network_interfaces();
  for (const char* mark : {".", ":"}) {
    if (!interfaces.ok()) break;
    for (const NetworkInterface& each : *interfaces) {
      const bool is_version = each.address.find(mark) != std::string::npos;
      if (is_version && leads_outside(each)) addresses.push_back(each.address);
    }
  }
  return addresses.empty() ? std::vector<std::string>{"127.0.0.1"} : addresses;
}

Result<void> make_addresses_numeric(Cluster& cluster, const LocalMachine& here) {
  std::vector<std::string> peers;
  for (const Machine& machine : cluster.machines) {
    if (!here.name.empty() && machine.address == here.name) continue;
    if (!machine.address.empty()) peers.push_back(machine.address);
  }
  for (Machine& machine : cluster.machines) {
    if (here.name.empty() || machine.address != here.name) continue;
    MOTLEY_ASSIGN(machine.address, own_address(peers));
  }
  return {};
}

Result<std::string> address_of_host(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int status = ::getaddrinfo(host.c_str(), nullptr, &hints, &first);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(first, ::freeaddrinfo);
  const auto error = [&](const std::string& cause) {
    return Error{ErrorCode::kConfig, fmt::format("'{}' has no known address", excerpt(host)), cause,
                 "give the machine's numeric address"};
  };
  if (status != 0) return error(::gai_strerror(status));
  std::string other;  // IPv6
  for (const addrinfo* each = first; each != nullptr; each = each->ai_next) {
    const std::string text = numeric(*each);
    if (text.empty() || text.starts_with("127.") || text == "::1" || text.starts_with("fe80:")) {
      continue;
    }
    if (each->ai_family == AF_INET) return text;
    other = text;
  }
  if (!other.empty()) return other;
  return error(
      "it resolves to the loopback address of this machine, which no other machine reaches");
}

std::string starting_folders(const Cluster& cluster) {
  const bool all_here = std::ranges::all_of(
      cluster.machines, [](const Machine& machine) { return machine.shell.empty(); });
  if (all_here) return "";
  std::vector<std::string> places;
  for (const Machine& machine : cluster.machines) {
    const bool has_joined = joined_shell(machine.shell).has_value();
    places.push_back(machine.name + " " +
                     (has_joined ? "joined by ticket" : starting_folder(machine)));
  }
  return fmt::format("{}", fmt::join(places, ", "));
}

}  // namespace motley
