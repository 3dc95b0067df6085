#include "watch/browser/elsewhere.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/process/process.h"
#include "base/process/stop_signals.h"
#include "base/system/owned_fd.h"
#include "base/system/shell_word.h"

namespace motley {
namespace {

constexpr int kNotRun = 127;        // a shell's status if the program does not exist
constexpr int kNoConnection = 255;  // ssh's status if it cannot connect
constexpr std::size_t kAddressBytesMax = 4096;

// A port that is free on this machine now. If another program takes it meanwhile, ssh ends with an
// error.
Result<std::uint16_t> free_port() {
  const OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (!fd.open() ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return Error{ErrorCode::kPeer, "no free port for the page",
                 std::generic_category().message(errno), ""};
  }
  return ntohs(address.sin_port);
}

// One word for the remote login shell, independent of which shell that is.
std::string there(const RunElsewhere& run,
                  const std::filesystem::path& program,
                  const std::string& options,
                  const char* no_color = nullptr) {
  const std::string same_place = quote_for_shell(program.string());
  const std::string setting =
      no_color == nullptr ? "" : "export NO_COLOR=" + quote_for_shell(no_color) + "; ";
  const std::string script =
      fmt::format("m={}; [ -x \"$m\" ] || m=motley; {}exec \"$m\" watch {} {}", same_place, setting,
                  quote_for_shell(run.folder), options);
  return "exec sh -c " + quote_for_shell(script);
}

// The common options of ssh: it ends when the connection is lost.
std::vector<std::string> ssh_words() {
  return {"ssh",
          "-o",
          "ConnectTimeout=10",
          "-o",
          "ServerAliveInterval=5",
          "-o",
          "ServerAliveCountMax=3"};
}

// Forwards the output and stores its first line.
class Relay {
 public:
  // Forwards all output that is available now.
  void drain(const OwnedFd& fd, std::FILE* to) {
    pollfd readable{fd.get(), POLLIN, 0};
    while (fd.open() && ::poll(&readable, 1, 0) == 1 && take(fd.get(), to)) continue;
  }

  // Returns whether the descriptor is still open.
  bool take(int fd, std::FILE* to) {
    std::array<char, 4096> block{};
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
    const std::string_view text(block.data(), static_cast<std::size_t>(got));
    std::fwrite(text.data(), 1, text.size(), to);
    std::fflush(to);
    if (to == stdout && first_line_.size() < kAddressBytesMax &&
        first_line_.find('\n') == std::string::npos) {
      first_line_ += text;
    }
    return true;
  }

  // "" until the line is complete.
  [[nodiscard]] std::string first_line() const {
    const std::size_t end = first_line_.find('\n');
    return end == std::string::npos ? "" : first_line_.substr(0, end);
  }

