// TcpGroup: the data that the parts of one TCP transport share: this rank's identity and the
// protection of its connections.
#pragma once

#include <memory>

#include "base/ids.h"
#include "base/result.h"
#include "comm/tcp/tcp_hello.h"
#include "comm/tcp/tls_session.h"
#include "comm/transport/transport.h"

namespace motley {

struct TcpGroup {
  // With TLS if the options have a secret. kInternal if OpenSSL fails.
  [[nodiscard]] static Result<TcpGroup> of(const TransportOptions& options);

  Hello self;                             // without `to`; local: uses the local mode where possible
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
