#include "cluster/join/head/join_head.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/hex.h"
#include "base/secret.h"
#include "base/system/blocked_signals.h"
#include "cluster/join/head/admission.h"
#include "cluster/join/head/join_door.h"
#include "cluster/join/head/local_socket.h"
#include "cluster/join/head/machine_link.h"
#include "cluster/join/shared_secret.h"

namespace motley {
namespace {

constexpr double kTick_s = 0.25;
constexpr std::size_t kClientsMax = 1024;
constexpr int kAbsent = 255;

Result<DerivedSecret> random_secret() {
  MOTLEY_ASSIGN(JoinIdentity head, JoinIdentity::make());
  MOTLEY_ASSIGN(std::string secret, make_secret());
  std::string ticket_secret = secret.substr(0, kTicketSecretBytes);
  wipe(secret);
  return DerivedSecret{std::move(head), std::move(ticket_secret)};
}

}  // namespace

class JoinHead::Impl {
 public:
  Impl(InviteOptions options,
       JoinIdentity identity,
       LocalSocket local,
       OwnedFd listener,
       Ticket ticket)
      : options_(std::move(options)),
        identity_(std::move(identity)),
        local_(std::move(local)),
        door_(std::move(listener), identity_),
        ticket_(std::move(ticket)),
        admission_(ticket_.secret,
                   options_.places,
                   static_cast<double>(ticket_.expires_unix_s),
                   options_.taken_names),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    const BlockedSignals blocked;
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  ~Impl() {
    thread_.request_stop();
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
    thread_.join();
    wipe(ticket_.secret);
  }

  [[nodiscard]] const Ticket& ticket() const { return ticket_; }

  [[nodiscard]] std::filesystem::path socket() const { return local_.path(); }

  void set_end(int status, const std::string& problem) {
    const std::lock_guard lock(mutex_);
    end_ = {.status = status, .problem = problem};
  }

  [[nodiscard]] std::vector<JoinedMachine> machines() const {
    const std::lock_guard lock(mutex_);
    return machines_;
  }

 private:
  void run(const std::stop_token& stop);
  void greet(ArrivedMachine arrival);
  [[nodiscard]] Result<std::string> admit(const JoinHello& hello,
                                          const ProofContext& context,
                                          const std::string& proof);
  void note(const JoinedMachine& machine);
  void accept_clients();
  void hear_client(OwnedFd& client);
  void tend_machines();

  const InviteOptions options_;
  const JoinIdentity identity_;
  const LocalSocket local_;
  JoinDoor door_;
  Ticket ticket_;
  Admission admission_;
  OwnedFd wake_;
  std::map<std::string, std::unique_ptr<MachineLink>> links_;  // by name
  std::vector<std::unique_ptr<OwnedFd>> clients_;              // that have not asked yet
  std::map<std::string, double> refusal_said_at_s_;            // by address
  mutable std::mutex mutex_;
  std::vector<JoinedMachine> machines_;           // guarded by mutex_
  JoinExit end_{.problem = "the run has ended"};  // guarded by mutex_
  std::jthread thread_;
};

void JoinHead::Impl::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    PollSet polled;
    polled.watch(wake_.get(), POLLIN, [] {});
    polled.watch(local_.fd(), POLLIN, [this] { accept_clients(); });
    door_.watch(polled);
    for (const auto& client : clients_) {
      polled.watch(client->get(), POLLIN, [this, &client = *client] { hear_client(client); });
    }
    for (const auto& [name, link] : links_) link->watch(polled);
    polled.wait(kTick_s);
    std::erase_if(clients_, [](const auto& client) { return !client->open(); });
    for (ArrivedMachine& arrival : door_.take_arrivals()) greet(std::move(arrival));
    tend_machines();
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [name, link] : links_) link->end(end_);
  links_.clear();
}

void JoinHead::Impl::greet(ArrivedMachine arrival) {
  const ProofContext context{arrival.link->exported(), identity_.fingerprint(),
                             arrival.link->peer_fingerprint()};
  const auto proof = from_hex(arrival.hello.proof);
  const std::string proof_bytes = proof ? std::string(proof->begin(), proof->end()) : "";
  const JoinHello& hello = arrival.hello;
  auto name = admit(hello, context, proof_bytes);
  const std::string& address = arrival.addresses.there;
  if (!name.ok()) {
    // One line a minute for each address, whatever it sends.
    constexpr double kBetween_s = 60;
    constexpr std::size_t kAddressesMax = 256;
    const auto [said, is_new] = refusal_said_at_s_.try_emplace(address, now_s());
    if (is_new || now_s() - said->second >= kBetween_s) {
      said->second = now_s();
      options_.say(fmt::format("refused a machine at {}: {}", address, name.error().cause));
    }
    if (refusal_said_at_s_.size() > kAddressesMax) refusal_said_at_s_.clear();
    return door_.refuse(std::move(arrival), name.error());
  }
  note({*name, hello.address, address, arrival.addresses.here, hello.files, hello.runs,
        hello.processes, !hello.mark.empty() && hello.mark == options_.mark});
  auto& link = links_[*name];
  if (link) link->lose(fmt::format("{}: the connection was lost", *name));
  link = std::make_unique<MachineLink>(std::move(arrival.link),
                                       JoinWelcome{*name, options_.valid_s, options_.silence_s});
}

