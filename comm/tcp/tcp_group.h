// TcpGroup is what the parts of one TCP transport share: who this rank is and how its connections
// are protected.
#pragma once

#include <memory>

#include "base/ids.h"
#include "comm/tcp/tcp_hello.h"
#include "comm/tcp/tls_session.h"

namespace motley {

struct TcpGroup {
  Hello self;                             // without `to`; local: takes the short way where it can
  std::shared_ptr<const TlsContext> tls;  // null: unencrypted

  [[nodiscard]] Hello hello_to(Rank peer) const {
    Hello hello = self;
    hello.to = peer;
    return hello;
  }

  [[nodiscard]] std::unique_ptr<TlsSession> new_session(TlsSession::Role role) const {
    return tls == nullptr ? nullptr : std::make_unique<TlsSession>(tls, role);
  }
};

}  // namespace motley
