#include "cluster/launch/stop_wishes.h"

namespace motley {
namespace {

// timeout(1) sends its own signal to the process and to its group; a terminal that closes sends
// both the kernel's and the shell's.
constexpr double kOneWish_s = 0.3;

}  // namespace

StopWishes::Wish StopWishes::take(const Error& stop, bool can_finish, double at_s) {
  if (finished_by_) return at_s - asked_at_s_ < kOneWish_s ? Wish::kKnown : Wish::kEndAtOnce;
  if (!can_finish) return Wish::kEndAtOnce;
  finished_by_ = stop;
  asked_at_s_ = at_s;
  return Wish::kFinish;
}

}  // namespace motley
