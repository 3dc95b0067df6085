// Reads the graphs of a package from JSON. Private to models/package.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json_fields.h"
#include "base/result.h"
#include "models/package/graph.h"

namespace motley {

enum class GraphPart { kForward, kInputPart, kWeightPart, kEvaluate, kScore };

inline constexpr GraphPart kGraphParts[] = {GraphPart::kForward, GraphPart::kInputPart,
                                            GraphPart::kWeightPart, GraphPart::kEvaluate,
                                            GraphPart::kScore};

// "forward", "input_part", …
[[nodiscard]] const char* part_name(GraphPart part);

// The role that is written ROLE:INDEX; nullopt if the text is malformed.
[[nodiscard]] std::optional<RoleIndex> parse_role(std::string_view text);

// Whether a part may take a role, or return it, in the last layer or in another.
[[nodiscard]] bool may_take(GraphPart part, Role role, bool is_last);
[[nodiscard]] bool may_give(GraphPart part, Role role, bool is_last);

// Reads and checks a whole graph: operations are allowed, values are defined before they are used,
// each role is allowed and taken at most once, and returned ones are numbered 0, 1, …. `layer`
// names the layer in errors.
[[nodiscard]] Result<Graph> read_graph(const JsonFields& fields,
                                       GraphPart part,
                                       bool is_last,
                                       const std::string& layer);

// kCorrupt unless the object has exactly these keys; `optional` ones may be missing.
[[nodiscard]] Result<void> check_keys(const JsonFields& fields,
                                      std::initializer_list<std::string_view> keys,
                                      std::initializer_list<std::string_view> optional = {});

// Why a layer with this graph computes with a constant of a narrow type or hands one on, or "".
// What is narrow may be converted by aten::_to_copy to another type, and else only be taken by
// operations of python/motley/narrow_operations.txt, which make narrow values. `narrow`:
// [constant] whether the layer's is; one of them at least. (narrow_values.cc)
[[nodiscard]] std::string narrow_fault(const LayerGraph& graph, const std::vector<bool>& narrow);

}  // namespace motley
