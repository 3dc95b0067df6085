#include "protocol/data_message.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace motley {
namespace {

constexpr std::size_t kEventBytesMax = 4U << 20;  // of cluster/launch/worker.cc

std::string sent_text(const DataMessage& message) {
  return data_event(message).dump(-1, ' ', false, Json::error_handler_t::replace);
}

TEST(DataMessage, IsTheSameAfterSendingAndReading) {
  const DataMessage message{10, "ab", {"a remark"}, {"cat", "dog"}, 1000};
  const auto read = read_data_event(Json::parse(sent_text(message)));
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(*read, message);
}

// A longer line would end the run.
TEST(DataMessage, LeavesOutNamesThatAnEventDoesNotHold) {
  for (const std::string& name : {std::string(255, 'n'), std::string(255, '\x01')}) {
    DataMessage message{10, "ab", {}, std::vector<std::string>(2'100, name)};
    EXPECT_EQ(data_event(message).contains("classes"), name[0] == 'n');
    EXPECT_LT(sent_text(message).size(), kEventBytesMax);
    message.class_names.resize(20'000, name);
    EXPECT_FALSE(data_event(message).contains("classes"));
  }
}

}  // namespace
}  // namespace motley
