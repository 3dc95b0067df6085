// What differs between the versions of LibTorch that the far device is compiled with, 1.13 to 2.15,
// beyond what differs for the program (models/device/torch_compat.h).
#pragma once

#include <optional>

#include <c10/util/Optional.h>

#include "models/device/torch_compat.h"

// The host waits for an event since 2.5, for a whole device since 2.6.
#define MOTLEY_FAR_EVENTS_ARE_WAITED_FOR MOTLEY_TORCH_SINCE(2, 5)
#define MOTLEY_FAR_DEVICES_ARE_WAITED_FOR MOTLEY_TORCH_SINCE(2, 6)

// What passed between two events is asked since 2.6.
#define MOTLEY_FAR_EVENTS_HAVE_TIMES MOTLEY_TORCH_SINCE(2, 6)

// Devices of this kind are asked for pinned memory since 2.1; how, is the same since 2.6.
#define MOTLEY_FAR_HAS_HOOKS MOTLEY_TORCH_SINCE(2, 6)

// Attention in one operation, in which the processor's own may stand in for a device's.
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
