// Error messages for a shortage of device memory.
#include "training/memory_shortage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Shortage : public testing::Test {
 protected:
  Shortage() {
    ModelConfig config;
    config.kind = "gpt2";
    config.layers = 2;
    config.width = 32;
    config.heads = 4;
    config.context = 16;
    config.vocab = 256;
    model_ = describe_model(config).value();
    plan_.micro_batch = 8;
    plan_.ranks = {{.machine = "desk", .device = "cpu"},
                   {.machine = "box", .device = "cuda:0", .memory_bytes = 3 << 20}};
    const int layers = static_cast<int>(model_.layers.size());
    plan_.chunks = {{.first_layer = 0, .layer_count = 2, .replicas = {{Rank{0}, 1}}},
                    {.first_layer = 2, .layer_count = layers - 2, .replicas = {{Rank{1}, 1}}}};
  }

  [[nodiscard]] Error error_with(std::int64_t had_bytes) const {
    return error_of({"forward of micro-batch 3", "tried to allocate 1 MiB", had_bytes},
                    TrainConfig(), model_, plan_, Rank{1});
  }

  ModelSpec model_;
  Plan plan_;
};

TEST_F(Shortage, NamesDeviceLayersAndSizes) {
  const Error error = error_with(2 << 20);
  EXPECT_EQ(error.code, ErrorCode::kInfeasible);
  EXPECT_EQ(error.what, "cuda:0 has too little memory for forward of micro-batch 3");
  EXPECT_THAT(error.cause,
              AllOf(HasSubstr(model_.layers[2].name + " to " + model_.layers.back().name),
                    HasSubstr("2.0 MiB were free"), HasSubstr("the plan assumes 3.0 MiB"),
                    HasSubstr("tried to allocate 1 MiB")));
  EXPECT_THAT(error.remedy, HasSubstr("\"box at most 70% memory\""));
}

// A pin that limits the only machine could not be satisfied.
TEST_F(Shortage, NamesNoPinWhereNoOtherMachineIsThere) {
  EXPECT_THAT(error_with(1 << 10).remedy, HasSubstr("recompute"));
  plan_.ranks[0].machine = plan_.ranks[1].machine;
  EXPECT_THAT(error_with(1 << 10).remedy, Not(HasSubstr("at most")));
  plan_.chunks[1].recompute = true;
  EXPECT_THAT(error_with(1 << 10).remedy, Not(HasSubstr("recompute")));
}

TEST_F(Shortage, SaysWhichMicroBatchWouldFitAndOnlyWhereOneDoes) {
  EXPECT_THAT(error_with(std::int64_t{1} << 40).remedy,
              HasSubstr("set train.micro_batch to 4 or less"));
  EXPECT_THAT(error_with(1 << 10).remedy, Not(HasSubstr("micro_batch")));
  EXPECT_THAT(error_with(0).remedy, Not(HasSubstr("micro_batch")));
  plan_.micro_batch = 1;
  EXPECT_THAT(error_with(std::int64_t{1} << 40).remedy, Not(HasSubstr("micro_batch")));
}

TEST_F(Shortage, NamesOneLayerByItself) {
  plan_.chunks[0].layer_count = static_cast<int>(model_.layers.size()) - 1;
  plan_.chunks[1].first_layer = plan_.chunks[0].layer_count;
  plan_.chunks[1].layer_count = 1;
  EXPECT_THAT(error_with(0).cause, AllOf(HasSubstr("the layers " + model_.layers.back().name + " "),
                                         HasSubstr("is not known")));
}

}  // namespace
}  // namespace motley
