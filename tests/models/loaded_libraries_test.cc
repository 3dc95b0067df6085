// The libraries that a program with LibTorch loads: one oneDNN, one BLAS and one OpenMP, since
// calls of two copies may be mixed up, and none of CUDA before a job names a CUDA device. In a
// separate program, because libraries stay loaded.
#include <cstdio>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include "models/device/compute_device.h"
#include "models/kernels/matrix_product.h"

namespace motley {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using Files = std::set<std::string>;

// Adds the path in a line of /proc/PID/maps or of ldd's output, if it is a library's.
void add_library_of(const std::string& line, Files& files) {
  const std::size_t begin = line.find('/');
  if (begin == std::string::npos) return;
  const std::string file = line.substr(begin, line.find_first_of(" \n", begin) - begin);
  if (file.find(".so", file.rfind('/')) != std::string::npos) files.insert(file);
}

Files loaded_here() {
  Files files;
  std::ifstream lines("/proc/self/maps");
  for (std::string line; std::getline(lines, line);) add_library_of(line, files);
  return files;
}

Files needed_by(const std::string& program) {
  Files files;
  const std::string command = "ldd '" + program + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> answer(::popen(command.c_str(), "r"), ::pclose);
  char line[4096];
  while (answer != nullptr && std::fgets(line, sizeof line, answer.get()) != nullptr) {
    add_library_of(line, files);
  }
  return files;
}

// The files whose names begin with one of `names`.
Files named(const Files& files, const std::vector<std::string>& names) {
  Files found;
  for (const std::string& file : files) {
    for (const std::string& name : names) {
      if (file.compare(file.rfind('/') + 1, name.size(), name) == 0) found.insert(file);
    }
  }
  return found;
}

const std::vector<std::string> kOneDnn = {"libdnnl"};
const std::vector<std::string> kBlas = {"libopenblas", "libblas", "libmkl", "libblis"};
const std::vector<std::string> kOpenMp = {"libgomp", "libomp", "libiomp"};
const std::vector<std::string> kCuda = {"libtorch_cuda", "libc10_cuda"};

void expect_one_of_each(const Files& files) {
  // A LibTorch that bundles its own has both within libtorch_cpu.
  if (MOTLEY_TORCH_BRINGS_ITS_OWN) {
    EXPECT_THAT(named(files, kOneDnn), IsEmpty());
    EXPECT_THAT(named(files, kBlas), IsEmpty());
  } else {
    EXPECT_THAT(named(files, kOneDnn), SizeIs(1));
    EXPECT_THAT(named(files, {"libopenblas"}), SizeIs(testing::Le(1)));
  }
  EXPECT_THAT(named(files, kOpenMp), SizeIs(1));
}

TEST(LoadedLibraries, OfTheWorkerAreOneOfEachAndNothingOfCuda) {
  const Files files = needed_by(MOTLEY_STAGE);
  ASSERT_THAT(named(files, {"libtorch_cpu"}), SizeIs(1)) << "ldd says too little";
  expect_one_of_each(files);
  EXPECT_THAT(named(files, kCuda), IsEmpty());
}

TEST(LoadedLibraries, StayOneOfEachAndCudaComesOnlyWhenAskedFor) {
  ASSERT_EQ(product(at::ones({64, 64}), at::ones({64, 64})).sum().item<float>(), 64 * 64 * 64);
  ASSERT_TRUE(ComputeDevice::open("cpu").ok());
  expect_one_of_each(loaded_here());
  EXPECT_THAT(named(loaded_here(), kCuda), IsEmpty());

  const auto device = ComputeDevice::open("cuda:0");
  EXPECT_THAT(named(loaded_here(), {"libtorch_cuda.so"}),
              SizeIs(device.ok() || MOTLEY_TORCH_HAS_CUDA ? 1 : 0));
  expect_one_of_each(loaded_here());
  if (device.ok()) return;
  EXPECT_EQ(device.error().code, ErrorCode::kConfig);
  EXPECT_THAT(device.error().what, HasSubstr("cuda:0"));
  EXPECT_FALSE(device.error().cause.empty());
  EXPECT_THAT(device.error().remedy, HasSubstr("nvidia-smi"));
}

}  // namespace
}  // namespace motley
