#include "models/package/graph_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "base/json.h"
#include "models/package/argument_reader.h"
#include "models/package/operation_rules.h"
#include "models/package/operations.h"
#include "models/package/package_limits.h"

namespace motley {
namespace {

using enum Role;

bool ends_in_loss(GraphPart part) {
  return part == GraphPart::kForward || part == GraphPart::kEvaluate;
}

// Reads one graph; the error of a node or a role names its position.
class GraphReader {
 public:
  GraphReader(GraphPart part, bool is_last, const std::string& layer)
      : part_(part), is_last_(is_last), layer_(layer) {}

  Result<Graph> read(const JsonFields& fields) {
    MOTLEY_TRY(check_keys(fields, {"takes", "nodes", "gives"}));
    MOTLEY_TRY(read_takes(fields));
    MOTLEY_ASSIGN(const auto nodes, fields.items("nodes", 0, kGraphNodesMax));
    graph_.nodes.reserve(nodes.size());
    for (const JsonFields& node : nodes) MOTLEY_TRY(read_node(node));
    MOTLEY_TRY(read_gives(fields));
    find_deaths();
    return std::move(graph_);
  }

 private:
  Result<void> read_takes(const JsonFields& fields) {
    MOTLEY_ASSIGN(const JsonFields takes, fields.member("takes"));
    const Json& json = takes.value();
    if (!json.is_array() || json.size() > kGraphValuesMax) return takes.bad("a list was expected");
    std::set<std::pair<Role, int>> taken;
    for (const Json& item : json) {
      MOTLEY_ASSIGN(const RoleIndex role, role_of(takes, item));
      if (!may_take(part_, role.role, is_last_)) return takes.bad(misplaced(role));
      if (!taken.emplace(role.role, role.index).second) return takes.bad(twice(role));
      graph_.takes.push_back(role);
    }
    graph_.values = static_cast<int>(graph_.takes.size());
    return {};
  }

  Result<void> read_node(const JsonFields& fields) {
    MOTLEY_TRY(check_keys(fields, {"op", "args", "kwargs", "results"}));
    Node node;
    MOTLEY_ASSIGN(node.operation, read_operation(fields));
    MOTLEY_TRY(read_args(fields, node));
    MOTLEY_TRY(read_kwargs(fields, node));
    MOTLEY_ASSIGN(const std::int64_t results,
                  fields.integer("results", 1, kGraphValuesMax - graph_.values));
    node.first_result = {graph_.values};
    node.results = static_cast<int>(results);
    graph_.values += node.results;
    if (const std::string fault = broken_rule(node); !fault.empty()) {
      return fields.bad(fmt::format("layer '{}': {}: {}", excerpt(layer_), node.operation, fault));
    }
    graph_.nodes.push_back(std::move(node));
    return {};
  }

  Result<std::string_view> read_operation(const JsonFields& fields) {
    MOTLEY_ASSIGN(const std::string name, fields.text("op"));
    if (const auto found = find_operation(name)) return *found;
    Error error = fields.bad(
        "op", fmt::format("layer '{}' needs the operation {}, which is not allowed in packages",
                          excerpt(layer_), excerpt(name)));
    error.code = ErrorCode::kConfig;
    error.remedy = "export the model with the Python package of this version of Motley";
    return error;
  }

  Result<void> read_args(const JsonFields& fields, Node& node) {
    MOTLEY_ASSIGN(const JsonFields args, fields.member("args"));
    const Json& json = args.value();
    if (!json.is_array() || json.size() > kNodeArgumentsMax) {
      return args.bad(fmt::format("a list of at most {} was expected", kNodeArgumentsMax));
    }
    node.args.reserve(json.size());
    for (const Json& item : json) {
      ReadArgument read = read_argument(item, graph_.values);
      if (!read.fault.empty()) {
        return args.bad(fmt::format("argument {}: {}", node.args.size(), read.fault));
      }
      node.args.push_back(std::move(read.argument));
    }
    return {};
  }

