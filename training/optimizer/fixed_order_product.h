// Matrix products with one order of additions: each value of a product is the sum of its terms in
// ascending order, each product and sum rounded to fp32 once. The bits therefore do not depend on
// the processor's instruction set or the number of threads, unlike those of a BLAS.
//
// Matrices are row-major and contiguous; results do not overlap operands.
#pragma once

#include <cstdint>

#include "training/optimizer/work_parts.h"

namespace motley {

// c_MN = a_MK b_KN.
void fixed_order_product(const float* a,
                         const float* b,
                         float* c,
                         std::int64_t m,
                         std::int64_t k,
                         std::int64_t n,
                         const InParts& in_parts);

// c_MM = a_MK a_MKᵀ, which is symmetric to the bit. Half of it is computed.
void fixed_order_gram(
    const float* a, float* c, std::int64_t m, std::int64_t k, const InParts& in_parts);

}  // namespace motley
