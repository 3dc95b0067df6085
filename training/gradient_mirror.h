// GradientMirror: memory of the host for gradients that lie on a device and are summed over ranks.
// They come to the host piece by piece while the backward that ends them goes on, are summed there
// by others, and the sums go back. Used by the compute thread alone.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>

#include <ATen/core/Tensor.h>

#include "models/device/device_copies.h"

namespace motley {

class GradientMirror {
 public:
  // `gradients`: flat, on the device. `copies` must outlive the mirror.
  GradientMirror(at::Tensor gradients, DeviceCopies& copies);

  // Zeros, or what fetch() brought, or what was written since.
  [[nodiscard]] std::span<float> host();

  // Told from where on the host has the gradients.
  using OnFetched = std::function<void(std::size_t first)>;

  // Begins to bring all before what was fetched last, from `first` on: nothing there changes any
  // more. Tells of pieces that have come meanwhile.
  void fetch(std::size_t first, const OnFetched& on_fetched);
  // Waits for all that was begun, tells of it, and begins anew from the end.
  void finish_fetching(const OnFetched& on_fetched);

  // Brings the whole and waits for it.
  void fetch_all();

  // What stands on the host since the last fetch goes back to the device; nothing where none was
  // brought.
  void give_back();

  // The host's memory becomes zeros.
  void clear();

 private:
  struct Piece {
    std::size_t first = 0;
    DeviceCopies::Download download;
  };

  void tell_fetched(const OnFetched& on_fetched, bool waits);

  at::Tensor gradients_;
  DeviceCopies& copies_;
  at::Tensor host_;
  std::size_t begun_;  // all from here on is fetched or on its way
  std::deque<Piece> pieces_;
  bool is_fetched_ = false;
  std::shared_ptr<const DeviceEvent> given_back_;  // of the last give_back()
};

}  // namespace motley
