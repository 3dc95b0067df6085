// The exit status of a worker with an expired lease, which received nothing from its launcher. The
// launcher may wake up and see the status. An event would not work: the launcher was not reading
// the worker's events, so their pipe may be full. Distinct from the statuses of `ErrorCode` and of
// ssh, sh and env.
#pragma once

namespace motley {

inline constexpr int kLeaseExpiredStatus = 75;  // EX_TEMPFAIL of sysexits.h

}  // namespace motley
