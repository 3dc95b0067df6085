// motley ckpt diff.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>

#include "base/json.h"
#include "base/text/text_table.h"
#include "checkpoint/convert/difference.h"
#include "cli/ckpt/commands.h"
#include "cli/ckpt/weights_inputs.h"
#include "cli/inputs.h"
#include "cli/work_progress.h"

namespace motley {
namespace {

constexpr std::int64_t kTopDefault = 20;

// JSON cannot represent infinity.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json difference_json(const Difference& difference,
                     const OpenedWeights& a,
                     const OpenedWeights& b,
                     std::size_t top) {
  Json tensors = Json::array();
  for (const TensorDifference& each : difference.tensors) {
    if (tensors.size() == top) break;
    tensors.push_back({{"name", each.name},
                       {"shape", each.shape},
                       {"dtype_a", each.dtype_a},
                       {"dtype_b", each.dtype_b},
                       {"values", each.values},
                       {"differing", each.differing},
                       {"largest", number(each.largest)},
                       {"relative", number(each.relative)}});
  }
  Json mismatched = Json::array();
  for (const MismatchedTensor& each : difference.mismatched) {
    mismatched.push_back({{"name", each.name},
                          {"a", each.in_a.empty() ? Json() : Json(each.in_a)},
                          {"b", each.in_b.empty() ? Json() : Json(each.in_b)}});
  }
  return {{"a", a.path.string()},
          {"b", b.path.string()},
          {"equal", is_equal_to_the_bit(difference)},
          {"compared", difference.tensors.size()},
          {"tensors", std::move(tensors)},
          {"not_compared", std::move(mismatched)}};
}

std::string types_text(const TensorDifference& each) {
  return each.dtype_a == each.dtype_b ? each.dtype_a
                                      : fmt::format("{} / {}", each.dtype_a, each.dtype_b);
}

std::string summary_of(const Difference& difference) {
  if (is_equal_to_the_bit(difference)) {
    return fmt::format("bitwise equal: {} tensors\n", difference.tensors.size());
  }
  std::size_t differing = 0;
  double largest = 0;
  for (const TensorDifference& each : difference.tensors) {
    differing += each.differing > 0 ? 1 : 0;
    largest = std::max(largest, each.largest);
  }
  std::string text = differing == 0 ? fmt::format("equal values in all {} common tensors",
                                                  difference.tensors.size())
                                    : fmt::format("{} of {} tensors differ, by at most {:.3g}",
                                                  differing, difference.tensors.size(), largest);
  if (!difference.mismatched.empty())
    text += fmt::format("; {} not compared", difference.mismatched.size());
  return text + "\n";
}

std::string difference_text(const Difference& difference, std::size_t top) {
  std::string text;
  std::vector<TextRow> rows = {{"relative", "largest", "differing", "type", "shape", "tensor"}};
  for (const TensorDifference& each : difference.tensors) {
    if (each.differing == 0 && each.dtype_a == each.dtype_b) continue;
    if (rows.size() > top) break;
    rows.push_back({fmt::format("{:.3e}", each.relative), fmt::format("{:.3e}", each.largest),
                    fmt::format("{} of {}", each.differing, each.values), types_text(each),
                    fmt::format("[{}]", fmt::join(each.shape, ", ")), each.name});
  }
  if (rows.size() > 1) text += aligned_table(rows);
  const std::size_t listed = std::min(difference.mismatched.size(), top);
  for (const MismatchedTensor& each : std::span(difference.mismatched).first(listed)) {
    const char* const absent = "absent";
    text +=
        fmt::format("not compared: {}, in A {}, in B {}\n", each.name,
                    each.in_a.empty() ? absent : each.in_a, each.in_b.empty() ? absent : each.in_b);
  }
  if (listed > 0 && listed < difference.mismatched.size()) {
    text += fmt::format("not compared: {} more\n", difference.mismatched.size() - listed);
  }
  return text + summary_of(difference);
}

Result<void> run_diff(const Arguments& arguments) {
  std::int64_t top = kTopDefault;
  if (arguments.has("top")) {
    MOTLEY_ASSIGN(top, integer_value(arguments, "top", 0, 1'000'000));
  }
  const bool with_optimizer = arguments.has("optimizer");
  WorkProgress watch;
  MOTLEY_ASSIGN(const OpenedWeights a, open_weights(arguments.operand(0), with_optimizer, watch));
  MOTLEY_ASSIGN(const OpenedWeights b, open_weights(arguments.operand(1), with_optimizer, watch));
  MOTLEY_ASSIGN(const Difference difference,
                difference_of(a.reader, b.reader, with_optimizer, watch));
  watch.clear();
  const auto shown = static_cast<std::size_t>(top);
  std::fputs(arguments.has("json")
                 ? (difference_json(difference, a, b, shown).dump(2) + "\n").c_str()
                 : difference_text(difference, shown).c_str(),
             stdout);
  return {};
}

}  // namespace

Command ckpt_diff_command() {
  CommandSpec spec{
      "ckpt diff",
      "compare the tensors of two checkpoints or models",
      {"A", "B"},
      {{"optimizer", "", "also compare the optimizer state"},
       {"top", "N", "list the N tensors that differ most, and N not compared (default 20)"},
       json_option()},
      "A and B are run folders (their newest checkpoints are read), checkpoints, or folders or\n"
      "files of Hugging Face; the prefixes \"transformer.\" and \"model.\" are ignored. Values "
      "are\n"
      "compared as fp32, norms computed in double. For each tensor\n"
      "  relative   the L2 norm of A - B over the L2 norm of A\n"
      "  largest    the largest |a - b|\n"
      "  differing  number of values with different bits\n"
      "sorted by the first. Tensors of only one, or of different shapes, are listed, not "
      "compared.\n"
      "The exit status is 0 whether or not they differ; scripts can read \"equal\" of --json,\n"
      "which is true if all tensors have the same types and bits (null is an infinity).\n\n"
      "Examples\n"
      "  motley ckpt diff runs/gpt/checkpoints/step-000100 runs/gpt\n"
      "  motley ckpt diff runs/gpt gpt2-export --json | jq .equal\n"};
  return {spec, run_diff};
}

}  // namespace motley