Result<std::string> JoinHead::Impl::admit(const JoinHello& hello,
                                          const ProofContext& context,
                                          const std::string& proof) {
  const int announced = options_.announced;
  if (announced > 0 && hello.announced > 0 && hello.announced != announced) {
    return Error{ErrorCode::kUnauthorised, "the head refused this machine",
                 fmt::format("its launcher announces {} processes, that of process 0 {}",
                             hello.announced, announced),
                 "start all processes by one command, or give all of them the same variables"};
  }
  return admission_.admit(context, proof, hello.name, unix_time_s(), hello.processes);
}

void JoinHead::Impl::note(const JoinedMachine& machine) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(machines_, machine.name, &JoinedMachine::name);
  if (known != machines_.end()) {
    known->is_connected = true;
    options_.say(fmt::format("{} is back, from {}", machine.name, machine.seen_address));
    return;
  }
  machines_.push_back(machine);
  int taken = 0;
  for (const JoinedMachine& each : machines_) taken += each.processes;
  options_.say(fmt::format("{} has joined from {} ({} of {})", machine.name, machine.seen_address,
                           taken, options_.places));
  if (machine.address != machine.seen_address) {
    options_.say(fmt::format(
        "{} has the address {} behind a router: the other machines cannot connect to it, so it "
        "connects to them",
        machine.name, machine.address));
  }
}

void JoinHead::Impl::accept_clients() {
  while (auto client = local_.accept()) {
    if (clients_.size() >= kClientsMax) continue;
    clients_.push_back(std::make_unique<OwnedFd>(*std::move(client)));
  }
}

void JoinHead::Impl::hear_client(OwnedFd& client) {
  auto message = receive_local(client);
  OwnedFd connection = std::move(client);
  if (!message) return;
  auto request = read_join_text<JoinWords>(message->text);
  if (!request.ok() || request->words.size() < 2) return;
  const std::string name = request->words.front();
  request->words.erase(request->words.begin());
  const auto link = links_.find(name);
  if (link == links_.end()) {
    const JoinExit absent{.status = kAbsent,
                          .problem = fmt::format("{} is not connected to this run", name)};
    (void)send_local(connection, join_text(absent));
    return;
  }
  link->second->start(std::move(connection), std::move(message->fds), *request);
}

void JoinHead::Impl::tend_machines() {
  for (auto it = links_.begin(); it != links_.end();) {
    const Result<void> state = it->second->tend();
    if (state.ok()) {
      ++it;
      continue;
    }
    const Error& error = state.error();
    const std::string why =
        error.cause.empty() ? error.what : fmt::format("{}: {}", error.what, error.cause);
    options_.say(fmt::format("{}: {}", it->first, why));
    it->second->lose(fmt::format("{}: {}", it->first, why));
    {
      const std::lock_guard lock(mutex_);
      std::ranges::find(machines_, it->first, &JoinedMachine::name)->is_connected = false;
    }
    it = links_.erase(it);
  }
}

JoinHead::JoinHead(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

JoinHead::~JoinHead() = default;

Result<std::unique_ptr<JoinHead>> JoinHead::open(InviteOptions options) {
  MOTLEY_ASSIGN(OwnedFd listener, listen_at(options.listen_address, options.listen_port));
  MOTLEY_ASSIGN(LocalSocket local, LocalSocket::open());
  const std::uint16_t port = port_of(listener);
  MOTLEY_ASSIGN(DerivedSecret derived, options.shared_secret.empty()
                                           ? random_secret()
                                           : derive_secret(options.shared_secret, port));
  wipe(options.shared_secret);
  Ticket ticket{options.addresses, port, static_cast<std::int64_t>(unix_time_s() + options.valid_s),
                derived.head.fingerprint(), std::move(derived.ticket_secret)};
  return std::unique_ptr<JoinHead>(new JoinHead(
      std::make_unique<Impl>(std::move(options), std::move(derived.head), std::move(local),
                             std::move(listener), std::move(ticket))));
}

const Ticket& JoinHead::ticket() const {
  return impl_->ticket();
}

std::vector<JoinedMachine> JoinHead::machines() const {
  return impl_->machines();
}

void JoinHead::set_end(int status, const std::string& problem) {
  impl_->set_end(status, problem);
}

std::filesystem::path JoinHead::socket() const {
  return impl_->socket();
}

}  // namespace motley
