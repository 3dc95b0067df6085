// RapidCheck's GoogleTest glue, which needs GoogleTest included before it.
#pragma once

// clang-format off
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
// clang-format on
