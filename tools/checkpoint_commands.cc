// motley ckpt list | show | verify.
#include <fmt/format.h>

#include <cstdio>

#include "base/json.h"
#include "base/system/files.h"
#include "checkpoint/inspect.h"
#include "tools/command.h"
#include "tools/inputs.h"

namespace motley {
namespace {

// Prints the text for people, or the JSON twin.
template <class Text, class Twin>
Result<void> print(const Arguments& arguments, Text make_text, Twin make_json) {
  if (arguments.has("json")) {
    MOTLEY_ASSIGN(const Json json, make_json());
    fmt::print("{}\n", json.dump(2));
    return {};
  }
  MOTLEY_ASSIGN(const std::string text, make_text());
  std::fputs(text.c_str(), stdout);
  return {};
}

Result<void> list(const Arguments& arguments) {
  const std::filesystem::path run = arguments.operand(0);
  MOTLEY_TRY(check_exists(run));
  MOTLEY_TRY(path_exists(checkpoint_folder(run, 0)));  // that it can be looked into
  const auto checkpoints = list_checkpoints(run);
  return print(
      arguments, [&] { return Result<std::string>(format_checkpoint_list(checkpoints)); },
      [&] { return Result<Json>(checkpoint_list_to_json(checkpoints)); });
}

Result<void> show(const Arguments& arguments) {
  MOTLEY_ASSIGN(const std::filesystem::path folder, named_checkpoint(arguments.operand(0)));
  return print(
      arguments, [&] { return format_checkpoint(folder); },
      [&] { return checkpoint_to_json(folder); });
}

Result<void> verify(const Arguments& arguments) {
  MOTLEY_ASSIGN(const std::filesystem::path folder, named_checkpoint(arguments.operand(0)));
  return print(
      arguments, [&] { return format_verification(folder); },
      [&] { return verification_to_json(folder); });
}

}  // namespace

std::vector<Command> checkpoint_commands() {
  return {
      {{"ckpt list",
        "the checkpoints of a run",
        {"RUN"},
        {json_option()},
        "Lists the committed checkpoints in a run's folder, oldest first.\n"},
       list},
      {{"ckpt show",
        "what a checkpoint holds",
        {"RUN"},
        {json_option()},
        "RUN is a run's folder, whose newest checkpoint is shown, or a checkpoint.\n"
        "Prints step, model, sizes and the parameter hash, which is the same for the same\n"
        "parameters however they were split over machines.\n"},
       show},
      {{"ckpt verify",
        "read every byte of a checkpoint and compare its hashes",
        {"RUN"},
        {json_option()},
        "RUN is a run's folder, whose newest checkpoint is read, or a checkpoint.\n"
        "Exit status 7 when a file is missing, cut short or changed.\n"},
       verify},
  };
}

}  // namespace motley