  Result<void> read_kwargs(const JsonFields& fields, Node& node) {
    MOTLEY_ASSIGN(const JsonFields kwargs, fields.member("kwargs"));
    const Json& json = kwargs.value();
    if (!json.is_object() || json.size() > kNodeArgumentsMax) {
      return kwargs.bad(fmt::format("an object of at most {} was expected", kNodeArgumentsMax));
    }
    for (const auto& [name, item] : json.items()) {
      ReadArgument read = read_argument(item, graph_.values);
      if (!read.fault.empty()) {
        return kwargs.bad(fmt::format("argument '{}': {}", excerpt(name), read.fault));
      }
      node.kwargs.emplace_back(name, std::move(read.argument));
    }
    return {};
  }

  Result<void> read_gives(const JsonFields& fields) {
    MOTLEY_ASSIGN(const JsonFields gives, fields.member("gives"));
    const Json& json = gives.value();
    if (!json.is_array() || json.size() > 2 * kGraphValuesMax) {
      return gives.bad("a list was expected");
    }
    std::set<std::pair<Role, int>> given;
    for (const Json& item : json) {
      if (!item.is_array() || item.size() != 2) return gives.bad("[role, value] was expected");
      MOTLEY_ASSIGN(const RoleIndex role, role_of(gives, item[0]));
      if (!may_give(part_, role.role, is_last_)) return gives.bad(misplaced(role));
      if (!given.emplace(role.role, role.index).second) return gives.bad(twice(role));
      const ReadArgument value = read_argument(Json{{"value", item[1]}}, graph_.values);
      if (!value.fault.empty()) return gives.bad(value.fault);
      graph_.gives.emplace_back(role, std::get<ValueId>(value.argument));
    }
    // After sorting, the indices of each role must be consecutive.
    int next = 0;
    Role before = kInput;
    for (const auto& [role, index] : given) {
      next = role == before ? next : 0;
      before = role;
      // The gradients of parameters are divided between the two parts of backward, and not every
      // input has a gradient.
      if (role != kParameterGrad && role != kInputGrad && index != next) {
        return gives.bad(fmt::format("{}:{} is missing", role_name(role), next));
      }
      ++next;
    }
    return {};
  }

  Result<RoleIndex> role_of(const JsonFields& list, const Json& item) const {
    const auto role =
        item.is_string() ? parse_role(item.get_ref<const std::string&>()) : std::nullopt;
    if (role) return *role;
    const std::string text = item.dump(-1, ' ', false, Json::error_handler_t::replace);
    return list.bad(fmt::format("{} is not ROLE:INDEX", excerpt(text)));
  }

  [[nodiscard]] std::string misplaced(RoleIndex role) const {
    return fmt::format("{}:{} is not allowed here, {} of {}", role_name(role.role), role.index,
                       part_name(part_), is_last_ ? "the last layer" : "a layer before the last");
  }

  static std::string twice(RoleIndex role) {
    return fmt::format("duplicate {}:{}", role_name(role.role), role.index);
  }

  // Finds the last use of each value, after which its memory can be released.
  void find_deaths() {
    constexpr int kNever = -1;
    const int nodes = static_cast<int>(graph_.nodes.size());
    std::vector<int> last(static_cast<std::size_t>(graph_.values), kNever);
    const auto read_by = [&](const Argument& argument, int node) {
      if (const auto* const value = std::get_if<ValueId>(&argument)) last[at(*value)] = node;
      const auto* const values = std::get_if<std::vector<std::optional<ValueId>>>(&argument);
      if (values == nullptr) return;
      for (const auto& value : *values) {
        if (value) last[at(*value)] = node;
      }
    };
    for (int n = 0; n < nodes; ++n) {
      const Node& node = graph_.nodes[static_cast<std::size_t>(n)];
      for (int r = 0; r < node.results; ++r) last[at(node.first_result) + at({r})] = n;
      for (const Argument& argument : node.args) read_by(argument, n);
      for (const auto& [name, argument] : node.kwargs) read_by(argument, n);
    }
    for (const auto& [role, value] : graph_.gives) last[at(value)] = nodes;
    for (int v = 0; v < graph_.values; ++v) {
      const int node = last[at({v})];
      if (node == nodes) continue;
      (node == kNever ? graph_.unread : graph_.nodes[static_cast<std::size_t>(node)].dies)
          .push_back({v});
    }
  }

