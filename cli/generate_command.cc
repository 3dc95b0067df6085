// motley generate: text from a checkpoint.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/process/progress_line.h"
#include "base/system/files.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/work_progress.h"
#include "cluster/launch/worker_group.h"
#include "record/run_folder.h"
#include "run_config/config_io.h"

namespace motley {
namespace {

// Verifies the checkpoint before it is used.
Result<std::filesystem::path> sound_checkpoint(const std::filesystem::path& path) {
  MOTLEY_ASSIGN(const std::filesystem::path folder, named_checkpoint(path));
  WorkProgress watch;
  MOTLEY_TRY(verify_checkpoint(folder, &watch));
  return folder;
}

Result<double> number_value(const Arguments& arguments,
                            const std::string& option,
                            double fallback) {
  if (!arguments.has(option)) return fallback;
  const std::string& text = arguments.value(option);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= 0)) {
    return Error{ErrorCode::kUsage, fmt::format("--{} must be a number of at least 0", option),
                 fmt::format("it is '{}'", text), ""};
  }
  return value;
}

Result<std::int64_t> whole_value(const Arguments& arguments,
                                 const std::string& option,
                                 std::int64_t fallback,
                                 std::int64_t high) {
  if (!arguments.has(option)) return fallback;
  return integer_value(arguments, option, 0, high);
}

Result<std::string> device_value(const Arguments& arguments) {
  const std::string device = arguments.has("device") ? arguments.value("device") : "cpu";
  if (check_device(device).ok() && capabilities_of(device).computes) return device;
  return Error{ErrorCode::kUsage, "--device is not a device",
               fmt::format("it is '{}'", excerpt(device)),
               "use cpu, cuda:0 or another one that 'motley devices' lists"};
}

Result<void> check_prompt(const Json& prompt, std::int64_t vocabulary) {
  for (const Json& token : prompt) {
    const bool is_known = token.is_number_integer() && token.get<std::int64_t>() >= 0 &&
                          token.get<std::int64_t>() < vocabulary;
    if (is_known) continue;
    return Error{ErrorCode::kData, "--prompt contains a token outside the vocabulary",
                 fmt::format("it is {}", token.dump()),
                 fmt::format("the model's tokens are the numbers from 0 to {}", vocabulary - 1)};
  }
  return {};
}

Result<Json> read_options(const Arguments& arguments, const Config& config) {
  Json prompt = Json::array();
  const std::string text = arguments.has("prompt") ? arguments.value("prompt") : "\n";
  if (config.data.kind == "text") {
    for (const char byte : text) prompt.push_back(static_cast<unsigned char>(byte));
  } else {
    auto tokens = parse_json("[" + text + "]", "--prompt");
    if (!tokens) {
      return Error{
          ErrorCode::kUsage, "--prompt must be a list of token numbers, as in 12,54,61",
          fmt::format("it is '{}'", excerpt(text)),
          "the model was trained on token numbers; for text, train one with data.kind = \"text\""};
    }
    prompt = std::move(tokens).value();
  }
  MOTLEY_TRY(check_prompt(prompt, config.model.vocab));
  Json options{{"prompt", prompt}};
  MOTLEY_ASSIGN(options["tokens"], whole_value(arguments, "tokens", 200, 1 << 20));
  MOTLEY_ASSIGN(options["temperature"], number_value(arguments, "temperature", 0.8));
  MOTLEY_ASSIGN(options["top_k"], whole_value(arguments, "top-k", 0, 1 << 24));
  MOTLEY_ASSIGN(options["seed"], whole_value(arguments, "seed", 1, 1LL << 62));
  return options;
}

// For tokens that are bytes.
std::string text_of(const Json& tokens) {
  std::string text;
  for (const Json& token : tokens) text += static_cast<char>(token.get<int>());
  return text;
}

// Prints the prompt and its continuation incrementally: as characters, or as numbers in the format
// of a numeric prompt.
class Continuation {
 public:
  Continuation(const Config& config, std::string prompt)
      : is_text_(config.data.kind == "text"), prompt_(std::move(prompt)) {}

