#include "pipeline/schedule/value_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace motley {
namespace {

// The kind's name in messages.
std::string_view name_of(ValueKind kind) {
  if (kind == ValueKind::kActivation) return "activations";
  return kind == ValueKind::kGradient ? "gradients" : "targets";
}

// The missing precondition of a value that does not cross.
std::string_view missing_here(ValueKind kind) {
  switch (kind) {
    case ValueKind::kActivation:
      return "the chunk before it, on the same rank, has not run";
    case ValueKind::kGradient:
      return "the chunk after it, on the same rank, has not run";
    case ValueKind::kTargets:
    case ValueKind::kSamples:
      return "the micro-batch is not loaded";
    case ValueKind::kKept:
      return "its forward did not run";
    case ValueKind::kWeightPart:
      break;
  }
  return "its input part did not run";
}

// The missing precondition of a send.
std::string_view missing_to_send(ValueKind kind) {
  if (kind == ValueKind::kActivation) return "its forward did not run";
  return kind == ValueKind::kGradient ? "its backward did not run"
                                      : "the micro-batch is not loaded";
}

}  // namespace

ValueLedger::ValueLedger(const ActionRules& rules, std::size_t rank_count)
    : rules_(rules),
      progress_(rules.value_count()),
      posted_(rank_count, 0),
      unsent_(rank_count, 0),
      peak_posted_(rank_count, 0),
      peak_unsent_(rank_count, 0) {}

CheckResult ValueLedger::check(const Value& value) const {
  const Progress& progress = of(value);
  if (!rules_.crosses(value)) {
    return progress.made ? CheckResult{} : breaks(std::string(missing_here(value.kind)));
  }
  if (!progress.posted) {
    return breaks(fmt::format("no receive of its {} is posted", name_of(value.kind)));
  }
  return progress.sent ? CheckResult{} : must_wait_for(fmt::format("its {}", name_of(value.kind)));
}

CheckResult ValueLedger::use(const Action& action) {
  const Values needed = rules_.needs(action);
  for (const Value& value : needed) {
    if (CheckResult check_result = check(value); !check_result.ran()) return check_result;
  }
  for (const Value& value : needed) {
    of(value).used = true;
    if (rules_.crosses(value)) --posted_[rules_.user(value).index()];
  }
  return {};
}

bool ValueLedger::is_made(const Action& action) const {
  return std::ranges::any_of(rules_.makes(action),
                             [this](const Value& value) { return of(value).made; });
}

void ValueLedger::make(const Action& action) {
  for (const Value& value : rules_.makes(action)) {
    of(value).made = true;
    if (!rules_.crosses(value)) continue;
    const std::size_t rank = rules_.maker(value).index();
    peak_unsent_[rank] = std::max(peak_unsent_[rank], ++unsent_[rank]);
  }
}

CheckResult ValueLedger::send(const Action& action) {
  const auto value = rules_.sent_by(action);
  if (!value) {
    return breaks(action.kind == ActionKind::kSendGradient ? "chunk 0 sends no gradient"
                                                           : "the last chunk sends no activation");
  }
  if (!rules_.crosses(*value)) return breaks("sender and receiver are the same rank");
  Progress& progress = of(*value);
  if (!progress.made) return breaks(std::string(missing_to_send(value->kind)));
  if (progress.sent) return breaks("sent twice");
  progress.sent = true;
  --unsent_[rules_.maker(*value).index()];
  return {};
}

CheckResult ValueLedger::post(const Action& action) {
  const auto value = rules_.posted_by(action);
  if (!value) {
    return breaks(action.kind == ActionKind::kRecvGradient ? "the last chunk receives no gradient"
                                                           : "chunk 0 receives no activation");
  }
  if (!rules_.crosses(*value)) return breaks("sender and receiver are the same rank");
  Progress& progress = of(*value);
  if (progress.posted) return breaks("posted twice");
  progress.posted = true;
  const std::size_t rank = rules_.user(*value).index();
  peak_posted_[rank] = std::max(peak_posted_[rank], ++posted_[rank]);
  return {};
}

std::optional<std::string> ValueLedger::left_over() const {
  for (const ValueKind kind : {ValueKind::kActivation, ValueKind::kGradient, ValueKind::kTargets}) {
    for (ChunkId chunk{0}; chunk <= rules_.last_chunk(); ++chunk.value) {
      for (MicroId micro{0}; micro.index() < rules_.micro_batches(); ++micro.value) {
        const Progress& progress = of({kind, chunk, micro});
        // A value that stays on its rank is neither sent nor posted; only pairs of both are ever
        // used.
        if (progress.used || (!progress.sent && !progress.posted)) continue;
        return fmt::format("the {} for chunk {}, micro-batch {} are {} and never consumed",
                           name_of(kind), chunk.value, micro.value,
                           progress.sent ? "sent" : "posted");
      }
    }
  }
  return std::nullopt;
}

}  // namespace motley
