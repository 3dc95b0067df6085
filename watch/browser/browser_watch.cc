#include "watch/browser/browser_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/process/stop_signals.h"
#include "watch/browser/token_file.h"
#include "watch/browser/viewed_run.h"
#include "watch/http/http_server.h"

namespace motley {
namespace {

void advise_on_page(const HttpServer& server) {
  fmt::print(stderr,
             "open this address in a browser on this machine; its token grants access\n"
             "from another machine: ssh -L {0}:127.0.0.1:{0} THIS_MACHINE, then the same address\n",
             server.port());
}

void advise_on_metrics(const HttpServer& server, const BrowserWatchOptions& options) {
  fmt::print(stderr, "for a Prometheus on this machine, in scrape_configs of prometheus.yml:\n{}",
             scrape_config(server.port(), server.token(), options.token_file));
  if (options.port == 0 || options.token_file.empty()) {
    fmt::print(stderr,
               "port and token change at the next start; --port N --token-file FILE keep them\n");
  }
}

void advise(const HttpServer& server, const BrowserWatchOptions& options) {
  if (options.for_metrics) {
    advise_on_metrics(server, options);
  } else {
    advise_on_page(server);
  }
  fmt::print(stderr, "Ctrl-C ends the page, not the run\n");
}

}  // namespace

std::string scrape_config(std::uint16_t port,
                          const std::string& token,
                          const std::filesystem::path& token_file) {
  std::error_code code;
  const std::string credentials =
      token_file.empty()
          ? fmt::format("credentials: {}", token)
          : fmt::format("credentials_file: {}",
                        std::filesystem::absolute(token_file, code).lexically_normal().string());
  return fmt::format(
      "  - job_name: motley\n"
      "    authorization:\n"
      "      {}\n"
      "    static_configs:\n"
      "      - targets: [\"127.0.0.1:{}\"]\n",
      credentials, port);
}

Result<void> watch_in_browser(const std::filesystem::path& run,
                              const BrowserWatchOptions& options) {
  MOTLEY_ASSIGN(RunView view, RunView::begin(run, unix_time_s()));
  std::string token;
  if (!options.token_file.empty()) {
    MOTLEY_ASSIGN(token, stored_token(options.token_file));
  }
  StopSignals signals;
  ViewedRun source(std::move(view));
  MOTLEY_ASSIGN(const auto server,
                HttpServer::open(source, {.port = options.port, .token = std::move(token)}));
  fmt::print("{}\n", server->address(options.for_metrics ? "/metrics" : "/"));
  std::fflush(stdout);
  std::vector<int> stop_fds = {signals.fd()};
  if (options.until_eof) {
    stop_fds.push_back(STDIN_FILENO);
  } else {
    advise(*server, options);
  }
  server->serve_until(stop_fds);
  const auto stop = signals.take();
  if (stop && stop->code != ErrorCode::kInterrupted) return *stop;
  return {};
}

}  // namespace motley
