// RankGroup: the ranks of one small group as threads of the test, connected over the loopback
// interface. The kind of transport is one of support/transport_kind.h.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "comm/make_transport.h"
#include "comm/transport/inproc_transport.h"
#include "comm/transport/transport.h"
#include "tests/support/transport_kind.h"

namespace motley {

inline Deadline soon() {
  return Deadline::after_s(20);
}

class RankGroup {
 public:
  RankGroup(const std::string& kind, int rank_count) {
    if (kind == "inproc") {
      transports_ = make_inproc_transports(rank_count);
    } else {
      for (Rank rank{0}; rank.value < rank_count; ++rank.value) {
        auto transport = make_transport(options_for(kind, rank, rank_count));
        if (!transport.ok()) ADD_FAILURE() << describe(transport.error());
        transports_.push_back(std::move(transport).value());
      }
    }
    std::vector<std::string> addresses;
    for (const auto& transport : transports_) addresses.push_back(transport->address());
    run([&](Rank rank) {
      const auto connected = at(rank).connect(addresses, soon());
      EXPECT_TRUE(connected.ok()) << describe(connected.error());
    });
  }

  [[nodiscard]] int size() const { return static_cast<int>(transports_.size()); }

  [[nodiscard]] Transport& at(Rank rank) { return *transports_[rank.index()]; }

  // Runs `body` in one thread per rank; returns when all have ended.
  void run(const std::function<void(Rank)>& body) {
    std::vector<std::jthread> threads;
    for (Rank rank{0}; rank.value < size(); ++rank.value) {
      threads.emplace_back([&body, rank] { body(rank); });
    }
  }

  // The rank disconnects without notice.
  void destroy(Rank rank) { transports_[rank.index()].reset(); }

 private:
  std::vector<std::unique_ptr<Transport>> transports_;  // [Rank]
};

}  // namespace motley
