#include "models/graph/graph_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "base/check.h"
#include "models/device/kinds/library_exception.h"
#include "models/graph/graph_failure.h"
#include "models/graph/kernel_layouts.h"
#include "models/graph/libtorch_operation.h"
#include "models/graph/node_arguments.h"
#include "models/graph/rounded_product.h"
#include "models/graph/size_error.h"
#include "models/package/operations.h"
#include "models/package/package_limits.h"

namespace motley {
namespace {

std::size_t at(ValueId value) {
  return static_cast<std::size_t>(value.index);
}

bool is_tensor_list(const c10::Argument& argument) {
  return *argument.type() == *c10::ListType::ofTensors();
}

// Positions of the arguments that the kernel needs contiguous; nullopt if the schema lacks one.
std::optional<std::vector<std::size_t>> contiguous_places(const Node& node,
                                                          const c10::FunctionSchema& schema) {
  std::vector<std::size_t> places;
  for (const std::string_view name : contiguous_arguments(node.operation)) {
    const auto place = schema.argumentIndexWithName(std::string(name));
    if (!place) return std::nullopt;
    places.push_back(static_cast<std::size_t>(*place));
  }
  return places;
}

// Why the node cannot have the results that it declares, or "". The length of a list is known only
// when it runs.
std::string results_fault(const Node& node, const c10::FunctionSchema& schema) {
  const auto& returns = schema.returns();
  if (schema.is_mutable()) return "it writes to its arguments in this LibTorch";
  if (returns.size() == 1 && is_tensor_list(returns.front())) return "";
  for (const c10::Argument& result : returns) {
    if (result.type()->kind() != c10::TypeKind::TensorType) return "its results are not tensors";
  }
  if (static_cast<std::size_t>(node.results) == returns.size()) return "";
  return fmt::format("it returns {} values, not {}", returns.size(), node.results);
}

}  // namespace

struct GraphRunner::Impl {
  struct Step {
    const Node* node = nullptr;
    c10::optional<c10::OperatorHandle> operation;  // nullopt: a dropout mask, or `drawn`
    std::optional<DrawnNumbers> drawn;
    NodeArguments arguments;
    std::vector<std::size_t> contiguous;  // positions of arguments, by kernel_layouts.h
    // Runs instead if the first argument is not contiguous, with the same arguments.
    c10::optional<c10::OperatorHandle> if_not_contiguous;
    bool is_rounded = false;  // a product in `products`
  };

  std::string where;
  c10::Device device = c10::kCPU;
  at::ScalarType products = at::kFloat;
  std::vector<Step> steps;
  std::int64_t samples = -1;  // number of samples that the arguments are set to
  torch::jit::Stack stack;    // of the running node
  GraphRunner::Observer observer;

  [[nodiscard]] Error error(const Step& step, std::string cause) const {
    return {ErrorCode::kConfig,
            fmt::format("{}: cannot run node {}, {}", where, &step - steps.data(),
                        step.node->operation),
            std::move(cause),
            "export the model again; its parts must match each other and this version of LibTorch"};
  }

  // The error of a kernel that refused its arguments.
  [[nodiscard]] Error failure(const Step& step, std::string said) const {
    // Devices are profiled with every layer, also with those that pins exclude.
    const bool has_no_order = said.find("deterministic") != said.npos;
    Error made = error(step, std::move(said));
    if (has_no_order) {
      made.remedy =
          "it is nondeterministic on this device: leave the device out of the cluster file, or use "
          "a plan with the layer on another one (--plan)";
    }
    return made;
  }

  [[nodiscard]] Result<void> set_samples(std::int64_t wanted) {
    if (samples == wanted) return {};
    samples = -1;
    for (Step& step : steps) {
      if (step.arguments.batch_numbers.empty()) continue;
      std::string fault = motley::set_samples(step.arguments, wanted);
      if (fault.empty()) fault = size_error(step.arguments, step.operation->schema());
      if (!fault.empty()) return error(step, fault);
    }
    samples = wanted;
    return {};
  }

