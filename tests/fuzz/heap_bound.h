// HeapBound: limits the peak memory while an input is read, counted by the hooks of the
// sanitizers' allocator. One thread.
#pragma once

#include <sanitizer/allocator_interface.h>

#include <algorithm>
#include <cstddef>

#include "base/check.h"

namespace motley {

class HeapBound {
 public:
  // Values, their JSON and their text are proportional to the input; tables that the first input
  // initialises, and the contexts of zstd, are constant.
  explicit HeapBound(std::size_t input_bytes)
      : bytes_max_((std::size_t{32} << 20) + 256 * input_bytes) {
    static const int hooked = __sanitizer_install_malloc_and_free_hooks(&on_malloc, &on_free);
    MOTLEY_CHECK(hooked != 0, "the allocator takes no hooks");
    count() = {};
  }

  HeapBound(const HeapBound&) = delete;
  HeapBound& operator=(const HeapBound&) = delete;

  ~HeapBound() {
    MOTLEY_CHECK(count().peak_bytes <= static_cast<std::ptrdiff_t>(bytes_max_),
                 "{} bytes of memory; at most {} are right", count().peak_bytes, bytes_max_);
  }

 private:
  struct Count {
    std::ptrdiff_t bytes = 0;  // below 0 after freeing memory that is older than the input
    std::ptrdiff_t peak_bytes = 0;
  };

  static Count& count() {
    static Count count;
    return count;
  }

  static void on_malloc(const volatile void* /*block*/, std::size_t bytes) {
    count().bytes += static_cast<std::ptrdiff_t>(bytes);
    count().peak_bytes = std::max(count().peak_bytes, count().bytes);
  }

  static void on_free(const volatile void* block) {
    count().bytes -=
        static_cast<std::ptrdiff_t>(__sanitizer_get_allocated_size(const_cast<const void*>(block)));
  }

  std::size_t bytes_max_;
};

}  // namespace motley
