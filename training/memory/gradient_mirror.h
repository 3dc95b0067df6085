// GradientMirror: host memory for gradients that lie on a device and are all-reduced over ranks.
// Gradients are downloaded piece by piece while the backward that completes them runs, all-reduced
// there by other code, and uploaded again. Used by the compute thread alone.
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

  // Zeros until fetch() or a caller writes to it.
  [[nodiscard]] std::span<float> host();

  // Called with `first` when all gradients from `first` on have arrived on the host.
  using OnDownloaded = std::function<void(std::size_t first)>;

  // Starts the download of [first, start of the previous fetch). REQUIRES: these gradients are
  // final. Reports pieces that have arrived meanwhile.
  void fetch(std::size_t first, const OnDownloaded& on_downloaded);
  // Fetches the rest, waits for all downloads and reports them. The next fetch() starts from the
  // end again.
  void finish_fetching(const OnDownloaded& on_downloaded);

  // Fetches all gradients and waits for them.
  void fetch_all();

  // Uploads the host's contents if a fetch has finished since the last upload; otherwise does
  // nothing.
  void give_back();

  // Sets the host's memory to zero.
  void clear();

 private:
  struct Piece {
    std::size_t first = 0;
    DeviceCopies::Download download;
  };

  void notify_downloaded(const OnDownloaded& on_downloaded, bool waits);

  at::Tensor gradients_;
  DeviceCopies& copies_;
  at::Tensor host_;
  std::size_t begun_;  // everything from here on is fetched or in flight
  std::deque<Piece> pieces_;
  bool is_fetched_ = false;
  std::shared_ptr<const DeviceEvent> given_back_;  // of the last give_back()
};

}  // namespace motley
