// The device that tests of what runs on any device use: the environment's MOTLEY_TEST_DEVICE, as
// "privateuseone:0", for which MOTLEY_DEVICE_LIBRARY names the file that registers it with
// LibTorch. Without it the processor, where layers are then asked for plain operations.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include <c10/core/Device.h>

namespace motley::testing {

inline c10::Device test_device() {
  const char* const name = std::getenv("MOTLEY_TEST_DEVICE");
  if (name == nullptr) return c10::kCPU;
  const char* const library = std::getenv("MOTLEY_DEVICE_LIBRARY");
  if (library != nullptr && dlopen(library, RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    throw std::runtime_error(dlerror());
  }
  return c10::Device(std::string(name));
}

}  // namespace motley::testing
