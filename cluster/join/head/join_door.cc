#include "cluster/join/head/join_door.h"

#include <sys/socket.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/clock.h"

namespace motley {
namespace {

constexpr double kFarewell_s = 2;  // for the machine to read a refusal

}  // namespace

JoinDoor::JoinDoor(OwnedFd listener, const JoinIdentity& identity)
    : listener_(std::move(listener)), identity_(identity), credited_at_s_(now_s()) {}

void JoinDoor::watch(PollSet& polled) {
  const double elapsed_s = now_s() - std::exchange(credited_at_s_, now_s());
  credit_ = std::min(kAcceptedPerSecond, credit_ + elapsed_s * kAcceptedPerSecond);
  if (credit_ >= 1) polled.watch(listener_.get(), POLLIN, [this] { accept(); });
  for (const auto& one : half_open_) {
    polled.watch(one->link->fd(), one->link->events(), [this, &one = *one] { advance(one); });
  }
}

void JoinDoor::accept() {
  while (credit_ >= 1) {
    OwnedFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.open()) return;
    credit_ -= 1;
    send_without_delay(socket);
    auto one = std::make_unique<HalfOpen>();
    one->addresses = addresses_of(socket);
    one->since_s = now_s();
    one->link = std::make_unique<TlsLink>(std::move(socket), identity_, TlsLink::Role::kHead);
    half_open_.push_back(std::move(one));
  }
}

void JoinDoor::advance(HalfOpen& one) {
  if (one.has_failed || one.is_ready) return;
  if (!one.link->advance().ok()) {
    one.has_failed = true;
    return;
  }
  if (one.is_refused || !one.link->is_established()) return;
  const auto frame = one.link->next();
  if (frame.ok() && !*frame) return;
  if (!frame.ok() || (*frame)->kind != JoinKind::kHello) {
    one.has_failed = true;
    return;
  }
  Result<JoinHello> hello = read_join_text<JoinHello>((*frame)->content);
  if (!hello.ok()) return say_refusal(one, hello.error());
  one.hello = std::move(hello).value();
  one.is_ready = true;
}

void JoinDoor::make_room() {
  if (half_open_.size() <= kHalfOpenMax) return;
  std::ranges::stable_sort(half_open_, [](const auto& a, const auto& b) {
    // Those to keep first: what has spoken, then what is younger.
    return std::tuple(!a->link->has_heard(), -a->since_s) <
           std::tuple(!b->link->has_heard(), -b->since_s);
  });
  half_open_.resize(kHalfOpenMax);
}

std::vector<ArrivedMachine> JoinDoor::take_arrivals() {
  std::vector<ArrivedMachine> arrivals;
  for (const auto& one : half_open_) {
    if (!one->is_ready) continue;
    arrivals.push_back({std::move(one->link), std::move(one->hello), std::move(one->addresses)});
  }
  std::erase_if(half_open_, [](const auto& one) {
    const double age_s = now_s() - one->since_s;
    return one->link == nullptr || one->has_failed ||
           age_s > (one->is_refused ? kFarewell_s : kGreeting_s);
  });
  make_room();
  return arrivals;
}

void JoinDoor::refuse(ArrivedMachine arrival, const Error& refusal) {
  auto one = std::make_unique<HalfOpen>();
  one->link = std::move(arrival.link);
  say_refusal(*one, refusal);
  half_open_.push_back(std::move(one));
}

void JoinDoor::say_refusal(HalfOpen& one, const Error& refusal) {
  one.link->send(JoinKind::kRefusal, 0, join_text(JoinRefusal{refusal.cause, refusal.remedy}));
  one.since_s = now_s();
  one.is_refused = true;
  advance(one);
}

}  // namespace motley
