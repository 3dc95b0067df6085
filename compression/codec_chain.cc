#include "compression/codec_chain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <string_view>
#include <vector>

#include "base/toml.h"
#include "compression/facts/codec_facts.h"
#include "compression/formats/dense_formats.h"
#include "compression/formats/quantised_formats.h"
#include "compression/formats/zstd_codec.h"
#include "compression/sparse/sparse_codec.h"

namespace motley {
namespace {

struct ChainLink {
  std::string_view name;
  std::string_view argument;
  bool has_argument = false;
};

Error not_a_chain(const std::string& chain, const std::string& cause) {
  return {
      ErrorCode::kConfig, fmt::format("not a codec: '{}'", chain), cause,
      fmt::format(
          "use {}, topk(DENSITY) with a density above 0 and up to 1, or zstd(LEVEL) with a level "
          "of {} to {}; or a chain of topk, the format of its values ({}) and zstd, such as "
          "fp16|zstd(1) or topk(0.01)|int8",
          fmt::join(format_names(), ", "), kZstdLevelMin, kZstdLevelMax,
          word_list(topk_format_names(), "or"))};
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

// nullopt for a codec that is no format.
std::optional<FixedSizeFormat> make_format(CodecKind kind) {
  switch (kind) {
    case CodecKind::kNone:
      return fp32_format();
    case CodecKind::kFp16:
      return fp16_format();
    case CodecKind::kBf16:
      return bf16_format();
    case CodecKind::kInt8:
      return int8_format();
    case CodecKind::kInt4:
      return int4_format();
    case CodecKind::kTopk:
    case CodecKind::kZstd:
      break;
  }
  return std::nullopt;
}

bool is_codec(const ChainLink& link, CodecKind kind) {
  return link.name == codec_facts(kind).name;
}

// Parses the whole text as a number; returns `otherwise` if it is none.
template <class Number>
Number parse_number(std::string_view text, Number otherwise) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : otherwise;
}

// The codec of the chain without zstd.
std::unique_ptr<const Codec> make_first_codec(const CodecChain& chain, double density_max) {
  if (chain.density) return make_sparse_codec({*chain.density, density_max, chain.format});
  return make_fixed_size_codec(chain.format);
}

}  // namespace

bool CodecChain::lossy() const {
  return for_gradients_only() || format.name != std::string_view("none");
}

std::optional<Error> removed_codec(const std::string& chain) {
  if (split_chain(chain).front().name != "lowrank") return std::nullopt;
  return Error{ErrorCode::kConfig, fmt::format("not a codec: '{}'", chain),
               "lowrank was removed: it raised the loss by 18 % and more",
               "use int8 or int4, or topk(DENSITY) for gradients, such as topk(0.01)|fp16"};
}

Result<CodecChain> parse_codec_chain(const std::string& text) {
  if (auto removed = removed_codec(text)) return *std::move(removed);
  const std::vector<ChainLink> links = split_chain(text);
  CodecChain chain;
  chain.format = fp32_format();  // a chain without a format writes plain fp32
  std::size_t next = 0;
  if (is_codec(links[next], CodecKind::kTopk)) {
    const auto density = parse_number(links[next].argument, 0.0);
    if (!(0 < density && density <= 1)) return not_a_chain(text, "topk needs a density");
    chain.density = density;
    ++next;
  }
  if (next < links.size()) {
    const CodecFacts* facts = links[next].has_argument ? nullptr : find_codec(links[next].name);
    const auto format = facts == nullptr ? std::nullopt : make_format(facts->kind);
    if (format) {
      if (chain.density.has_value() && facts->topk_refusal != nullptr) {
        return not_a_chain(text, facts->topk_refusal);
      }
      chain.format = *format;
      ++next;
    }
  }
  if (next < links.size() && is_codec(links[next], CodecKind::kZstd)) {
    chain.zstd_level = parse_number(links[next].argument, 0);
    if (chain.zstd_level < kZstdLevelMin || chain.zstd_level > kZstdLevelMax) {
      return not_a_chain(text, "zstd needs a level");
    }
    ++next;
  }
  if (next < links.size()) {
    return not_a_chain(
        text, fmt::format("'{}' is unknown, or not allowed in this place", links[next].name));
  }
  return chain;
}

std::unique_ptr<const Codec> make_chain_codec(const CodecChain& chain, double density_max) {
  auto codec = make_first_codec(chain, density_max);
  return chain.zstd_level == 0 ? std::move(codec)
                               : make_zstd_codec(std::move(codec), chain.zstd_level);
}

}  // namespace motley
