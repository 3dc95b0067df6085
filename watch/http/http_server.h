// The HTTP server of a run's page. It listens on 127.0.0.1 only and runs on the caller's thread. It
// only reads the run's folder and has no connection to the training.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "watch/http/run_source.h"

namespace motley {

struct HttpServerOptions {
  std::uint16_t port = 0;  // 0 = any free port
  // For tests:
  double look_every_s = 1.0;
  double heartbeat_s = 15.0;
  double request_s = 10.0;
  double write_s = 20.0;
  std::size_t connections_max = 64;       // authenticated
  std::size_t unauthenticated_max = 256;  // not authenticated; a new one closes the oldest
  std::string token = {};  // for a stable address across restarts; empty: a new token
};

// 128 random bits in hexadecimal.
[[nodiscard]] Result<std::string> make_token();

class HttpServer {
 public:
  // kPeer if the port is taken. `source` must outlive the server.
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> open(RunSource& source,
                                                                const HttpServerOptions& options);
  virtual ~HttpServer() = default;

  [[nodiscard]] virtual std::uint16_t port() const = 0;
  [[nodiscard]] virtual const std::string& token() const = 0;
  // "http://127.0.0.1:PORT/?token=…" with the given path. It grants access.
  [[nodiscard]] std::string address(std::string_view path = "/") const;

  // Serves until one of the descriptors is readable or at end of file; reads nothing from it.
  virtual void serve_until(const std::vector<int>& stop_fds) = 0;
};

}  // namespace motley
