#include "comm/tcp/tcp_group.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/check.h"
#include "base/secret.h"
#include "comm/tcp/derived_key.h"

namespace motley {

Result<TcpGroup> TcpGroup::of(const TransportOptions& options) {
  TcpGroup group;
  group.self = {options.epoch, options.rank_count, options.rank, Rank{}, options.local_shortcut};
  if (options.secret.empty()) return group;
  MOTLEY_CHECK(options.secret.size() == kSecretBytes, "a secret of {} bytes",
               options.secret.size());
  const std::string purpose = fmt::format("motley data, epoch {}", options.epoch);
  MOTLEY_ASSIGN(std::string key, derive_key(options.secret, purpose));
  MOTLEY_ASSIGN(group.tls, TlsContext::make(std::move(key), purpose));
  return group;
}

}  // namespace motley
