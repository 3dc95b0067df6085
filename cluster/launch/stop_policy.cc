#include "cluster/launch/stop_policy.h"

namespace motley {
namespace {

// Signals within this time belong to one request: timeout(1) signals the process and its group, and
// for a closed terminal both the kernel and the shell send SIGHUP.
constexpr double kDuplicateWindow_s = 0.3;

}  // namespace

StopAction StopPolicy::on_signal(const Error& stop, bool can_finish, double at_s) {
  if (finished_by_) {
    const bool is_duplicate = at_s - finish_at_s_ < kDuplicateWindow_s;
    return is_duplicate ? StopAction::kIgnore : StopAction::kTerminate;
  }
  if (!can_finish) return StopAction::kTerminate;
  finished_by_ = stop;
  finish_at_s_ = at_s;
  return StopAction::kFinish;
}

}  // namespace motley
