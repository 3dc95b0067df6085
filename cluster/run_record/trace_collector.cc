#include "cluster/run_record/trace_collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/json.h"
#include "protocol/trace_message.h"
#include "record/trace_file.h"

namespace motley {

TraceCollector::TraceCollector(std::vector<std::string> rank_names, std::size_t spans_max)
    : names_(std::move(rank_names)), spans_max_(spans_max), missing_spans_(names_.size()) {}

void TraceCollector::add(Rank sender, const Json& event) {
  MOTLEY_CHECK(sender.value >= 0 && sender.index() < names_.size(), "rank {}", sender.value);
  MissingSpans& lack = missing_spans_[sender.index()];
  lack.is_known = true;
  auto piece = trace_piece_from_json(event, sender);
  if (!piece.ok()) {
    lack.unreadable = fmt::format("{}: {}", piece.error().what, piece.error().cause);
    return;
  }
  const std::size_t taken = std::min(piece->spans.size(), spans_max_ - lack.kept);
  std::move(piece->spans.begin(), piece->spans.begin() + static_cast<std::ptrdiff_t>(taken),
            std::back_inserter(spans_));
  lack.kept += taken;
  lack.left_out +=
      std::max<std::int64_t>(piece->left_out, 0) + std::ssize(piece->spans) - std::int64_t(taken);
}

bool TraceCollector::has_all_ranks() const {
  return std::ranges::all_of(missing_spans_, &MissingSpans::is_known);
}

std::vector<std::string> TraceCollector::notes() const {
  std::vector<std::string> notes;
  for (std::size_t rank = 0; rank < names_.size(); ++rank) {
    const MissingSpans& lack = missing_spans_[rank];
    if (lack.left_out > 0) {
      notes.push_back(
          fmt::format("{} spans of rank {} ({}) are left out after the first {}; lower "
                      "run.trace_steps for complete steps",
                      lack.left_out, rank, names_[rank], lack.kept));
    }
    if (!lack.unreadable.empty()) {
      notes.push_back(fmt::format("a part of rank {} ({}) cannot be read: {}", rank, names_[rank],
                                  lack.unreadable));
    }
  }
  return notes;
}

std::string TraceCollector::text() const {
  return trace_text(spans_, names_, notes());
}

}  // namespace motley
