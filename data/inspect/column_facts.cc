#include "data/inspect/column_facts.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

namespace motley {
namespace {

constexpr std::size_t kClassesMax = 65536;

// Collects the values of a column.
class FactsReader {
 public:
  explicit FactsReader(ColumnFacts& facts, bool counts_classes)
      : facts_(facts), counts_classes_(counts_classes) {
    facts_.lowest = std::numeric_limits<double>::infinity();
    facts_.highest = -std::numeric_limits<double>::infinity();
  }

  void add(std::span<const std::byte> sample) {
    const std::size_t elements = sample.size() / element_bytes(facts_.type);
    for (std::size_t k = 0; k < elements; ++k) {
      facts_.type == ElementType::kFloat32 ? add_float(sample, k)
                                           : add_integer(integer_at(facts_.type, sample, k));
    }
    facts_.values += elements;
  }

 private:
  void add_float(std::span<const std::byte> sample, std::size_t element) {
    float value = 0;
    std::memcpy(&value, sample.data() + element * sizeof value, sizeof value);
    if (!std::isfinite(value)) {
      ++facts_.not_finite;
    } else {
      extend_range(value);
    }
  }

  void add_integer(std::int64_t value) {
    extend_range(static_cast<double>(value));
    if (!counts_classes_) return;
    ++facts_.classes[value];
    if (facts_.classes.size() <= kClassesMax) return;
    facts_.classes.clear();
    counts_classes_ = false;
  }

  void extend_range(double value) {
    facts_.lowest = std::min(facts_.lowest, value);
    facts_.highest = std::max(facts_.highest, value);
  }

  ColumnFacts& facts_;
  bool counts_classes_;
};

}  // namespace

ColumnFacts facts_of(const Column& column, std::string role, ProgressCounter* work) {
  std::optional<ProgressCounter::Task> reading;
  if (work != nullptr) {
    reading.emplace(*work, "reading the data", column.size() * column.sample_bytes());
  }
  ColumnFacts facts;
  facts.role = std::move(role);
  facts.type = column.type();
  facts.shape.assign(column.shape().begin(), column.shape().end());
  facts.samples = column.size();
  const bool has_one_value = column.sample_bytes() == element_bytes(column.type());
  FactsReader reader(facts, has_one_value && column.type() != ElementType::kFloat32);
  for (std::uint64_t sample = 0; sample < column.size(); ++sample) {
    reader.add(column.at(sample));
    if (work != nullptr) work->add_bytes(column.sample_bytes());
  }
  return facts;
}

}  // namespace motley
