#include "protocol/link_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

#include "protocol/message_fields.h"

namespace motley {
namespace {

constexpr std::array<std::pair<LinkState, std::string_view>, 4> kStates = {{
    {LinkState::kAnswers, "answers"},
    {LinkState::kSilent, "silent"},
    {LinkState::kRefused, "refused"},
    {LinkState::kNoRoute, "no route"},
}};

constexpr std::size_t kWordsBytesMax = 200;

}  // namespace

Json unreached_event(const std::vector<UnreachedPeer>& peers) {
  Json list = Json::array();
  for (const UnreachedPeer& peer : peers) {
    const auto state =
        std::ranges::find(kStates, peer.state, &decltype(kStates)::value_type::first);
    list.push_back({{"rank", peer.rank.value},
                    {"address", peer.address},
                    {"state", state->second},
                    {"words", peer.words},
                    {"since_s", peer.since_s}});
  }
  return {{"event", kUnreachedEvent}, {"peers", list}};
}

Result<std::vector<UnreachedPeer>> read_unreached_event(const Json& event,
                                                        const std::string& source) {
  MOTLEY_ASSIGN(const std::vector<Json> list, objects_of(event, "peers", source));
  std::vector<UnreachedPeer> peers;
  for (const Json& each : list) {
    UnreachedPeer peer;
    MOTLEY_ASSIGN(const std::int64_t rank, count_of(each, "rank", source));
    MOTLEY_ASSIGN(const std::string address, json_get<std::string>(each, "address", source));
    MOTLEY_ASSIGN(const std::string words, json_get<std::string>(each, "words", source));
    MOTLEY_ASSIGN(const std::string named, json_get<std::string>(each, "state", source));
    MOTLEY_ASSIGN(peer.since_s, json_get<double>(each, "since_s", source));
    const auto state = std::ranges::find(kStates, named, &decltype(kStates)::value_type::second);
    if (!std::in_range<std::int32_t>(rank) || state == kStates.end() ||
        !std::isfinite(peer.since_s) || peer.since_s < 0) {
      return unusable_message(source, "an invalid rank, state or time");
    }
    peer.rank = Rank{static_cast<std::int32_t>(rank)};
    peer.state = state->first;
    peer.address = excerpt(address, kWordsBytesMax);
    peer.words = excerpt(words, kWordsBytesMax);
    peers.push_back(std::move(peer));
  }
  return peers;
}

}  // namespace motley
