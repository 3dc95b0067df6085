#include "tests/models/operation_cases.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "base/json.h"
#include "models/package/graph_reader.h"

namespace motley::testing {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>()};
}

// The number of results of an operation; if it returns a list, the file specifies it.
int results_of(const std::string& operation, const Json& call) {
  if (call.is_object() && call.contains("results")) return call["results"].get<int>();
  const std::size_t dot = operation.find('.');
  const std::string overload(dot == operation.npos ? "" : operation.substr(dot + 1));
  const auto found = c10::Dispatcher::singleton().findSchemaOrThrow(
      operation.substr(0, dot).c_str(), overload.c_str());
  return static_cast<int>(found.schema().returns().size());
}

// Strings among the arguments are tensors; they become values of the graph.
Json argument_of(const Json& written, std::vector<std::string>& tensors) {
  if (written.is_string()) {
    tensors.push_back(written.get<std::string>());
    return Json{{"value", tensors.size() - 1}};
  }
  const auto is_text = [](const Json& item) { return item.is_string(); };
  if (!written.is_array() || std::none_of(written.begin(), written.end(), is_text)) return written;
  Json values = Json::array();
  for (const Json& item : written) {
    values.push_back(item.is_null() ? Json() : argument_of(item, tensors)["value"]);
  }
  return Json{{"values", values}};
}

OperationCase case_of(const std::string& operation, std::size_t number, const Json& call) {
  OperationCase made{operation + " " + std::to_string(number), operation, {}, {}};
  Json args = Json::array();
  for (const Json& argument : call.is_object() ? call["args"] : call) {
    args.push_back(argument_of(argument, made.tensors));
  }
  const int results = results_of(operation, call);
  const Json kwargs = call.is_object() && call.contains("kwargs") ? call["kwargs"] : Json::object();
  Json takes = Json::array();
  for (std::size_t k = 0; k < made.tensors.size(); ++k)
    takes.push_back("input:" + std::to_string(k));
  Json gives = Json::array();
  const int given = call.is_object() && call.contains("gives") ? call["gives"].get<int>() : results;
  for (int k = 0; k < given; ++k) {
    gives.push_back(Json::array({"output:" + std::to_string(k), made.tensors.size() + k}));
  }
  const Json node = {{"op", operation}, {"args", args}, {"kwargs", kwargs}, {"results", results}};
  const Json graph = {{"takes", takes}, {"nodes", Json::array({node})}, {"gives", gives}};
  const JsonSource source(made.name);
  made.graph = read_graph(JsonFields(graph, source, ErrorCode::kCorrupt), GraphPart::kEvaluate,
                          /*is_last=*/false, made.name)
                   .value();
  return made;
}

std::int64_t product(at::IntArrayRef sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

at::Tensor listed(std::vector<float> values, const at::Tensor& place) {
  const auto count = static_cast<std::int64_t>(values.size());
  const at::Tensor list = at::from_blob(values.data(), {count}, at::kFloat).clone();
  return list.index_select(0, place.remainder(count));
}

// The tensor in this layout; nullopt if the layout would repeat an index that must be unique.
std::optional<at::Tensor> laid_out(const std::string& spec,
                                   const at::Tensor& t,
                                   const TensorLayout& layout) {
  std::optional<at::Tensor> made = layout.lay_out(t);
  const bool must_keep = spec.find(" along ") != spec.npos;
  if (made && must_keep && !at::equal(made->cpu().contiguous(), t.cpu())) return std::nullopt;
  return made;
}

}  // namespace

std::vector<OperationCase> read_operation_cases() {
  std::set<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(MOTLEY_OPERATION_CASES_DIR)) {
    if (entry.path().extension() == ".json") paths.insert(entry.path());
  }
  std::map<std::string, std::vector<OperationCase>> found;
  for (const std::filesystem::path& path : paths) {
    const Json groups = parse_json(text_of(path), path.filename()).value();
    for (const Json& group : groups) {
      for (const std::string& word : words_of(group["ops"].get<std::string>())) {
        const std::string operation = "aten::" + word;
        std::vector<OperationCase>& cases = found[operation];
        for (const Json& call : group["cases"]) {
          cases.push_back(case_of(operation, cases.size(), call));
        }
      }
    }
  }
  std::vector<OperationCase> all;
  for (auto& [operation, cases] : found) std::ranges::move(cases, std::back_inserter(all));
  return all;
}

