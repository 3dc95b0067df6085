#include "record/predicted_text.h"

#include <fmt/format.h>

namespace motley {

std::string predicted_text(std::optional<double> accuracy, std::optional<double> top5_accuracy) {
  std::string text;
  if (accuracy) text += fmt::format(", {:.2f} % correct", *accuracy * 100);
  if (top5_accuracy) text += fmt::format(", {:.2f} % in the top 5", *top5_accuracy * 100);
  return text;
}

}  // namespace motley
