// Configurations with random damage are resolved or refused with an error; tests/fuzz/ searches
// further with the same properties.
#include "base/system/files.h"
#include "tests/fuzz/config_laws.h"
#include "tests/support/damage.h"

namespace motley {
namespace {

RC_GTEST_PROP(DamagedConfig, InAFileIsReadOrRefused, ()) {
  const auto example = read_file(MOTLEY_CONFIGS "/gpt-tiny.toml");
  RC_ASSERT(example.ok());
  const std::string right = *rc::gen::element(*example, config_to_toml(Config{}));
  RC_ASSERT(wrong_with_config(right) == "");
  RC_ASSERT(wrong_with_config(damaged(right, fragments_of_text())) == "");
}

RC_GTEST_PROP(DamagedConfig, OnTheCommandLineOrInTheEnvironmentIsReadOrRefused, ()) {
  const std::string key = (*rc::gen::elementOf(config_keys())).name;
  const std::string setting = key + "=" + config_value(Config{}, key);
  RC_ASSERT(wrong_with_setting(setting) == "");
  RC_ASSERT(wrong_with_setting(damaged(setting, fragments_of_text())) == "");
}

}  // namespace
}  // namespace motley
