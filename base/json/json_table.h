// Structs as JSON objects. A table lists the members of a struct once, in the order in which they
// are written; both directions, the checks and the texts of errors follow from it:
//
//   constexpr auto kRouteTable = json::table<Route>(
//       json::required("to", &Route::to, json::text()),
//       json::optional("hops", &Route::hops, json::whole(1, kHopsMax)));
//
//   Json json = kRouteTable.write(route);
//   Result<Route> route = kRouteTable.read(fields);
//
// A kind (base/json/json_kinds.h) has write(value), which returns the value's JSON, and
// read(fields, value), which reads `fields` into `value`. A table is a kind too, for a nested
// struct. A function of the struct read so far that returns a kind may take the place of one whose
// limits depend on it.
//
// The names are in motley::json.
#pragma once

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/json.h"
#include "base/json/json_fields.h"
#include "base/json/json_kinds.h"
#include "base/result.h"

namespace motley::json {

template <class V>
inline constexpr bool kIsOptional = false;
template <class V>
inline constexpr bool kIsOptional<std::optional<V>> = true;

// kOptional: a value like that of a new struct is not written, and an absent one keeps it.
// kDefaulted: always written, may be absent.
enum class Presence { kRequired, kOptional, kDefaulted };

template <Presence kPresence, class T, class V, class Kind>
struct Member {
  const char* key;
  V T::*member;
  Kind kind;

  [[nodiscard]] bool is_in(const JsonFields& object) const { return object.has(key); }

  void write(const T& all, Json& object) const {
    const V& value = all.*member;
    if constexpr (kIsOptional<V>) {
      if (value) object[key] = kind_for(all).write(*value);
    } else if constexpr (kPresence == Presence::kOptional) {
      if (value != T().*member) object[key] = kind_for(all).write(value);
    } else {
      object[key] = kind_for(all).write(value);
    }
  }

  [[nodiscard]] Result<void> read(const JsonFields& object, T& all) const {
    if constexpr (kPresence != Presence::kRequired) {
      if (!object.has(key)) return {};
    }
    if constexpr (kIsOptional<V>) {
      return read_value(object, kind_for(all), (all.*member).emplace());
    } else {
      return read_value(object, kind_for(all), all.*member);
    }
  }

 private:
  [[nodiscard]] decltype(auto) kind_for(const T& all) const {
    if constexpr (std::is_invocable_v<const Kind&, const T&>) {
      return kind(all);
    } else {
      return (kind);
    }
  }

  [[nodiscard]] Result<void> read_value(const JsonFields& object,
                                        const auto& its_kind,
                                        auto& value) const {
    MOTLEY_ASSIGN(const JsonFields fields, object.member(key));
    return its_kind.read(fields, value);
  }
};

template <class T, class V, class Kind>
[[nodiscard]] constexpr auto required(const char* key, V T::*member, Kind kind) {
  return Member<Presence::kRequired, T, V, Kind>{key, member, kind};
}

// Not written if it is as in a new struct; a std::optional: if it is empty.
template <class T, class V, class Kind>
[[nodiscard]] constexpr auto optional(const char* key, V T::*member, Kind kind) {
  return Member<Presence::kOptional, T, V, Kind>{key, member, kind};
}

// Always written; absent in texts of earlier versions.
template <class T, class V, class Kind>
[[nodiscard]] constexpr auto defaulted(const char* key, V T::*member, Kind kind) {
  return Member<Presence::kDefaulted, T, V, Kind>{key, member, kind};
}

// The members of a member, in the same object. A std::optional: if the object has any of them.
template <class T, class V, class Table>
struct Part {
  V T::*member;
  Table table;

  [[nodiscard]] bool is_in(const JsonFields& object) const { return table.is_in(object); }

  void write(const T& all, Json& object) const {
    if constexpr (kIsOptional<V>) {
      if (all.*member) table.write_into(*(all.*member), object);
    } else {
      table.write_into(all.*member, object);
    }
  }

  [[nodiscard]] Result<void> read(const JsonFields& object, T& all) const {
    if constexpr (kIsOptional<V>) {
      if (!is_in(object)) return {};
      return table.read(object, (all.*member).emplace());
    } else {
      return table.read(object, all.*member);
    }
  }
};

template <class T, class V, class Table>
[[nodiscard]] constexpr auto part(V T::*member, Table table) {
  return Part<T, V, Table>{member, table};
}

// What an entry has that is not a member of the struct.
struct NoMember {
  [[nodiscard]] bool is_in(const JsonFields&) const { return false; }

  void write(const auto&, Json&) const {}

  [[nodiscard]] Result<void> read(const JsonFields&, auto&) const { return {}; }
};

template <class Function>
struct Written : NoMember {
  const char* key;
  Function function;

  constexpr Written(const char* a_key, Function a_function) : key(a_key), function(a_function) {}

  void write(const auto& all, Json& object) const { object[key] = function(all); }
};

// A function of the struct, for other readers. Not read.
template <class Function>
[[nodiscard]] constexpr auto written(const char* key, Function function) {
  return Written<Function>(key, function);
}

template <class Function>
struct Check : NoMember {
  Function function;

  explicit constexpr Check(Function a_function) : function(a_function) {}

  [[nodiscard]] Result<void> read(const JsonFields& object, const auto& all) const {
    return function(object, all);
  }
};

// `function(object, all)` judges what has been read so far.
template <class Function>
[[nodiscard]] constexpr auto check(Function function) {
  return Check<Function>(function);
}

struct Header : NoMember {
  const char* format;
  int version;

  constexpr Header(const char* a_format, int a_version) : format(a_format), version(a_version) {}

  void write(const auto&, Json& object) const {
    object["format"] = format;
    object["version"] = version;
  }

  [[nodiscard]] Result<void> read(const JsonFields& object, const auto&) const {
    return object.header(format, version);
  }
};

// The members "format" and "version" of a file.
[[nodiscard]] constexpr Header header(const char* format, int version) {
  return {format, version};
}

template <class T, class... Entries>
class Table {
 public:
  explicit constexpr Table(Entries... entries) : entries_(entries...) {}

  [[nodiscard]] Json write(const T& value) const {
    Json object = Json::object();
    write_into(value, object);
    return object;
  }

  // Adds to `object`.
  void write_into(const T& value, Json& object) const {
    std::apply([&](const Entries&... each) { (each.write(value, object), ...); }, entries_);
  }

  // The error is the first in the order of the entries.
  [[nodiscard]] Result<T> read(const JsonFields& object) const {
    T value;
    MOTLEY_TRY(read(object, value));
    return value;
  }

  [[nodiscard]] Result<void> read(const JsonFields& object, T& value) const {
    Result<void> outcome;
    std::apply(
        [&](const Entries&... each) { (void)((outcome = each.read(object, value)).ok() && ...); },
        entries_);
    return outcome;
  }

  // Whether it has any of the members.
  [[nodiscard]] bool is_in(const JsonFields& object) const {
    return std::apply([&](const Entries&... each) { return (each.is_in(object) || ...); },
                      entries_);
  }

 private:
  std::tuple<Entries...> entries_;
};

template <class T, class... Entries>
[[nodiscard]] constexpr auto table(Entries... entries) {
  return Table<T, Entries...>(entries...);
}

}  // namespace motley::json
