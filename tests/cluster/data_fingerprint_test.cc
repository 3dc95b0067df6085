#include "cluster/run/data_fingerprint.h"

#include <string>

#include <gmock/gmock.h>

namespace motley {
namespace {

using testing::HasSubstr;

TEST(DataFingerprints, HaveNoShareBesideAHeldOutSet) {
  DataConfig config;
  config.holdout_path = "val.txt";
  EXPECT_EQ(data_fingerprint({1000, std::string(32, 'a')}, config).holdout, 0);
}

TEST(DataFingerprints, DifferForOtherData) {
  DataConfig config;
  config.kind = "text";
  config.changed = "refuse";
  const DataIdentity same{1000, std::string(32, 'a')};
  const DataFingerprint saved = data_fingerprint(same, config);
  EXPECT_EQ(saved, (DataFingerprint{"text", 1000, std::string(32, 'a'), config.holdout}));
  const DataIdentity longer{1001, same.hash};
  const DataIdentity other{1000, std::string(32, 'b')};
  EXPECT_TRUE(check_same_data(saved, same, config).ok());
  for (const DataIdentity& found : {longer, other}) {
    const Result<void> refused = check_same_data(saved, found, config);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kData);
    EXPECT_THAT(refused.error().remedy, HasSubstr("--allow-changes"));
  }
  config.changed = "accept";
  EXPECT_TRUE(check_same_data(saved, other, config).ok());
}

}  // namespace
}  // namespace motley