at::Tensor make_case_tensor(const std::string& spec, int seed) {
  const std::vector<std::string> words = words_of(spec);
  std::vector<std::int64_t> sizes;
  std::istringstream shape(words.at(1) == "scalar" ? "" : words[1]);
  for (std::string size; std::getline(shape, size, 'x');) sizes.push_back(std::stoll(size));

  const at::Tensor i = at::arange(product(sizes), at::kLong);
  if (words.size() == 6 && words[2] == "along") {
    const std::size_t dim = std::stoul(words[3]);
    const std::int64_t inner = product(at::IntArrayRef(sizes).slice(dim + 1));
    const at::Tensor place = i.div(inner, "floor").remainder(sizes.at(dim));
    return place.neg().add(std::int64_t{std::stoll(words[5])} - 1).view(sizes);
  }
  constexpr std::int64_t kWord = 0xFFFFFFFF;
  at::Tensor h =
      (i * std::int64_t{2654435761} + (std::int64_t{seed} * 97531 + 12345)).bitwise_and(kWord);
  h = (h.bitwise_xor(h.bitwise_right_shift(16)) * std::int64_t{0x45D9F3B}).bitwise_and(kWord);
  h = h.bitwise_xor(h.bitwise_right_shift(16));
  if (words[0] == "b") return h.bitwise_and(1).to(at::kBool).view(sizes);
  const std::string values = words.size() > 2 ? words[2] : "-2..2";
  if (values == "special") {
    return listed({NAN, INFINITY, -INFINITY, 0.0F, -0.0F, 1, -1, 0.5F, 2.5F, -2.5F, 1e30F, -1e-30F,
                   3e38F},
                  i)
        .view(sizes);
  }
  if (values == "edges") return listed({-3, 3, -6, 0, 1, -1, 6}, i).view(sizes);
  if (values == "halves") return h.remainder(11).sub(5).to(at::kFloat).div(2).view(sizes);
  if (values == "infinite") return at::full(sizes, -INFINITY, at::kFloat);
  const std::size_t dots = values.find("..");
  const double low = std::stod(values.substr(0, dots));
  const double high = std::stod(values.substr(dots + 2));
  const at::Tensor spread = h.to(at::kDouble).div(4294967296.0).mul(high - low).add(low);
  return (words[0] == "i" ? spread.floor().to(at::kLong) : spread.to(at::kFloat)).view(sizes);
}

std::vector<LayoutVariant> layout_variants(const OperationCase& call,
                                           const std::vector<at::Tensor>& tensors) {
  const std::vector<TensorLayout>& layouts = tensor_layouts();
  const std::size_t count = tensors.size();
  const std::size_t none = layouts.size();
  std::vector<LayoutVariant> variants;
  std::set<std::vector<std::size_t>> seen;
  const auto add = [&](const std::string& name, const std::vector<std::size_t>& chosen) {
    LayoutVariant variant{name, tensors};
    std::vector<std::size_t> made(count, none);
    for (std::size_t k = 0; k < count; ++k) {
      if (chosen[k] == none) continue;
      std::optional<at::Tensor> tensor = laid_out(call.tensors[k], tensors[k], layouts[chosen[k]]);
      if (!tensor) continue;
      variant.tensors[k] = *std::move(tensor);
      made[k] = chosen[k];
    }
    const bool differs =
        std::ranges::any_of(made, [&](std::size_t layout) { return layout != none; });
    if (differs && seen.insert(made).second) variants.push_back(std::move(variant));
  };
  for (std::size_t place = 0; place < count; ++place) {
    for (std::size_t layout = 0; layout < none; ++layout) {
      std::vector<std::size_t> chosen(count, none);
      chosen[place] = layout;
      add(std::to_string(place) + " " + layouts[layout].name, chosen);
    }
  }
  for (std::size_t layout = 0; count > 1 && layout < none; ++layout) {
    add(std::string("all ") + layouts[layout].name, std::vector<std::size_t>(count, layout));
    std::vector<std::size_t> mixed(count);
    for (std::size_t k = 0; k < count; ++k) mixed[k] = (layout + k) % none;
    add(std::string("mixed from ") + layouts[layout].name, mixed);
  }
  return variants;
}

}  // namespace motley::testing
