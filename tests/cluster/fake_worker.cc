// A worker that computes nothing and executes the script in its job's options:
//   {"script": [["beat", 3, "forward of micro-batch 1"], ["kill", 9]], "raw": true}
// Without "raw" the script starts after the usual hello, address, addresses and ready.
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

#include "base/json.h"
#include "protocol/protocol.h"

namespace motley {
namespace {

void say(const Json& event) {
  std::cout << event.dump() << std::endl;
}

Json read_message() {
  std::string line;
  if (!std::getline(std::cin, line)) std::exit(0);  // end of file: stop at once
  return *parse_json(line, "stdin");
}

// The next message other than a lease.
Json read_order() {
  Json message = read_message();
  while (message.contains("lease")) message = read_message();
  return message;
}

// Sends a number of beats at an interval; each reports additional finished work, in percent.
void load(const Json& words) {
  const int count = words[1].get<int>();
  const int done_each = words[3].get<int>();
  for (int i = 1; i <= count; ++i) {
    std::this_thread::sleep_for(std::chrono::duration<double>(words[2].get<double>()));
    say({{"event", "beat"},
         {"step", 0},
         {"doing", "work between steps"},
         {"task", "loading: " + std::to_string(i * done_each) + " %"},
         {"progress", i * done_each}});
  }
}

// Waits for leases until they have reported progress of the group `changes` times.
void hear_leases(int changes) {
  for (Json last; changes >= 0;) {
    const Json message = read_message();
    if (!message.contains("lease") || message["lease"] == last) continue;
    last = message["lease"];
    --changes;
  }
}

[[noreturn]] void sleep_forever() {
  while (true) ::pause();
}

// Rendezvous with another process at a FIFO: returns once both have opened it.
void meet(const std::string& path, int flags) {
  ::close(::open(path.c_str(), flags));
}

// Starts a child in the same process group that keeps the output pipes open.
void start_grandchild() {
  const pid_t pid = ::fork();
  if (pid == 0) sleep_forever();
  say({{"event", "result"}, {"pid", pid}});
}

void do_one(const Json& words) {
  const auto verb = words[0].get<std::string>();
  if (verb == "hello") {
    say({{"event", "hello"}, {"protocol", words.size() > 1 ? words[1] : Json(kProtocolVersion)}});
  }
  if (verb == "ready") say({{"event", "ready"}});
  if (verb == "address") say({{"event", "address"}, {"address", words[1]}});
  if (verb == "beat") say({{"event", "beat"}, {"step", words[1]}, {"doing", words[2]}});
  if (verb == "error") say({{"event", "error"}, {"code", words[1]}, {"what", words[2]}});
  if (verb == "done") say({{"event", "done"}});
  if (verb == "say") say(words[1]);
  if (verb == "pid") say({{"event", "result"}, {"pid", ::getpid()}});
  if (verb == "environment") {
    say({{"event", "result"}, {"value", std::getenv(words[1].get<std::string>().c_str())}});
  }
  if (verb == "message") say({{"event", "result"}, {"message", read_order()}});
  if (verb == "load") load(words);
  if (verb == "pause") {
    std::this_thread::sleep_for(std::chrono::duration<double>(words[1].get<double>()));
  }
  if (verb == "leases") hear_leases(words[1].get<int>());
  if (verb == "print") std::cout << words[1].get<std::string>() << std::endl;
  if (verb == "complain") std::cerr << words[1].get<std::string>() << std::endl;
  if (verb == "flood") std::cout << std::string(words[1].get<std::size_t>(), 'x') << std::flush;
  if (verb == "grandchild") start_grandchild();
  if (verb == "await") meet(words[1].get<std::string>(), O_RDONLY);
  if (verb == "release") meet(words[1].get<std::string>(), O_WRONLY);
  if (verb == "kill") ::raise(words[1].get<int>());
  if (verb == "exit") std::_Exit(words[1].get<int>());
  if (verb == "wait") {
    while (true) (void)read_message();
  }
  if (verb == "ignore") {
    ::signal(SIGTERM, SIG_IGN);
    ::signal(SIGINT, SIG_IGN);
    sleep_forever();
  }
}

int run() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // no process remains, even after a failed test
  // A lease may arrive as soon as the pipe exists.
  const Json options = read_order()["job"]["options"];
  if (!options.contains("raw")) {
    say({{"event", "hello"}, {"protocol", kProtocolVersion}});
    say({{"event", "address"}, {"address", "at " + std::to_string(::getpid())}});
    (void)read_order();
    say({{"event", "ready"}});
  }
  for (const Json& words : options["script"]) do_one(words);
  return 0;
}

}  // namespace
}  // namespace motley

int main() {
  return motley::run();
}
