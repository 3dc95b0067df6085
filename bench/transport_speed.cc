// transport_speed KIND RANK ADDRESS FOLDER [SECONDS]: one end of a link, by the transport KIND
// ("tls" for tcp with a secret). Rank 0 measures, rank 1 serves; they find each other through files
// in FOLDER. bench/transport_lan runs both.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "base/files.h"
#include "base/secret.h"
#include "training/link_bench.h"

namespace motley {
namespace {

constexpr double kPatience_s = 30;

Result<std::string> read_when_there(const std::filesystem::path& path) {
  const Deadline deadline = Deadline::after_s(kPatience_s);
  while (!std::filesystem::exists(path)) {
    if (deadline.passed()) return Error{ErrorCode::kPeer, "the other end did not come", "", ""};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return read_file(path);
}

Result<void> run(const TransportOptions& options,
                 const std::filesystem::path& folder,
                 double seconds) {
  const Rank peer{1 - options.rank.value};
  MOTLEY_ASSIGN(const auto transport, make_transport(options));
  const auto path_of = [&](Rank rank) { return folder / fmt::format("rank{}", rank.value); };
  MOTLEY_TRY(write_file_atomic(path_of(options.rank), transport->address()));
  MOTLEY_ASSIGN(const std::string other, read_when_there(path_of(peer)));
  std::vector<std::string> addresses(2, other);
  addresses[options.rank.index()] = transport->address();
  MOTLEY_TRY(transport->connect(addresses, Deadline::after_s(kPatience_s)));
  if (options.rank.value == 1) {
    MOTLEY_ASSIGN(const double cpu_s_per_byte, serve_link(*transport, peer));
    fmt::print("receives at {:.3f} ns a byte\n", cpu_s_per_byte * 1e9);
    return {};
  }
  MOTLEY_ASSIGN(const LinkSample link, measure_link(*transport, peer, seconds));
  fmt::print("{:.1f} MB/s, {:.0f} us one way, sends at {:.3f} ns a byte\n",
             link.bandwidth_bytes_per_s / 1e6, link.latency_s * 1e6,
             link.send_cpu_s_per_byte * 1e9);
  return {};
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
  options.kind = kind == "tls" ? "tcp" : kind;
  if (kind == "tls") options.secret = std::string(motley::kSecretBytes, 's');
  options.rank = motley::Rank{std::atoi(argv[2])};
  options.rank_count = 2;
  options.bind_address = argv[3];
  const auto done = motley::run(options, argv[4], argc > 5 ? std::atof(argv[5]) : 4);
  if (done.ok()) return 0;
  fmt::print(stderr, "{}", motley::describe(done.error()));
  return 4;
}
