#include "compression/facts/codec_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/toml.h"

namespace motley {
namespace {

constexpr double kGain = 0.03;
constexpr double kGainForLoss = 0.15;  // of a codec that raises the loss

std::vector<const char*> names_where(bool (*is_wanted)(const CodecFacts&)) {
  std::vector<const char*> names;
  for (const CodecFacts& each : codecs()) {
    if (is_wanted(each)) names.push_back(each.name);
  }
  return names;
}

}  // namespace

std::span<const CodecFacts> codecs() {
  static const std::vector<CodecFacts> kCodecs = {
      {.kind = CodecKind::kNone,
       .name = "none",
       .auto_gain_activations = 0,
       .auto_gain_gradients = 0},
      {.kind = CodecKind::kFp16,
       .name = "fp16",
       .is_measured = true,
       .is_advised = true,
       .auto_gain_activations = 0,
       .auto_gain_gradients = 0,
       .bench_chains = {"fp16"},
       .allreduce_chains = {"fp16"}},
      {.kind = CodecKind::kBf16,
       .name = "bf16",
       .is_measured = true,
       .is_advised = true,
       .bench_chains = {"bf16"}},
      {.kind = CodecKind::kInt8,
       .name = "int8",
       .is_measured = true,
       .auto_gain_activations = kGain,
       .auto_gain_gradients = kGain,
       .bench_chains = {"int8"},
       .allreduce_chains = {"int8"}},
      // In an all-reduce, error feedback compensates for its error; activations have none.
      {.kind = CodecKind::kInt4,
       .name = "int4",
       .topk_refusal = "int4 rotates whole blocks, for which topk keeps too few values",
       .is_measured = true,
       .auto_gain_activations = kGainForLoss,
       .auto_gain_gradients = kGain,
       .auto_needs_feedback = true,
       .bench_chains = {"int4"},
       .allreduce_chains = {"int4"}},
      {.kind = CodecKind::kTopk,
       .name = "topk",
       .place = ChainPlace::kSelection,
       .bench_chains = {"topk(0.01)", "topk(0.01)|fp16"},
       .allreduce_chains = {"topk(0.01)|fp16"}},
      {.kind = CodecKind::kZstd, .name = "zstd", .place = ChainPlace::kCompression},
  };
  return kCodecs;
}

const CodecFacts& codec_facts(CodecKind kind) {
  const auto found = std::ranges::find(codecs(), kind, &CodecFacts::kind);
  MOTLEY_CHECK(found != codecs().end(), "no entry of codec {}", static_cast<int>(kind));
  return *found;
}

const CodecFacts* find_codec(std::string_view name) {
  const auto found = std::ranges::find(
      codecs(), name, [](const CodecFacts& each) { return std::string_view(each.name); });
  return found == codecs().end() ? nullptr : &*found;
}

std::vector<const char*> format_names() {
  return names_where([](const CodecFacts& each) { return each.place == ChainPlace::kFormat; });
}

std::vector<const char*> topk_format_names() {
  return names_where([](const CodecFacts& each) {
    return each.place == ChainPlace::kFormat && each.topk_refusal == nullptr &&
           each.kind != CodecKind::kNone;
  });
}

std::vector<AutoCodecs> auto_codecs(CodecUse use, bool has_error_feedback) {
  std::map<double, AutoCodecs> by_gain;
  for (const CodecFacts& each : codecs()) {
    const bool is_for_gradients = use == CodecUse::kGradients;
    const auto gain = is_for_gradients ? each.auto_gain_gradients : each.auto_gain_activations;
    if (!gain || (is_for_gradients && each.auto_needs_feedback && !has_error_feedback)) continue;
    AutoCodecs& group = by_gain[*gain];
    group.least_gain = *gain;
    group.names.push_back(each.name);
  }
  std::vector<AutoCodecs> groups;
  for (auto& [gain, group] : by_gain) groups.push_back(std::move(group));
  return groups;
}

std::string auto_codecs_text(CodecUse use) {
  const std::vector<AutoCodecs> groups = auto_codecs(use, true);
  std::string text =
      fmt::format("{} or, where it shortens the step", fmt::join(groups.front().names, ", "));
  for (std::size_t i = 1; i < groups.size(); ++i) {
    text += fmt::format("{} by {:.0f} %, {}", i == 1 ? "" : ",", 100 * groups[i].least_gain,
                        word_list(groups[i].names, "or"));
  }
  return text;
}

}  // namespace motley
