#include "comm/transport/buffer_pool.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(BufferPool, GivesABufferOfTheSameSizeAgain) {
  BufferPool pool;
  Buffer first = pool.take(100);
  const std::byte* const bytes = first.payload_space().data();
  pool.give(std::move(first));
  const Buffer other = pool.take(101);
  Buffer again = pool.take(100);
  EXPECT_EQ(other.payload_bytes_max(), 101U);
  EXPECT_EQ(again.payload_space().data(), bytes);
}

TEST(BufferPool, GivesEachBufferOnce) {
  BufferPool pool;
  pool.give(Buffer(8));
  Buffer first = pool.take(8);
  Buffer second = pool.take(8);
  EXPECT_NE(first.payload_space().data(), second.payload_space().data());
}

}  // namespace
}  // namespace motley
