#include "bench/gloo_ping.h"

#include <memory>
#include <utility>
#include <vector>

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include "base/clock.h"
#include "base/median.h"

namespace motley {

double measure_gloo_ping_s(
    int rank, const std::string& address, const std::string& folder, std::size_t bytes, int count) {
  auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(address.c_str()));
  gloo::rendezvous::FileStore store(folder);
  const auto context = std::make_shared<gloo::rendezvous::Context>(rank, 2);
  context->connectFullMesh(store, device);
  std::vector<char> sent(bytes);
  std::vector<char> came(bytes);
  const auto out = context->createUnboundBuffer(sent.data(), bytes);
  const auto in = context->createUnboundBuffer(came.data(), bytes);
  const int peer = 1 - rank;
  constexpr std::uint64_t kSlot = 0;
  std::vector<double> times_s;
  for (int ping = 0; ping < count; ++ping) {
    const double start_s = now_s();
    if (rank == 1) {
      in->recv(peer, kSlot);
      in->waitRecv();
    }
    out->send(peer, kSlot);
    out->waitSend();
    if (rank == 0) {
      in->recv(peer, kSlot);
      in->waitRecv();
    }
    times_s.push_back(now_s() - start_s);
  }
  return median(std::move(times_s)) / 2;
}

}  // namespace motley
