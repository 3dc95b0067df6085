#include "e2e/small_job.h"

#include <fmt/format.h>

#include "base/json.h"

namespace motley::test {

std::string SmallJob::changed_plan(const std::string& run,
                                   const std::function<void(Json&)>& change) const {
  Json plan = Json::parse(read_text(folder_.path() / run / "plan.json"));
  plan.erase("hash");
  change(plan);
  return folder_.write(run + "-changed.json", plan.dump());
}

std::string SmallJob::parameter_hash(const std::string& name, int step) const {
  const auto manifest =
      folder_.path() / name / fmt::format("checkpoints/step-{:06}/manifest.json", step);
  return Json::parse(read_text(manifest)).at("parameter_hash").get<std::string>();
}

}  // namespace motley::test