  // Pushes the arguments of a node onto the stack. False if one of them has no tensor, such as a
  // gradient that was not requested.
  [[nodiscard]] bool load(const Step& step, const std::vector<at::Tensor>& values) {
    stack = step.arguments.stack;
    for (const auto& [place, value] : step.arguments.tensors) {
      if (!values[at(value)].defined()) return false;
      stack[place] = values[at(value)];
    }
    for (const NodeArguments::TensorList& list : step.arguments.lists) {
      c10::List<at::Tensor> tensors;
      c10::List<c10::optional<at::Tensor>> some;
      for (const auto& value : list.values) {
        if (value && !values[at(*value)].defined()) return false;
        if (value && !list.takes_none) tensors.push_back(values[at(*value)]);
        if (list.takes_none) {
          some.push_back(value ? c10::optional<at::Tensor>(values[at(*value)]) : c10::nullopt);
        }
      }
      stack[list.place] = list.takes_none ? c10::IValue(some) : c10::IValue(tensors);
    }
    for (const std::size_t place : step.contiguous) {
      if (stack[place].isTensor()) stack[place] = stack[place].toTensor().contiguous();
    }
    return true;
  }

  // Moves the results from the stack to their values. False if their number is not the node's.
  [[nodiscard]] bool store(const Node& node, std::vector<at::Tensor>& values) {
    if (stack.size() == 1 && stack.front().isTensorList()) {
      std::vector<at::Tensor> list = stack.front().toTensorVector();
      if (list.size() != static_cast<std::size_t>(node.results)) return false;
      std::ranges::move(list, values.begin() + node.first_result.index);
      return true;
    }
    if (stack.size() != static_cast<std::size_t>(node.results)) return false;
    for (std::size_t r = 0; r < stack.size(); ++r) {
      values[at(node.first_result) + r] = std::move(stack[r]).toTensor();
    }
    return true;
  }

  [[nodiscard]] Result<void> make_mask(const Step& step,
                                       std::vector<at::Tensor>& values,
                                       const GraphDraws* draws) const {
    const at::Tensor& like = values[at(std::get<ValueId>(step.node->args[0]))];
    if (!like.defined() || like.scalar_type() != at::kFloat) {
      return error(step, "its argument is not a float32 tensor");
    }
    const auto [p, index] = mask_of(*step.node);
    at::Tensor& mask = values[at(step.node->first_result)];
    mask = p < 1 ? at::ones(like.sizes(), like.options()) : at::zeros(like.sizes(), like.options());
    if (p > 0 && p < 1) draws->mask(mask, p, index);
    return {};
  }

  [[nodiscard]] Result<void> draw(const Step& step,
                                  std::vector<at::Tensor>& values,
                                  const GraphDraws* draws) const {
    const auto sizes = step.drawn->sizes_of(samples);
    if (!sizes) {
      return error(step, fmt::format("size asks for more than {} elements", kTensorCountMax));
    }
    values[at(step.node->first_result)] = draws->numbers(*step.drawn, *sizes, device);
    return {};
  }

  [[nodiscard]] Result<void> run_step(const Step& step,
                                      std::vector<at::Tensor>& values,
                                      const GraphDraws* draws) {
    const Node& node = *step.node;
    if (!step.operation) {
      MOTLEY_CHECK(draws != nullptr, "{}: {} without draws", where, node.operation);
      return step.drawn ? draw(step, values, draws) : make_mask(step, values, draws);
    }
    if (!load(step, values)) return error(step, "an argument has no tensor");
    if (step.is_rounded) {
      run_rounded(*step.operation, stack, products);
    } else if (step.if_not_contiguous && !stack.front().toTensor().is_contiguous()) {
      step.if_not_contiguous->callBoxed(stack);
    } else {
      step.operation->callBoxed(stack);
    }
    if (!store(node, values)) return error(step, "it made another number of values");
    return {};
  }

