// The exit status of a worker whose lease expired: it heard nothing of its launcher, which may wake
// up and see the status. An event would not do: the worker's events were not read meanwhile, so
// that their pipe may be full. Apart from the statuses of `ErrorCode` and of ssh, sh and env.
#pragma once

namespace motley {

inline constexpr int kLeaseExpiredStatus = 75;  // EX_TEMPFAIL of sysexits.h

}  // namespace motley
