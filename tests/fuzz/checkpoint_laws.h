// The properties of the headers and manifests of checkpoints, and a valid one of each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/json.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors_header.h"
#include "tests/fuzz/laws.h"

namespace motley {

// A header is parsed with the number of bytes that follow it: the first eight bytes of the input.
inline std::string header_input(std::uint64_t data_bytes, const std::string& text) {
  std::string input(sizeof data_bytes, '\0');
  std::memcpy(input.data(), &data_bytes, sizeof data_bytes);
  return input + text;
}

inline std::string right_header_input() {
  const std::vector<TensorOutline> tensors = {{"h.0.attn.weight", "F32", {2, 3}},
                                              {"ln.bias", "F32", {4}}};
  return header_input(40, format_safetensors_header(tensors, {{"format", "pt"}}));
}

// Our writer only uses ASCII names; for such tensors, the header again.
inline std::string written_again(const SafetensorsHeader& header) {
  std::vector<TensorOutline> tensors;
  for (const auto& [name, entry] : header.entries) {
    if (!is_writable_name(name)) return "";
    tensors.push_back({name, entry.dtype, entry.shape});
  }
  std::sort(tensors.begin(), tensors.end(), [&](const TensorOutline& a, const TensorOutline& b) {
    const auto& first = header.entries.at(a.name);
    const auto& second = header.entries.at(b.name);
    return std::pair(first.begin, first.end) < std::pair(second.begin, second.end);
  });
  return format_safetensors_header(tensors, header.metadata);
}

inline bool same_headers(const SafetensorsHeader& a, const SafetensorsHeader& b) {
  const auto same = [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.dtype == y.second.dtype &&
           x.second.shape == y.second.shape && x.second.begin == y.second.begin &&
           x.second.end == y.second.end;
  };
  return a.metadata == b.metadata &&
         std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(), same);
}

inline std::string wrong_with_safetensors(std::string_view input) {
  std::uint64_t data_bytes = 0;
  if (input.size() < sizeof data_bytes) return "";
  std::memcpy(&data_bytes, input.data(), sizeof data_bytes);
  const auto header =
      parse_safetensors_header(input.substr(sizeof data_bytes), data_bytes, "a.safetensors");
  if (!header.ok()) return wrong_error(header.error(), {ErrorCode::kCorrupt}, "a.safetensors");
  std::uint64_t tensor_bytes = 0;
  for (const auto& [name, entry] : header->entries) {
    if (entry.begin > entry.end || entry.end > data_bytes) return "a tensor outside the file";
    tensor_bytes += entry.end - entry.begin;
  }
  if (tensor_bytes != data_bytes) return "tensors that overlap or leave a hole";
  const std::string written = written_again(*header);
  if (written.empty()) return "";
  const auto again = parse_safetensors_header(written, data_bytes, "a.safetensors");
  if (!again.ok()) return "written and refused: " + describe(again.error());
  return same_headers(*header, *again) ? "" : "written and read, and not the same";
}

inline Manifest right_manifest() {
  const std::string hash(32, 'a');
  Manifest manifest;
  manifest.state = {.step = 10,
                    .samples = 80,
                    .tokens = 5120,
                    .optimizer_updates = 9,
                    .seed = 7,
                    .model_hash = "m",
                    .model_family = "gpt2",
                    .plan_hash = "p",
                    .optimizer = "adamw",
                    .data = DataFingerprint{"tokens", 1024, hash, 0.1},
                    .plan = PlanFingerprint{4, {"fp16"}, "int8", {1, 2}}};
  manifest.files = {{"model-00001-of-00001.safetensors", 100, hash, {{"ln.bias", hash}}, "box"},
                    {"model.safetensors.index.json", 20, hash, {}}};
  manifest.parameter_hash = hash;
  manifest.config = {{"train", {{"steps", 10}}}};
  return manifest;
}

// A manifest ends in a hash of all bytes before it, which random changes never match.
inline std::string with_right_hash(std::string body) {
  const std::string hash = hash128_hex(std::as_bytes(std::span(body)));
  return body + ",\n  \"hash\": \"" + hash + "\"\n}\n";
}

// with_right_hash makes the valid manifest of it.
inline std::string right_manifest_body() {
  const std::string text = format_manifest(right_manifest());
  return text.substr(0, text.rfind(",\n"));
}

inline std::string wrong_with_manifest(std::string_view text) {
  const auto manifest = parse_manifest(text, "manifest.json");
  if (!manifest.ok()) return wrong_error(manifest.error(), {ErrorCode::kCorrupt}, "manifest.json");
  return wrong_way_back(manifest, parse_manifest(format_manifest(*manifest), "manifest.json"),
                        format_manifest);
}

}  // namespace motley
