#include "watch/view/history.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/json.h"
#include "watch/view/json_number.h"

namespace motley {
namespace {

using Row = History::Row;

// A NaN loss is neither a minimum nor a maximum.
bool is_less(const Row& a, const Row& b) {
  if (std::isnan(a.loss)) return false;
  return std::isnan(b.loss) || a.loss < b.loss;
}

bool is_greater(const Row& a, const Row& b) {
  if (std::isnan(a.loss)) return false;
  return std::isnan(b.loss) || a.loss > b.loss;
}

void cut_from(std::vector<Row>& rows, std::int64_t step) {
  while (!rows.empty() && rows.back().step >= step) rows.pop_back();
}

void add_to(std::vector<Row>& rows, const Row& row) {
  if (rows.size() == History::kRowsMax) rows = thinned(rows, History::kRowsMax / 2);
  rows.push_back(row);
}

std::vector<Row> rows_after(const std::vector<Row>& rows, std::int64_t step) {
  const auto first = std::ranges::upper_bound(rows, step, {}, &Row::step);
  return {first, rows.end()};
}

template <class Field>
Json column(const std::vector<Row>& rows, Field Row::*field) {
  Json values = Json::array();
  for (const Row& row : rows) values.push_back(number_or_null(row.*field));
  return values;
}

}  // namespace

void History::add(const StepMetrics& metrics) {
  cut_from(rows_, metrics.step);
  cut_from(evals_, metrics.step);
  add_to(rows_, {metrics.step, metrics.outcome.loss, metrics.step_s, metrics.tokens_per_s(),
                 metrics.bubble, metrics.outcome.lr});
  if (metrics.eval_loss) add_to(evals_, {.step = metrics.step, .loss = *metrics.eval_loss});
}

void History::clear() {
  rows_.clear();
  evals_.clear();
}

Json History::columns(std::size_t points, std::int64_t after) const {
  const std::vector<Row> rows = thinned(rows_after(rows_, after), points);
  Json steps = Json::array();
  for (const Row& row : rows) steps.push_back(row.step);
  Json evals = Json::array();
  for (const Row& row : thinned(rows_after(evals_, after), points)) {
    evals.push_back(Json::array({row.step, number_or_null(row.loss)}));
  }
  return {{"step", std::move(steps)},
          {"loss", column(rows, &Row::loss)},
          {"step_s", column(rows, &Row::step_s)},
          {"tokens_per_s", column(rows, &Row::tokens_per_s)},
          {"bubble", column(rows, &Row::bubble)},
          {"lr", column(rows, &Row::lr)},
          {"eval", std::move(evals)}};
}

std::vector<Row> thinned(const std::vector<Row>& rows, std::size_t points) {
  MOTLEY_CHECK(points >= History::kPointsMin, "{} points", points);
  if (rows.size() <= points) return rows;
  std::vector<Row> kept = {rows.front()};
  const std::size_t buckets = (points - 2) / 2;
  const std::size_t inner = rows.size() - 2;
  for (std::size_t b = 0; b < buckets; ++b) {
    const auto begin = rows.begin() + 1 + static_cast<std::ptrdiff_t>(inner * b / buckets);
    const auto end = rows.begin() + 1 + static_cast<std::ptrdiff_t>(inner * (b + 1) / buckets);
    const auto least = std::min_element(begin, end, is_less);
    const auto greatest = std::min_element(begin, end, is_greater);
    kept.push_back(*std::min(least, greatest));
    if (least != greatest) kept.push_back(*std::max(least, greatest));
  }
  kept.push_back(rows.back());
  return kept;
}

}  // namespace motley
