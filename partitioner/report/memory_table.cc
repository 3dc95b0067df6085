// The memory of a plan as a table.
#include <algorithm>
#include <cstdint>

#include "base/text/text_table.h"
#include "partitioner/cost/plan_memory.h"
#include "partitioner/report/explain.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

struct Place {
  const char* name;
  std::int64_t RankMemory::*bytes;
};

constexpr Place kPlaces[] = {
    {"parameters", &RankMemory::values},   {"gradients", &RankMemory::gradients},
    {"moments", &RankMemory::moments},     {"frozen", &RankMemory::constants},
    {"data", &RankMemory::data},           {"micro-batches", &RankMemory::micro_batches},
    {"workspace", &RankMemory::workspace}, {"all-reduces", &RankMemory::sums},
    {"allocator", &RankMemory::allocator}, {"process", &RankMemory::process}};

std::string size_or_dash(std::int64_t bytes) {
  return bytes == 0 ? "-" : bytes_text(static_cast<double>(bytes));
}

}  // namespace

std::string memory_table(const std::vector<RankMemory>& ranks,
                         const std::vector<std::string>& names) {
  std::vector<TextRow> rows = {{""}};
  for (const std::string& name : names) rows.push_back({name});
  for (const Place& place : kPlaces) {
    const auto is_used = [&](const RankMemory& rank) { return rank.*place.bytes != 0; };
    if (std::ranges::none_of(ranks, is_used)) continue;
    rows.front().emplace_back(place.name);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      rows[1 + r].push_back(size_or_dash(ranks[r].*place.bytes));
    }
  }
  return aligned_table(rows, 2) +
         "  frozen: weights and tables that never change; process: programs, libraries, threads\n";
}

}  // namespace motley
