// The server of a run's page: on 127.0.0.1 only, one thread, which is the caller's. It reads the
// run's folder and nothing else, writes nothing, and a training does not know of it.
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
  std::uint16_t port = 0;  // 0: one that is free
  // What follows is for tests.
  double look_every_s = 1.0;
  double heartbeat_s = 15.0;
  double request_s = 10.0;
  double write_s = 20.0;
  std::size_t connections_max = 64;  // of those that have shown the token
  std::size_t strangers_max = 256;   // of the others: the oldest gives way to one more
  std::string token = {};  // for a server that comes back at the same address; empty: a new one
};

// 128 random bits in hexadecimal.
[[nodiscard]] Result<std::string> make_token();

class HttpServer {
 public:
  // kPeer where the port is taken. `source` must outlive the server.
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> open(RunSource& source,
                                                                const HttpServerOptions& options);
  virtual ~HttpServer() = default;

  [[nodiscard]] virtual std::uint16_t port() const = 0;
  [[nodiscard]] virtual const std::string& token() const = 0;
  // "http://127.0.0.1:PORT/?token=…", of that path, which lets in whoever has it.
  [[nodiscard]] std::string address(std::string_view path = "/") const;

  // Serves until one of them can be read, or is at its end; nothing is read of it.
  virtual void serve_until(const std::vector<int>& stop_fds) = 0;
};

}  // namespace motley
