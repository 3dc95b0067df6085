#include "cluster/launch/stop_policy.h"

namespace motley {
namespace {

// timeout(1) sends its own signal to the process and to its group; a terminal that closes sends
// both the kernel's and the shell's.
constexpr double kOneWish_s = 0.3;

}  // namespace

StopPolicy::StopAction StopPolicy::take(const Error& stop, bool can_finish, double at_s) {
  if (finished_by_)
    return at_s - asked_at_s_ < kOneWish_s ? StopAction::kKnown : StopAction::kEndAtOnce;
  if (!can_finish) return StopAction::kEndAtOnce;
  finished_by_ = stop;
  asked_at_s_ = at_s;
  return StopAction::kFinish;
}

}  // namespace motley
