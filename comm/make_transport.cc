#include "comm/make_transport.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "comm/tcp/tcp_transport.h"
#include "comm/tcp/watched_transport.h"
#include "comm/transport/transport.h"
#ifdef MOTLEY_WITH_UCX
#include "comm/ucx/ucx_transport.h"
#endif
#ifdef MOTLEY_WITH_GLOO
#include "comm/gloo/gloo_transport.h"
#endif

namespace motley {
namespace {

[[maybe_unused]] Result<std::unique_ptr<Transport>> watched(
    Result<std::unique_ptr<WatchableTransport>> made,
    const TransportOptions& options,
    OnMissing on_missing) {
  MOTLEY_ASSIGN(auto transport, std::move(made));
  TransportOptions beside = options;
  beside.local_shortcut = false;  // an explicitly chosen transport carries everything
  MOTLEY_ASSIGN(auto tcp, make_tcp_transport(beside, std::move(on_missing)));
  return make_watched_transport(std::move(transport), std::move(tcp), options.rank);
}

}  // namespace

void quiet_transports() {
#ifdef MOTLEY_WITH_UCX
  quiet_ucx();
#endif
}

std::vector<std::string> transport_kinds() {
  return {
      "tcp",
#ifdef MOTLEY_WITH_UCX
      "ucx",
#endif
#ifdef MOTLEY_WITH_GLOO
      "gloo",
#endif
  };
}

Result<std::unique_ptr<Transport>> make_transport(const TransportOptions& options,
                                                  OnMissing on_missing) {
  const std::vector<std::string> kinds = transport_kinds();
  const bool is_secret = !options.secret.empty();
  const std::string& kind = options.kind == "auto" ? kinds.front() : options.kind;
  if (kind == "tcp") {
    MOTLEY_ASSIGN(auto tcp, make_tcp_transport(options, std::move(on_missing)));
    return std::unique_ptr<Transport>(std::move(tcp));
  }
  if (is_secret && std::ranges::find(kinds, kind) != kinds.end()) {
    return Error{ErrorCode::kConfig, fmt::format("the transport {} cannot encrypt", kind),
                 "the ranks must encrypt their messages", "set comm.transport to auto or tcp"};
  }
#ifdef MOTLEY_WITH_UCX
  if (kind == "ucx") return watched(make_ucx_transport(options), options, std::move(on_missing));
#endif
#ifdef MOTLEY_WITH_GLOO
  if (kind == "gloo") return watched(make_gloo_transport(options), options, std::move(on_missing));
#endif
  return Error{ErrorCode::kConfig, fmt::format("this build has no transport '{}'", options.kind),
               fmt::format("it has {}", fmt::join(kinds, " and ")),
               "choose one of these, or build with MOTLEY_WITH_UCX=ON or MOTLEY_WITH_GLOO=ON"};
}

}  // namespace motley