 private:
  std::string first_line_;
};

Error end_error(const RunElsewhere& run, const ProcessExit& exit) {
  const std::string what = fmt::format("cannot watch {}:{}", run.host, run.folder);
  if (exit.signal != 0 || exit.status == kNoConnection) {
    return {
        ErrorCode::kPeer, what, "the ssh connection failed or ended",
        fmt::format("check `ssh {} true`; if the port is in use here, choose another with --port N",
                    run.host)};
  }
  if (exit.status == kNotRun) {
    return {ErrorCode::kPeer, what, fmt::format("{} has no motley", run.host),
            "install Motley there, at the same path or on the PATH of ssh commands"};
  }
  const bool is_ours = exit.status >= static_cast<int>(ErrorCode::kUsage) &&
                       exit.status <= static_cast<int>(ErrorCode::kDiverged);
  return {is_ours ? static_cast<ErrorCode>(exit.status) : ErrorCode::kPeer, what,
          fmt::format("motley watch ended there with status {}", exit.status),
          "see its message above"};
}

void print_use(const std::string& address, const BrowserWatchOptions& options) {
  constexpr std::string_view kToken = "token=";
  const std::size_t at = address.find(kToken);
  if (options.for_metrics && at != std::string::npos) {
    fmt::print(stderr, "{}", scrape_config(options.port, address.substr(at + kToken.size()), {}));
  }
  fmt::print(stderr, "Ctrl-C ends the page, not the run\n");
}

}  // namespace

std::optional<RunElsewhere> run_elsewhere(const std::string& operand) {
  const std::size_t colon = operand.find(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == operand.size()) return {};
  std::error_code code;
  if (std::filesystem::exists(operand, code)) return {};
  RunElsewhere run{operand.substr(0, colon), operand.substr(colon + 1)};
  const bool is_host = run.host.front() != '-' && std::ranges::none_of(run.host, [](char c) {
                         return c == '/' || c <= ' ' || c == '\x7f';
                       });
  if (!is_host) return {};
  constexpr std::string_view kHome = "~/";  // the directory in which ssh starts commands
  if (run.folder.starts_with(kHome)) run.folder.erase(0, kHome.size());
  if (run.folder.starts_with('-') || run.folder.empty()) run.folder.insert(0, "./");
  return run;
}

std::vector<std::string> command_elsewhere(const RunElsewhere& run,
                                           const BrowserWatchOptions& options,
                                           const std::filesystem::path& program) {
  std::vector<std::string> words = ssh_words();
  const std::string forward = fmt::format("127.0.0.1:{0}:127.0.0.1:{0}", options.port);
  for (const std::string& word :
       {std::string("-o"), std::string("BatchMode=yes"), std::string("-o"),
        std::string("ExitOnForwardFailure=yes"), std::string("-T"), std::string("-L"), forward,
        std::string("--"), run.host}) {
    words.push_back(word);
  }
  words.push_back(there(run, program,
                        fmt::format("--port {} --until-eof{}", options.port,
                                    options.for_metrics ? " --metrics" : "")));
  return words;
}

Result<void> watch_elsewhere(const RunElsewhere& run,
                             BrowserWatchOptions options,
                             const std::filesystem::path& program) {
  if (!options.token_file.empty()) {
    return Error{ErrorCode::kUsage, "--token-file must be on the machine of the run", "",
                 "leave it out, or start motley watch there"};
  }
  if (options.port == 0) {
    MOTLEY_ASSIGN(options.port, free_port());
  }
  StopSignals signals;
  MOTLEY_ASSIGN(Process ssh, Process::start(command_elsewhere(run, options, program)));
  Relay relay;
  bool printed = false;
  while (true) {
    std::array<pollfd, 4> fds{{{signals.fd(), POLLIN, 0},
                               {ssh.output().get(), POLLIN, 0},
                               {ssh.errors().get(), POLLIN, 0},
                               {ssh.exit_fd(), POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), -1);
    if (const auto stop = signals.take()) {
      if (stop->code == ErrorCode::kInterrupted) return {};
      return *stop;
    }
    if (fds[1].revents != 0 && !relay.take(ssh.output().get(), stdout)) ssh.output().reset();
    if (fds[2].revents != 0 && !relay.take(ssh.errors().get(), stderr)) ssh.errors().reset();
    if (!printed && !relay.first_line().empty()) {
      printed = true;
      print_use(relay.first_line(), options);
    }
    if (fds[3].revents == 0) continue;
    relay.drain(ssh.output(), stdout);
    relay.drain(ssh.errors(), stderr);
    return end_error(run, ssh.reap());
  }
}

Error become_screen_elsewhere(const RunElsewhere& run,
                              const std::filesystem::path& program,
                              const char* no_color) {
  std::vector<std::string> words = ssh_words();
  words.emplace_back(::isatty(STDOUT_FILENO) == 1 ? "-t" : "-T");
  words.emplace_back("--");
  words.push_back(run.host);
  words.push_back(there(run, program, "--tui", no_color));
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv.front(), argv.data());
  return {ErrorCode::kPeer, "cannot start ssh", std::generic_category().message(errno),
          "install openssh-client"};
}

}  // namespace motley
