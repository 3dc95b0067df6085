#include "cluster/launch/start_gate.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "cluster/launch/worker_command.h"

namespace motley {

bool StartGate::is_open(const std::vector<std::string>& prefix, double now_s) const {
  if (!is_ssh(prefix)) return true;
  const auto under_way = std::ranges::count_if(logins_, [&](const Login& login) {
    return login.prefix == prefix && now_s - login.since_s < kLogin_s;
  });
  return static_cast<std::size_t>(under_way) < kAtOnceMax;
}

void StartGate::enter(const std::vector<std::string>& prefix, double now_s) {
  if (is_ssh(prefix)) logins_.push_back({prefix, now_s});
}

void StartGate::leave(const std::vector<std::string>& prefix) {
  const auto login = std::ranges::find(logins_, prefix, &Login::prefix);
  if (login != logins_.end()) logins_.erase(login);
}

bool was_rejected(const std::vector<std::string>& prefix,
                  const ProcessExit& exit,
                  const std::vector<std::string>& last_lines) {
  constexpr int kSshFailed = 255;
  constexpr std::array<std::string_view, 4> kBusy = {"kex_exchange_identification",
                                                     "Connection reset by", "Connection closed by",
                                                     "Not allowed at this time"};
  if (!is_ssh(prefix) || exit.signal != 0 || exit.status != kSshFailed) return false;
  return std::ranges::any_of(last_lines, [&](const std::string& line) {
    return std::ranges::any_of(
        kBusy, [&](std::string_view words) { return line.find(words) != std::string::npos; });
  });
}

double wait_before_retry_s(int tries) {
  constexpr std::array kWaits_s = {0.5, 1.0, 2.0, 4.0, 8.0};
  const auto index = static_cast<std::size_t>(tries - 1);
  return index < kWaits_s.size() ? kWaits_s[index] : -1;
}

}  // namespace motley
