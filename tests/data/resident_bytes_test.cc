#include "data/resident_bytes.h"

#include "tests/data/fixture.h"

namespace motley {
namespace {

SampleFormat pictures_of(std::int64_t side) {
  SampleFormat sample;
  sample.inputs = {{"", {Dtype::kFloat32, {3, side, side}}, {}}};
  return sample;
}

TEST(HeldDataBytes, AreThoseOfAFolderOfTexts) {
  const DataFolder folder;
  folder.write("a.txt", "one");
  folder.write("c/x.txt", "three");
  folder.write("c/x.bin", "left out");
  DataConfig data = data_config("text", folder.root());
  data.suffixes = {".txt"};
  EXPECT_EQ(resident_data_bytes(data, {}), 8);
}

TEST(HeldDataBytes, AreNoneOfFilesThatAreMapped) {
  const DataFolder folder;
  const std::string file = folder.write("a.txt", "one text");
  EXPECT_EQ(resident_data_bytes(data_config("text", file), {}), 0);
  EXPECT_EQ(resident_data_bytes(data_config("tokens", file), {}), 0);
  EXPECT_EQ(resident_data_bytes(data_config("arrays", folder.root()), {}), 0);
  EXPECT_EQ(resident_data_bytes(data_config("text", folder.root() / "absent"), {}), 0);
  EXPECT_EQ(resident_data_bytes(data_config("synthetic", ""), {}), 0);
}

// Decoded to the model's size, each with its class.
TEST(HeldDataBytes, AreThoseOfPicturesAsTheModelTakesThem) {
  const DataFolder folder;
  folder.write("train/cat/1.png", "x");
  folder.write("train/dog/2.jpg", "x");
  folder.write("val/dog/3.jpeg", "x");
  folder.write("val/dog/words.txt", "x");
  folder.write("val/dog/empty.png", "");
  EXPECT_EQ(resident_data_bytes(data_config("images", folder.root()), pictures_of(4)),
            3 * (3 * 4 * 4 + 4));
}

}  // namespace
}  // namespace motley
