// comm_peer_process KIND [BIND_ADDRESS]: rank 1 of two, with a transport of a kind of
// tests/support/transport_kind.h. Prints its address, reads that of rank 0 from stdin and
// connects. It answers each message of tag 1 with the same bytes.
#include <cstdio>
#include <iostream>
#include <string>

#include "comm/make_transport.h"
#include "comm/transport/transport.h"
#include "support/transport_kind.h"

using motley::Buffer;
using motley::Deadline;
using motley::Rank;

int main(int argc, char** argv) {
  constexpr double kStallTimeout_s = 60;
  auto options = motley::options_for(argc > 1 ? argv[1] : "auto", Rank{1}, 2);
  options.bind_address = argc > 2 ? argv[2] : "";
  auto transport = motley::make_transport(options);
  if (!transport.ok()) {
    std::cerr << motley::describe(transport.error());
    return 1;
  }
  std::cout << (*transport)->address() << std::endl;
  std::string first;
  std::getline(std::cin, first);
  const auto connected =
      (*transport)->connect({first, (*transport)->address()}, Deadline::after_s(kStallTimeout_s));
  if (!connected.ok()) {
    std::cerr << motley::describe(connected.error());
    return 1;
  }
  for (;;) {
    auto message = (*transport)
                       ->recv(Rank{0}, 1, Buffer(1 << 20))
                       .wait(Deadline::after_s(kStallTimeout_s), "a message");
    if (!message.ok()) return 0;
    auto answer = (*transport)
                      ->send(Rank{0}, 1, std::move(message).value())
                      .wait(Deadline::after_s(kStallTimeout_s), "rank 0");
    if (!answer.ok()) return 0;
  }
}
