#include "watch/browser/browser_watch.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "base/clock.h"
#include "cluster/process/stop_signals.h"
#include "watch/browser/viewed_run.h"
#include "watch/http/http_server.h"

namespace motley {

Result<void> watch_in_browser(const std::filesystem::path& run, std::uint16_t port) {
  MOTLEY_ASSIGN(RunView view, RunView::open(run, unix_time_s()));
  StopSignals signals;
  ViewedRun source(std::move(view));
  MOTLEY_ASSIGN(const auto server, HttpServer::open(source, {.port = port}));
  fmt::print("{}\n", server->address());
  std::fflush(stdout);
  fmt::print(stderr,
             "open this address in a browser on this machine; its token lets in whoever has it\n"
             "from another machine: ssh -L {0}:127.0.0.1:{0} THIS_MACHINE, then the same address\n"
             "Ctrl-C ends the page, and nothing else\n",
             server->port());
  server->serve_until(signals.fd());
  const auto stop = signals.take();
  if (stop && stop->code != ErrorCode::kInterrupted) return *stop;
  return {};
}

}  // namespace motley
