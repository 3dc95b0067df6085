// The codecs of chains and their properties: one entry each. Without their implementations, so that
// the configuration can read the table too. Names stand only here.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace motley {

enum class CodecKind { kNone, kFp16, kBf16, kInt8, kInt4, kTopk, kZstd };

// A chain's links in order: which values, their format, the compression of the bytes.
enum class ChainPlace { kSelection, kFormat, kCompression };

// The messages that a codec is for: activations and their gradients between stages, or gradients
// in an all-reduce between machines.
enum class CodecUse { kActivations, kGradients };

struct CodecFacts {
  CodecKind kind = CodecKind::kNone;
  const char* name = "";  // in a chain, before its argument
  ChainPlace place = ChainPlace::kFormat;
  const char* topk_refusal = nullptr;  // why topk cannot store its values in this format

  // Formats: whether every profile contains it. Otherwise only if the configuration names it; plain
  // fp32 always.
  bool is_measured = false;
  // Whether `motley plan --advise` tries it instead of plain fp32.
  bool is_advised = false;

  // The share by which it must shorten the step for `auto` to choose it; 0: `auto` compares it with
  // others like any choice; nullopt: never (docs/compression.md describes the effects on learning).
  std::optional<double> auto_gain_activations = {};
  std::optional<double> auto_gain_gradients = {};
  bool auto_needs_feedback = false;  // in all-reduces: whether only with error feedback

  // The chains with it that `motley bench codec` and `motley bench allreduce` measure by default.
  std::vector<const char*> bench_chains = {};
  std::vector<const char*> allreduce_chains = {};
};

// In the order of the documentation.
[[nodiscard]] std::span<const CodecFacts> codecs();
[[nodiscard]] const CodecFacts& codec_facts(CodecKind kind);

// nullptr if there is no codec of that name.
[[nodiscard]] const CodecFacts* find_codec(std::string_view name);

// The names of all formats, and of those in which topk can store its values (without plain fp32).
[[nodiscard]] std::vector<const char*> format_names();
[[nodiscard]] std::vector<const char*> topk_format_names();

// Codecs that `auto` may choose if they shorten the step by least_gain.
struct AutoCodecs {
  double least_gain = 0;
  std::vector<const char*> names;
};

// By ascending gain; the first group has gain 0.
[[nodiscard]] std::vector<AutoCodecs> auto_codecs(CodecUse use, bool has_error_feedback);

// The same as part of a sentence: "none, fp16 or, where it shortens the step by 3 %, int8".
[[nodiscard]] std::string auto_codecs_text(CodecUse use);

}  // namespace motley
