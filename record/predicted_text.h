// The predictions of an evaluation in words.
#pragma once

#include <optional>
#include <string>

namespace motley {

// ", 45.31 % correct, 71.02 % in the top 5": the shares of targets that had the highest score and
// one of the five highest. "" if they were not counted.
[[nodiscard]] std::string predicted_text(std::optional<double> accuracy,
                                         std::optional<double> top5_accuracy);

}  // namespace motley