  // Whatever a kernel throws ends here, but for a lack of memory, which is not the package's fault
  // and which the worker reports as such.
  [[nodiscard]] Result<void> run_steps(std::vector<at::Tensor>& values, const GraphDraws* draws) {
    for (const Step& step : steps) {
      try {
        MOTLEY_TRY(run_step(step, values, draws));
      } catch (const std::exception& thrown) {
        if (is_out_of_memory(thrown)) throw;
        return failure(step, first_line_of(thrown));
      }
      if (observer) observer(static_cast<std::size_t>(&step - steps.data()), values);
      for (const ValueId value : step.node->dies) values[at(value)].reset();
    }
    return {};
  }
};

GraphRunner::GraphRunner(const Graph& graph, std::unique_ptr<Impl> impl)
    : graph_(&graph), impl_(std::move(impl)) {}

GraphRunner::GraphRunner(GraphRunner&&) noexcept = default;
GraphRunner& GraphRunner::operator=(GraphRunner&&) noexcept = default;
GraphRunner::~GraphRunner() = default;

Result<GraphRunner> GraphRunner::make(const Graph& graph,
                                      std::string where,
                                      c10::Device device,
                                      at::ScalarType products) {
  auto impl = std::make_unique<Impl>();
  impl->where = std::move(where);
  impl->device = device;
  impl->products = products;
  impl->steps.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    Impl::Step& step = impl->steps.emplace_back();
    step.node = &node;
    if (draw_kind(node.operation)) step.drawn = draw_of(node);
    if (step.drawn || node.operation == kDropoutMask) continue;
    step.operation = find_in_libtorch(node.operation);
    if (!step.operation) {
      Error error = impl->error(step, "this machine's LibTorch lacks the operation");
      error.remedy = "export with its version of PyTorch, or install a newer LibTorch here";
      return error;
    }
    const c10::FunctionSchema& schema = step.operation->schema();
    auto [arguments, fault] = prepare_arguments(node, schema, device);
    if (fault.empty()) fault = results_fault(node, schema);
    if (fault.empty()) fault = size_error(arguments, schema);
    const auto contiguous = contiguous_places(node, schema);
    if (!contiguous) fault = "its schema lacks an argument that its kernels need contiguous";
    if (!fault.empty()) return impl->error(step, fault);
    step.contiguous = *contiguous;
    if (is_view_in_other_sizes(node.operation)) {
      step.if_not_contiguous = find_in_libtorch("aten::reshape");
    }
    step.arguments = std::move(arguments);
    step.is_rounded = products != at::kFloat && is_product(node.operation);
  }
  return GraphRunner(graph, std::move(impl));
}

void GraphRunner::observe(Observer observer) {
  impl_->observer = std::move(observer);
}

Result<std::vector<at::Tensor>> GraphRunner::run(std::vector<at::Tensor> takes,
                                                 std::int64_t samples,
                                                 const GraphDraws* draws) {
  MOTLEY_TRY(impl_->set_samples(samples));
  std::vector<at::Tensor> values = std::move(takes);
  values.resize(static_cast<std::size_t>(graph_->values));
  for (const ValueId value : graph_->unread) values[at(value)].reset();
  const auto ran = impl_->run_steps(values, draws);
  impl_->stack.clear();
  MOTLEY_TRY(ran);
  std::vector<at::Tensor> given;
  given.reserve(graph_->gives.size());
  for (const auto& [role, value] : graph_->gives) {
    if (!values[at(value)].defined()) {
      return Error{
          ErrorCode::kConfig,
          fmt::format("{}: {}:{} has no tensor", impl_->where, role_name(role.role), role.index),
          "the operation that should return it did not", "export the model again"};
    }
    given.push_back(values[at(value)]);
  }
  return given;
}

}  // namespace motley