  void add(int token) {
    const bool begins = prompt_.empty() && !was_shown_;
    show_prompt();
    if (is_text_) {
      std::fputc(static_cast<unsigned char>(token), stdout);
    } else {
      fmt::print("{}{}", begins ? "" : ",", token);
    }
    std::fflush(stdout);
  }

  void end() {
    show_prompt();
    std::fputc('\n', stdout);
  }

  // Ends the current line, so that other output starts on a new one.
  void break_off() {
    if (!was_shown_) return;
    std::fputc('\n', stdout);
    std::fflush(stdout);
  }

 private:
  void show_prompt() {
    if (!was_shown_) std::fputs(prompt_.c_str(), stdout);
    was_shown_ = true;
  }

  bool is_text_;
  std::string prompt_;
  bool was_shown_ = false;
};

Result<void> generate(const Arguments& arguments) {
  MOTLEY_ASSIGN(const auto folder, sound_checkpoint(arguments.operand(0)));
  MOTLEY_ASSIGN(const Manifest manifest, read_manifest(folder));
  MOTLEY_ASSIGN(const Config config, saved_config_from_json(manifest.config, folder.string()));
  MOTLEY_ASSIGN(const auto program, stage_program());
  WorkerSpec worker{"generator", local_cluster(1).machines.front(), program, {}};
  worker.job.verb = "generate";
  MOTLEY_ASSIGN(worker.job.device, device_value(arguments));
  worker.job.config = config;
  worker.job.resume_from = std::filesystem::absolute(folder).string();
  MOTLEY_ASSIGN(worker.job.options, read_options(arguments, config));
  const bool is_json = arguments.has("json");
  Continuation text(config, arguments.has("prompt") ? arguments.value("prompt") : "");
  Json tokens = Json::array();
  ProgressLine line("starting motley-stage and loading the model");
  const auto on_event = [&](int, const Json& event) -> Result<void> {
    if (!is_json && event.contains("token")) line.clear();
    if (event.contains("tokens")) tokens = event["tokens"];
    if (!is_json && event.contains("token")) text.add(event["token"].get<int>());
    return {};
  };
  const Log log("", LogLevel::kInfo, line.log_output());
  WorkerGroup group({worker}, {.start_timeout_s = config.comm.start_timeout_s}, log);
  const Result<void> ran = group.run(on_event);
  line.clear();
  if (!ran.ok()) {
    text.break_off();
    return ran;
  }
  if (is_json) {
    Json result{{"step", manifest.state.step}, {"tokens", tokens}};
    if (config.data.kind == "text") result["text"] = text_of(tokens);
    // A model may generate invalid UTF-8, or end within a character.
    fmt::print("{}\n", result.dump(-1, ' ', false, Json::error_handler_t::replace));
  } else {
    text.end();
  }
  return {};
}

}  // namespace

Command generate_command() {
  CommandSpec spec{
      "generate",
      "continue a text with a trained model",
      {"RUN"},
      {{"prompt", "TEXT", "text to continue (token models: numbers like 12,99)"},
       {"tokens", "N", "number of tokens to add (default 200)"},
       {"temperature", "X", "sampling temperature; 0 = always the likeliest token (default 0.8)"},
       {"top-k", "N", "sample from the N likeliest tokens only (default 0 = all)"},
       {"seed", "N", "seed of the sampling (default 1)"},
       {"device", "NAME", "device, such as cuda:0 (default cpu); `motley devices` lists them"},
       json_option()},
      "RUN is a run's folder (its newest checkpoint is used), or a checkpoint, such as\n"
      "runs/gpt/checkpoints/best, the one with the lowest held-out loss.\n"
      "With --json: the added tokens as \"tokens\", and for a text model as \"text\".\n\n"
      "Example\n"
      "  motley generate runs/gpt --prompt \"#include <\"\n"};
  return {spec, generate};
}

}  // namespace motley
