#include "cli/init/cluster_draft.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "run_config/config_io.h"

namespace motley {
namespace {

constexpr const char* kWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
constexpr std::size_t kNameBytesMax = 200;

bool is_destination(const std::string& text) {
  const std::string host = host_of(text);
  const std::string allowed = std::string(kWord) + "@:";
  return !text.empty() && text.front() != '-' && !host.empty() && host.front() != '-' &&
         text.size() <= kNameBytesMax && text.find_first_not_of(allowed) == std::string::npos;
}

}  // namespace

Result<DraftMachine> parse_draft_machine(const std::string& text) {
  const std::size_t equals = text.find('=');
  DraftMachine machine;
  machine.name = text.substr(0, equals);
  machine.ssh = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (!machine.name.empty() && to_machine_name(machine.name) == machine.name &&
      is_destination(machine.ssh)) {
    return machine;
  }
  return Error{ErrorCode::kUsage, "a machine is given as NAME=ADDRESS or NAME=USER@ADDRESS",
               fmt::format("it is '{}'", excerpt(text)), "for example --machine box=192.168.1.11"};
}

std::string host_of(const std::string& destination) {
  const std::size_t at = destination.rfind('@');
  return at == std::string::npos ? destination : destination.substr(at + 1);
}

std::string to_machine_name(const std::string& text) {
  std::string name = text.substr(0, kNameBytesMax);
  std::ranges::replace_if(
      name, [](char c) { return std::string_view(kWord).find(c) == std::string_view::npos; }, '-');
  return name.starts_with('-') ? "host" + name : name;  // of the IPv6 address ::1
}

std::string cluster_draft(const std::vector<DraftMachine>& machines) {
  std::string text =
      "# Written by motley init. All keys: docs/formats/cluster.md.\n\n"
      "[network]\n"
      "bandwidth_mbps = 1000   # `motley probe` measures it; plan with --links\n"
      "latency_us = 200\n"
      "trusted = false         # true: messages between the machines are not encrypted\n";
  for (const DraftMachine& machine : machines) {
    text += fmt::format("\n[[machine]]\nname = \"{}\"\n", machine.name);
    if (!machine.address.empty()) text += fmt::format("address = \"{}\"\n", machine.address);
    if (!machine.ssh.empty()) text += fmt::format("ssh = \"{}\"\n", machine.ssh);
    if (!machine.shell.empty()) {
      text += fmt::format("shell = [\"{}\"]\n", fmt::join(machine.shell, "\", \""));
    }
    text +=
        "devices = [\"auto\"]   # its accelerators, else its processor: `motley devices` lists "
        "them\n";
    text +=
        machine.memory_gib > 0
            ? fmt::format("memory_gib = {:.2f}   # as granted\n", machine.memory_gib)
            : "# memory_gib = 8                  # memory for motley; unset = the free memory\n";
    text += "# motley_dir = \"/opt/motley/bin\"   # unset = the same folder as here\n";
  }
  return text;
}

Result<std::string> config_draft(const std::string& data, const std::string& run_dir) {
  Config config;
  config.data.kind = data.empty() ? "synthetic" : data.ends_with(".bin") ? "tokens" : "text";
  config.data.path = data;
  config.run.dir = run_dir;
  for (const std::string& text : {data, run_dir}) {
    if (is_plain_text(text)) continue;
    return Error{ErrorCode::kConfig, "a path must be one line of UTF-8 text",
                 fmt::format("it is '{}'", excerpt(text)), "rename the folder"};
  }
  const auto value = [&](const char* key) { return config_value(config, key); };
  const bool is_tokens = config.data.kind == "tokens";
  return fmt::format(
      "# Written by motley init: a small GPT. `motley config` shows every key.\n\n"
      "[model]\n"
      "kind = \"gpt2\"\n"
      "layers = 4\n"
      "width = 256\n"
      "heads = 4\n"
      "context = 128\n"
      "vocab = {}\n\n"
      "[data]\n"
      "kind = {}{}\n"
      "{}\n"
      "[train]\n"
      "steps = 300\n"
      "global_batch = 32\n"
      "lr = 1e-3\n"
      "eval_every = 50\n\n"
      "[compression]\n"
      "activations = \"none\"   # \"auto\": compressed where that is faster, as on slow links\n"
      "gradients = \"none\"     # the same\n\n"
      "[checkpoint]\n"
      "every = 100\n\n"
      "[run]\n"
      "dir = {}   # under this path on every machine\n",
      is_tokens ? "50257   # of GPT-2's tokens" : "256     # bytes", value("data.kind"),
      data.empty() ? "   # needs no file; or \"text\" with path = \"a file or folder of text\""
                   : "",
      data.empty() ? "" : fmt::format("path = {}\n", value("data.path")), value("run.dir"));
}

}  // namespace motley
