// A page of an emulated run, for scripts/page-check: prints its address, then executes commands
// from standard input, and ends with it.
//
//   played_page PORT TOKEN STEPS     PORT 0: a free one; TOKEN "": a new one
//   play N | cut N | happens KIND TEXT | ends STATE TEXT
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include "base/system/owned_fd.h"
#include "tests/watch/played_run.h"
#include "watch/http/http_server.h"

namespace motley {
namespace {

void obey(PlayedRun& run, const std::string& line) {
  std::istringstream words(line);
  std::string what;
  std::string kind;
  std::int64_t count = 0;
  words >> what;
  if (what == "play" && words >> count) run.play(count);
  if (what == "cut" && words >> count) run.cut_to(count);
  if (what != "happens" && what != "ends") return;
  std::string text;
  words >> kind >> std::ws;
  std::getline(words, text);
  if (what == "happens") run.happens(kind, text);
  if (what == "ends") run.ends(kind, text);
}

int serve(const char* port, const char* token, const char* steps) {
  PlayedRun run(std::atoll(steps));
  HttpServerOptions options;
  options.port = static_cast<std::uint16_t>(std::atoi(port));
  options.look_every_s = 0.1;
  options.token = token;
  const auto server = HttpServer::open(run, options);
  if (!server.ok()) {
    fmt::print(stderr, "{}", describe(server.error()));
    return 1;
  }
  int ends[2];
  if (::pipe(ends) != 0) return 1;
  const OwnedFd stop(ends[0]);
  OwnedFd stop_pipe(ends[1]);
  fmt::print("{}\n", (*server)->address());
  std::fflush(stdout);
  std::jthread listener([&] {
    for (std::string line; std::getline(std::cin, line);) obey(run, line);
    stop_pipe.reset();
  });
  (*server)->serve_until({stop.get()});
  return 0;
}

}  // namespace
}  // namespace motley

int main(int count, char** words) {
  if (count != 4) return 2;
  return motley::serve(words[1], words[2], words[3]);
}