  static std::size_t at(ValueId value) { return static_cast<std::size_t>(value.index); }

  GraphPart part_;
  bool is_last_;
  const std::string& layer_;
  Graph graph_;
};

}  // namespace

std::optional<RoleIndex> parse_role(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  for (std::size_t r = 0; r < kRoles; ++r) {
    const auto role = static_cast<Role>(r);
    if (text.substr(0, colon) != role_name(role)) continue;
    int index = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, code] = std::from_chars(text.data() + colon + 1, end, index);
    if (code != std::errc() || rest != end || index < 0 || index >= kGraphValuesMax) break;
    if (text.substr(colon + 1) != std::to_string(index)) break;  // each role has one spelling
    return RoleIndex{role, index};
  }
  return std::nullopt;
}

const char* part_name(GraphPart part) {
  switch (part) {
    case GraphPart::kForward:
      return "forward";
    case GraphPart::kInputPart:
      return "input_part";
    case GraphPart::kWeightPart:
      return "weight_part";
    case GraphPart::kEvaluate:
      return "evaluate";
    case GraphPart::kScore:
      return "score";
  }
  return "";
}

bool may_take(GraphPart part, Role role, bool is_last) {
  if (role == kParameter || role == kConstant) return true;
  switch (part) {
    case GraphPart::kForward:
      return role == kInput || (role == kTarget && is_last);
    case GraphPart::kInputPart:
      return role == kSaved || (role == kGrad && !is_last);
    case GraphPart::kWeightPart:
      return role == kSaved || role == kQueued;
    case GraphPart::kEvaluate:
      return role == kInput || role == kStatistic || (role == kTarget && is_last);
    case GraphPart::kScore:
      return role == kInput || role == kStatistic;
  }
  return false;
}

bool may_give(GraphPart part, Role role, bool is_last) {
  const bool is_loss = role == kLoss || role == kCount || role == kCorrect;
  if (ends_in_loss(part) && (is_last ? is_loss : role == kOutput)) return true;
  switch (part) {
    case GraphPart::kForward:
      return role == kSaved || role == kObserved;
    case GraphPart::kInputPart:
      return role == kInputGrad || role == kQueued || role == kParameterGrad;
    case GraphPart::kWeightPart:
      return role == kParameterGrad;
    case GraphPart::kEvaluate:
      return false;
    case GraphPart::kScore:
      return role == kOutput;
  }
  return false;
}

Result<Graph> read_graph(const JsonFields& fields,
                         GraphPart part,
                         bool is_last,
                         const std::string& layer) {
  return GraphReader(part, is_last, layer).read(fields);
}

Result<void> check_keys(const JsonFields& fields,
                        std::initializer_list<std::string_view> keys,
                        std::initializer_list<std::string_view> optional) {
  const Json& json = fields.value();
  if (!json.is_object()) return fields.bad("an object was expected");
  const auto among = [](const auto& list, std::string_view key) {
    return std::find(list.begin(), list.end(), key) != list.end();
  };
  for (const auto& [key, value] : json.items()) {
    if (!among(keys, key) && !among(optional, key)) {
      return fields.bad(fmt::format("unknown key '{}'", excerpt(key)));
    }
  }
  for (const std::string_view key : keys) {
    if (json.find(key) == json.end()) return fields.bad(fmt::format("key '{}' is missing", key));
  }
  return {};
}

}  // namespace motley
