#include "training/memory/gradient_mirror.h"

#include <cstdint>
#include <utility>

#include "base/check.h"
#include "models/device/host_floats.h"

namespace motley {

GradientMirror::GradientMirror(at::Tensor gradients, DeviceCopies& copies)
    : gradients_(std::move(gradients)),
      copies_(copies),
      host_(copies.staging(gradients_.sizes()).zero_()),
      begun_(static_cast<std::size_t>(gradients_.numel())) {}

std::span<float> GradientMirror::host() {
  return floats_of(host_);
}

void GradientMirror::fetch(std::size_t first, const OnDownloaded& on_downloaded) {
  MOTLEY_CHECK(first <= begun_, "gradients from {} on, after {}", first, begun_);
  if (first < begun_) {
    const auto start = static_cast<std::int64_t>(first);
    const auto count = static_cast<std::int64_t>(begun_ - first);
    pieces_.push_back({first, copies_.download(gradients_.narrow(0, start, count),
                                               host_.narrow(0, start, count))});
    begun_ = first;
  }
  notify_downloaded(on_downloaded, /*waits=*/false);
}

void GradientMirror::finish_fetching(const OnDownloaded& on_downloaded) {
  fetch(0, on_downloaded);
  notify_downloaded(on_downloaded, /*waits=*/true);
  begun_ = static_cast<std::size_t>(gradients_.numel());
  is_fetched_ = true;
}

void GradientMirror::fetch_all() {
  finish_fetching({});
}

void GradientMirror::notify_downloaded(const OnDownloaded& on_downloaded, bool waits) {
  while (!pieces_.empty() && (waits || pieces_.front().download.done->is_done())) {
    pieces_.front().download.wait();
    if (on_downloaded) on_downloaded(pieces_.front().first);
    pieces_.pop_front();
  }
}

void GradientMirror::give_back() {
  if (!is_fetched_) return;
  given_back_ = copies_.upload(host_, gradients_);
  is_fetched_ = false;
}

void GradientMirror::clear() {
  if (given_back_ != nullptr) given_back_->wait(copies_.stall_timeout_s());
  host_.zero_();
}

}  // namespace motley
