#include "compression/codec.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <vector>

#include "compression/dense_codecs.h"
#include "compression/quantised_codecs.h"
#include "compression/zstd_codec.h"

namespace motley {
namespace {

struct ChainLink {
  std::string_view name;
  std::string_view argument;
  bool has_argument = false;
};

Error not_a_chain(const std::string& chain, const std::string& cause) {
  return {ErrorCode::kConfig, fmt::format("not a codec: '{}'", chain), cause,
          fmt::format("use none, fp16, bf16, int8, int4 or zstd(LEVEL) with a level of {} to {}, "
                      "or a chain that ends in zstd, such as fp16|zstd(1)",
                      kZstdLevelMin, kZstdLevelMax)};
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// "name" or "name(argument)".
ChainLink parse_link(std::string_view text) {
  text = trimmed(text);
  const auto open = text.find('(');
  if (open == std::string_view::npos || text.back() != ')') return {text, {}, false};
  return {text.substr(0, open), text.substr(open + 1, text.size() - open - 2), true};
}

std::vector<ChainLink> split_chain(std::string_view chain) {
  std::vector<ChainLink> links;
  for (;;) {
    const auto bar = chain.find('|');
    links.push_back(parse_link(chain.substr(0, bar)));
    if (bar == std::string_view::npos) return links;
    chain.remove_prefix(bar + 1);
  }
}

std::unique_ptr<const Codec> make_first(const ChainLink& link) {
  if (link.has_argument) return nullptr;
  if (link.name == "none") return make_fp32_codec();
  if (link.name == "fp16") return make_fp16_codec();
  if (link.name == "bf16") return make_bf16_codec();
  if (link.name == "int8") return make_int8_codec();
  if (link.name == "int4") return make_int4_codec();
  return nullptr;
}

// 0 when `text` is not a level.
int parse_level(std::string_view text) {
  int level = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), level);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && level >= kZstdLevelMin && level <= kZstdLevelMax ? level : 0;
}

}  // namespace

Result<std::unique_ptr<const Codec>> make_codec(const std::string& chain) {
  const std::vector<ChainLink> links = split_chain(chain);
  std::size_t next = 0;
  std::unique_ptr<const Codec> codec = make_first(links[next]);
  if (codec != nullptr) {
    ++next;
  } else {
    codec = make_fp32_codec();  // a chain that starts with zstd compresses plain fp32
  }
  if (next < links.size() && links[next].name == "zstd") {
    const int level = parse_level(links[next].argument);
    if (level == 0) return not_a_chain(chain, "zstd needs a level");
    codec = make_zstd_codec(std::move(codec), level);
    ++next;
  }
  if (next < links.size()) {
    return not_a_chain(
        chain, fmt::format("'{}' is unknown, or does not belong in this place", links[next].name));
  }
  return codec;
}

}  // namespace motley
