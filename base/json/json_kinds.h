// The kinds of values in tables of structs (base/json/json_table.h): each defines the notation, the
// type and the limits of a value, in both directions. The names are in motley::json.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/json.h"
#include "base/json/json_fields.h"
#include "base/result.h"

namespace motley::json {

template <class V>
inline constexpr bool kIsId = false;
template <class Tag>
inline constexpr bool kIsId<Id<Tag>> = true;

// Of every integer type and of ids, whose own limits apply too.
struct Whole {
  std::int64_t min = 0;
  std::int64_t max = std::numeric_limits<std::int64_t>::max();

  template <class V>
  [[nodiscard]] Json write(const V& value) const {
    if constexpr (kIsId<V>) {
      return value.value;
    } else {
      return value;
    }
  }

  template <class V>
  [[nodiscard]] Result<void> read(const JsonFields& fields, V& value) const {
    if constexpr (kIsId<V>) {
      return read(fields, value.value);
    } else {
      constexpr V kMax = std::numeric_limits<V>::max();
      const std::int64_t limit = std::in_range<std::int64_t>(kMax) ? std::int64_t(kMax) : max;
      MOTLEY_ASSIGN(const std::int64_t number, fields.integer(min, std::min(max, limit)));
      value = static_cast<V>(number);
      return {};
    }
  }
};

[[nodiscard]] constexpr Whole whole(std::int64_t min = 0,
                                    std::int64_t max = std::numeric_limits<std::int64_t>::max()) {
  return {min, max};
}

// A value that is its own JSON; get(fields) checks it.
template <class Get>
struct Scalar {
  Get get;

  [[nodiscard]] Json write(const auto& value) const { return value; }

  [[nodiscard]] Result<void> read(const JsonFields& fields, auto& value) const {
    MOTLEY_ASSIGN(value, get(fields));
    return {};
  }
};

template <class Get>
[[nodiscard]] constexpr auto scalar(Get get) {
  return Scalar<Get>{get};
}

// Finite, from 0 to `max`.
[[nodiscard]] constexpr auto quantity(double max = std::numeric_limits<double>::max()) {
  return scalar([max](const JsonFields& fields) { return fields.quantity(max); });
}

[[nodiscard]] constexpr auto flag() {
  return scalar([](const JsonFields& fields) { return fields.boolean(); });
}

// At most kTextMax bytes.
[[nodiscard]] constexpr auto text() {
  return scalar([](const JsonFields& fields) { return fields.text(); });
}

// As is_word.
[[nodiscard]] constexpr auto word(const char* others) {
  return scalar([others](const JsonFields& fields) { return fields.word(others); });
}

[[nodiscard]] constexpr auto one_of(std::span<const char* const> words) {
  return scalar([words](const JsonFields& fields) { return fields.one_of(words); });
}

// Accepts every item.
struct AnyItem {
  template <class E>
  Result<void> operator()(const JsonFields&, const std::vector<E>&, const E&) const {
    return {};
  }
};

// A std::vector with items of one kind. `check(fields, before, item)` judges an item by those
// before it.
template <class Kind, class ItemCheck = AnyItem>
struct List {
  Kind kind;
  std::size_t size_min = 0;
  std::size_t size_max = 0;
  ItemCheck check = {};

  template <class E>
  [[nodiscard]] Json write(const std::vector<E>& list) const {
    Json json = Json::array();
    for (const E& item : list) json.push_back(kind.write(item));
    return json;
  }

  template <class E>
  [[nodiscard]] Result<void> read(const JsonFields& fields, std::vector<E>& list) const {
    MOTLEY_ASSIGN(const std::vector<JsonFields> items, fields.items(size_min, size_max));
    for (const JsonFields& each : items) {
      E item{};
      MOTLEY_TRY(kind.read(each, item));
      MOTLEY_TRY(check(each, list, item));
      list.push_back(std::move(item));
    }
    return {};
  }
};

template <class Kind, class ItemCheck = AnyItem>
[[nodiscard]] constexpr auto list(Kind kind,
                                  std::size_t size_min,
                                  std::size_t size_max,
                                  ItemCheck check = {}) {
  return List<Kind, ItemCheck>{kind, size_min, size_max, check};
}

// An object with values of one kind by name; `check(fields, name)` judges a name.
template <class Kind, class NameCheck>
struct Map {
  Kind kind;
  std::size_t size_max = 0;
  NameCheck check;

  template <class E>
  [[nodiscard]] Json write(const std::map<std::string, E>& map) const {
    Json json = Json::object();
    for (const auto& [name, value] : map) json[name] = kind.write(value);
    return json;
  }

  template <class E>
  [[nodiscard]] Result<void> read(const JsonFields& fields, std::map<std::string, E>& map) const {
    MOTLEY_ASSIGN(const auto members, fields.members(size_max));
    for (const auto& [name, value] : members) {
      MOTLEY_TRY(check(value, name));
      MOTLEY_TRY(kind.read(value, map[name]));
    }
    return {};
  }
};

template <class Kind, class NameCheck>
[[nodiscard]] constexpr auto map(Kind kind, std::size_t size_max, NameCheck check) {
  return Map<Kind, NameCheck>{kind, size_max, check};
}

}  // namespace motley::json
