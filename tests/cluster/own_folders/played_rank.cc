#include "tests/cluster/own_folders/played_rank.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/clock.h"
#include "tests/support/disk_recording.h"

namespace motley::testing {

// The tensors of a rank: its parameters, or their optimizer moments.
std::vector<OwnedTensor> tensors_of(
    const Plan& plan, const ModelSpec& model, int rank, const std::string& part, int version) {
  std::vector<OwnedTensor> tensors;
  const ChunkPlan& chunk = plan.chunks[static_cast<std::size_t>(rank)];
  for (int i = chunk.first_layer; i < chunk.first_layer + chunk.layer_count; ++i) {
    for (const ParameterSpec& parameter : model.layers[static_cast<std::size_t>(i)].parameters) {
      OwnedTensor tensor{part + parameter.name, parameter.shape, {}};
      for (std::int64_t k = 0; k < parameter.count(); ++k) {
        tensor.values.push_back(static_cast<float>(version) + static_cast<float>(k) / 1024);
      }
      tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

void RankEvents::add(Rank rank, const Json& event) {
  const std::lock_guard lock(mutex_);
  events_.emplace_back(rank.value, event);
  changed_.notify_all();
}

std::optional<std::pair<int, Json>> RankEvents::next(double wait_s) {
  std::unique_lock lock(mutex_);
  const Deadline deadline = Deadline::after_s(wait_s);
  changed_.wait_until(lock, deadline.time(), [&] { return !events_.empty(); });
  if (events_.empty()) return {};
  auto event = std::move(events_.front());
  events_.pop_front();
  return event;
}

PlayedRank::PlayedRank(Transport& transport, Rank self, RankEvents& events)
    : late(transport), channel([self, &events](const Json& event) {
        // Copies that are reported must exist.
        if (event.at("event") == "copied") {
          mark(fmt::format("copied {} {} {}", event.at("step").dump(), self.value,
                           event.at("to").dump()));
        }
        events.add(self, event);
      }) {}

PlayedRank::~PlayedRank() {
  channel.close();
}

}  // namespace motley::testing
