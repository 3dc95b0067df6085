// Differences between the versions of LibTorch that the far device is compiled with, 1.13 to 2.15,
// in addition to those in models/device/torch_compat.h.
#pragma once

#include <optional>

#include <c10/util/Optional.h>

#include "models/device/torch_compat.h"

// The host can wait for an event since 2.5, for a whole device since 2.6.
#define MOTLEY_FAR_EVENTS_ARE_WAITED_FOR MOTLEY_TORCH_SINCE(2, 5)
#define MOTLEY_FAR_DEVICES_ARE_WAITED_FOR MOTLEY_TORCH_SINCE(2, 6)

// The time between two events is available since 2.6.
#define MOTLEY_FAR_EVENTS_HAVE_TIMES MOTLEY_TORCH_SINCE(2, 6)

// Devices of this kind are queried for pinned memory since 2.1; the interface is the same since
// 2.6.
#define MOTLEY_FAR_HAS_HOOKS MOTLEY_TORCH_SINCE(2, 6)

// Attention as one operation, with a processor kernel that can stand in for a device's.
#define MOTLEY_FAR_HAS_ATTENTION MOTLEY_TORCH_SINCE(2, 6)

namespace motley::far {

#if MOTLEY_TORCH_SINCE(2, 4)
template <class T>
using Optional = std::optional<T>;
#else
template <class T>
using Optional = c10::optional<T>;
#endif

}  // namespace motley::far
