// transport_speed KIND RANK ADDRESS FOLDER [SECONDS]: one end of a link, over the transport KIND
// ("tls" for tcp with a secret, "local" for the same with shared memory on one machine permitted,
// "socket" for plain blocking sockets, "gloo-alone" for Gloo's own). Rank 0 measures, rank 1
// serves; they exchange addresses through files in FOLDER. Prints a line of JSON.
// bench/transport_lan runs both.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/secret.h"
#include "base/system/files.h"
#include "bench/socket_ping.h"
#include "bench/urgent_wait.h"
#include "comm/make_transport.h"
#include "profiling/link_bench.h"
#ifdef MOTLEY_WITH_GLOO
#include "bench/gloo_ping.h"
#endif

namespace motley {
namespace {

constexpr double kStallTimeout_s = 30;
constexpr std::size_t kPingBytes = 64;
constexpr std::size_t kStreamBytes = std::size_t{4} << 20;
constexpr std::size_t kStreamWindow = 8;  // messages in flight
constexpr Tag kStream = 11;
constexpr Tag kWait = 12;
constexpr std::array kWays = {ValueWay::kAlone, ValueWay::kBesideBulk, ValueWay::kAsBulk};

Result<std::string> read_when_there(const std::filesystem::path& path) {
  const Deadline deadline = Deadline::after_s(kStallTimeout_s);
  while (!std::filesystem::exists(path)) {
    if (deadline.passed()) return Error{ErrorCode::kPeer, "the other end did not come", "", ""};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return read_file(path);
}

Buffer zeros(std::size_t bytes) {
  Buffer buffer(bytes);
  buffer.set_payload_bytes(bytes);
  std::memset(buffer.message().data(), 0, buffer.message().size());
  return buffer;
}

Deadline stall_timeout() {
  return Deadline::after_s(kStallTimeout_s);
}

// Large messages back to back, in one direction; an empty one is the last, and is answered.
Result<double> stream_bytes_per_s(Transport& transport, Rank peer, double seconds) {
  std::vector<Buffer> free;
  for (std::size_t i = 0; i < kStreamWindow; ++i) free.push_back(zeros(kStreamBytes));
  std::deque<Pending> under_way;
  double bytes = 0;
  const double start_s = now_s();
  while (now_s() - start_s < seconds) {
    if (free.empty()) {
      MOTLEY_ASSIGN(Buffer left,
                    under_way.front().wait(stall_timeout(), "a large message to leave"));
      under_way.pop_front();
      free.push_back(std::move(left));
    }
    under_way.push_back(transport.send(peer, kStream, std::move(free.back())));
    free.pop_back();
    bytes += kStreamBytes;
  }
  Pending answer = transport.recv(peer, kStream, Buffer(0));
  under_way.push_back(transport.send(peer, kStream, zeros(0)));
  MOTLEY_TRY(answer.wait(stall_timeout(), "the end of the stream"));
  return bytes / (now_s() - start_s);
}

Result<void> serve_stream(Transport& transport, Rank peer) {
  std::deque<Pending> posted;
  for (std::size_t i = 0; i < kStreamWindow; ++i) {
    posted.push_back(transport.recv(peer, kStream, Buffer(kStreamBytes)));
  }
  while (true) {
    MOTLEY_ASSIGN(Buffer came, posted.front().wait(stall_timeout(), "a large message"));
    posted.pop_front();
    if (came.payload_bytes() == 0) break;
    posted.push_back(transport.recv(peer, kStream, std::move(came)));
  }
  Pending answer = transport.send(peer, kStream, zeros(0));
  MOTLEY_TRY(answer.wait(stall_timeout(), "the answer to leave"));
  return {};
}

// The share of a core that this process uses while it waits for a message from a peer that is busy
// for `seconds`. `sends_first`: this process is the busy peer.
Result<double> waiting_share(Transport& transport, Rank peer, double seconds, bool sends_first) {
  if (sends_first) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    Pending sent = transport.send(peer, kWait, zeros(0));
    MOTLEY_TRY(sent.wait(stall_timeout(), "a message to leave"));
    return 0;
  }
  Pending message = transport.recv(peer, kWait, Buffer(0));
  const double start_s = now_s();
  const double start_cpu_s = process_cpu_s();
  MOTLEY_TRY(message.wait(stall_timeout(), "a message after a while"));
  return (process_cpu_s() - start_cpu_s) / (now_s() - start_s);
}

Result<void> run_ends(Transport& transport, Rank self, double seconds) {
  const Rank peer{1 - self.value};
  if (self.value == 1) {
    MOTLEY_ASSIGN(const double cpu_s_per_byte, serve_link(transport, peer));
    MOTLEY_TRY(serve_stream(transport, peer));
    MOTLEY_ASSIGN(const double share, waiting_share(transport, peer, seconds, false));
    MOTLEY_TRY(waiting_share(transport, peer, seconds, true));
    for (const ValueWay way : kWays) MOTLEY_TRY(serve_urgent_wait(transport, peer, way));
    fmt::print("{{\"receive_ns_per_byte\": {:.4f}, \"waiting_share\": {:.5f}}}\n",
               cpu_s_per_byte * 1e9, share);
    return {};
  }
  MOTLEY_ASSIGN(const LinkSample link, measure_link(transport, peer, seconds));
  MOTLEY_ASSIGN(const double stream, stream_bytes_per_s(transport, peer, seconds));
  MOTLEY_TRY(waiting_share(transport, peer, seconds, true));
  MOTLEY_ASSIGN(const double share, waiting_share(transport, peer, seconds, false));
  std::vector<UrgentWait> waits;
  for (const ValueWay way : kWays) {
    MOTLEY_ASSIGN(const UrgentWait wait, measure_urgent_wait(transport, peer, seconds, way));
    waits.push_back(wait);
  }
  fmt::print(
      "{{\"bytes_per_s\": {:.0f}, \"stream_bytes_per_s\": {:.0f}, \"latency_us\": {:.2f}, "
      "\"send_ns_per_byte\": {:.4f}, \"waiting_share\": {:.5f}, \"value_alone_ms\": {:.3f}, "
      "\"value_ms\": {:.3f}, \"value_longest_ms\": {:.3f}, \"value_as_bulk_ms\": {:.3f}, "
      "\"value_as_bulk_longest_ms\": {:.3f}, \"bulk_bytes_per_s\": {:.0f}}}\n",
      link.bandwidth_bytes_per_s, stream, link.latency_s * 1e6, link.send_cpu_s_per_byte * 1e9,
      share, waits[0].median_s * 1e3, waits[1].median_s * 1e3, waits[1].longest_s * 1e3,
      waits[2].median_s * 1e3, waits[2].longest_s * 1e3, waits[1].bulk_bytes_per_s);
  return {};
}

Result<void> run_transport(const TransportOptions& options,
                           const std::filesystem::path& folder,
                           double seconds) {
  const Rank peer{1 - options.rank.value};
  MOTLEY_ASSIGN(const auto transport, make_transport(options));
  const auto path_of = [&](Rank rank) { return folder / fmt::format("rank{}", rank.value); };
  MOTLEY_TRY(write_file_atomic(path_of(options.rank), transport->address()));
  MOTLEY_ASSIGN(const std::string other, read_when_there(path_of(peer)));
  std::vector<std::string> addresses(2, other);
  addresses[options.rank.index()] = transport->address();
  MOTLEY_TRY(transport->connect(addresses, stall_timeout()));
  return run_ends(*transport, options.rank, seconds);
}

// FOLDER/port contains the port, FOLDER/host the address.
Result<void> run_sockets(const TransportOptions& options,
                         const std::filesystem::path& folder,
                         double seconds) {
  if (options.rank.value == 1) {
    MOTLEY_TRY(write_file_atomic(folder / "host", options.bind_address));
    return serve_pings(options.bind_address, folder / "port", kPingBytes);
  }
  MOTLEY_ASSIGN(const std::string port, read_when_there(folder / "port"));
  MOTLEY_ASSIGN(const std::string host, read_when_there(folder / "host"));
  MOTLEY_ASSIGN(const double ping_s,
                measure_ping_s(host, static_cast<std::uint16_t>(std::atoi(port.c_str())),
                               kPingBytes, seconds));
  fmt::print("{{\"latency_us\": {:.2f}}}\n", ping_s * 1e6);
  return {};
}

Result<void> run_gloo_alone(const TransportOptions& options, const std::filesystem::path& folder) {
#ifdef MOTLEY_WITH_GLOO
  constexpr int kPings = 2000;
  const double ping_s =
      measure_gloo_ping_s(options.rank.value, options.bind_address, folder, kPingBytes, kPings);
  fmt::print("{{\"latency_us\": {:.2f}}}\n", ping_s * 1e6);
  return {};
#else
  return Error{ErrorCode::kConfig, "this build has no Gloo", options.kind, folder.string()};
#endif
}

Result<void> run(const std::string& kind,
                 const TransportOptions& options,
                 const std::filesystem::path& folder,
                 double seconds) {
  if (kind == "socket") return run_sockets(options, folder, seconds);
  if (kind == "gloo-alone") return run_gloo_alone(options, folder);
  return run_transport(options, folder, seconds);
}

}  // namespace
}  // namespace motley

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "usage: transport_speed KIND RANK ADDRESS FOLDER [SECONDS]\n");
    return 2;
  }
  const std::string kind = argv[1];
  motley::TransportOptions options;
  const bool is_secret = kind == "tls" || kind == "local";
  options.kind = is_secret ? "tcp" : kind;
  if (is_secret) options.secret = std::string(motley::kSecretBytes, 's');
  options.local_shortcut = kind != "tls";
  options.rank = motley::Rank{std::atoi(argv[2])};
  options.rank_count = 2;
  options.bind_address = argv[3];
  const double seconds = argc > 5 ? std::atof(argv[5]) : 4;
  const auto done = motley::run(kind, options, argv[4], seconds);
  if (done.ok()) return 0;
  fmt::print(stderr, "{}", motley::describe(done.error()));
  return 4;
}
