// The requirements of kernels on the layout of their arguments, beyond their schemas. Private to
// models/graph.
//
// Some kernels read arguments that are not contiguous as if they were, or refuse them. Which ones
// differs between versions of LibTorch: a package records the operations of its author's version,
// in which the same values may have had other strides. tests/models/operation_layouts_test.cc tests
// all operations with all layouts.
#pragma once

#include <string_view>
#include <vector>

namespace motley {

// The names of the arguments that must be contiguous, by the schema. The list is
// python/motley/contiguous_arguments.txt, which the exporter reads too; it is compiled in.
[[nodiscard]] std::vector<std::string_view> contiguous_arguments(std::string_view operation);

// Whether it is a view with other sizes, which not every layout allows. Values of a graph are never
// written to, so aten::reshape, which copies if necessary, computes the same.
[[nodiscard]] bool is_view_in_other_sizes(std::string_view operation);

}  // namespace motley
