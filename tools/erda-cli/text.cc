#include "tools/erda-cli/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>

namespace erda::cli {

namespace {

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t three = 0;
    for (size_t i = at; i < at + 3; ++i) three = three << 8 | (i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : 0);
    for (const int shift : {18, 12, 6, 0}) text.push_back(kDigits[three >> shift & 63]);
  }
  for (size_t i = 0; i < (3 - bytes.size() % 3) % 3; ++i) text[text.size() - 1 - i] = '=';
  return text;
}

void AddBytes(nlohmann::ordered_json& json, const std::string& name, std::string_view bytes) {
  if (IsUtf8(bytes)) {
    json[name] = bytes;
  } else {
    json[name + "_base64"] = Base64(bytes);
  }
}

nlohmann::ordered_json JsonOfKey(std::string_view key) {
  auto json = nlohmann::ordered_json::object();
  AddBytes(json, "key", key);
  return json;
}

bool IsControl(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  return first < 0x20 || first == 0x7f || (first == 0xc2 && static_cast<uint8_t>(character[1]) < 0xa0);
}

}  // namespace

size_t CharacterBytes(std::string_view bytes) {
  const auto at = [&](size_t i) -> uint32_t { return static_cast<uint8_t>(bytes[i]); };
  if (bytes.empty()) return 0;
  const uint32_t first = at(0);
  if (first < 0x80) return 1;
  const size_t size = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (size == 0 || bytes.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  // The encoding must be the shortest one, no surrogate, and not above U+10FFFF.
  const uint32_t second = at(1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0)) return 0;
  if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90)) return 0;
  return size;
}

bool IsUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t size = CharacterBytes(bytes);
    if (size == 0) return false;
    bytes.remove_prefix(size);
  }
  return true;
}

std::string Escaped(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t size = CharacterBytes(bytes);
    const std::string_view character = bytes.substr(0, std::max<size_t>(size, 1));
    bytes.remove_prefix(character.size());
    if (character == "\\") {
      text += "\\\\";
    } else if (character == "\n") {
      text += "\\n";
    } else if (character == "\t") {
      text += "\\t";
    } else if (character == "\r") {
      text += "\\r";
    } else if (size == 0 || IsControl(character)) {
      for (const char byte : character) text += fmt::format("\\x{:02x}", static_cast<uint8_t>(byte));
    } else {
      text += character;
    }
  }
  return text;
}

std::string ToHex(std::string_view bytes) {
  std::string digits;
  for (const char byte : bytes) digits += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return digits;
}

std::optional<std::string> FromHex(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (; !digits.empty(); digits.remove_prefix(2)) {
    uint8_t byte = 0;
    const auto [rest, error] = std::from_chars(digits.data(), digits.data() + 2, byte, 16);
    if (error != std::errc() || rest != digits.data() + 2) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

std::string JsonLine(std::string_view key, std::string_view value, uint64_t version, std::optional<Deadline> expires) {
  auto json = JsonOfKey(key);
  AddBytes(json, "value", value);
  json["version"] = version;
  if (expires) json["expires_ms"] = expires->time_since_epoch().count();
  return json.dump() + "\n";
}

std::string JsonLineOfKey(std::string_view key) { return JsonOfKey(key).dump() + "\n"; }

std::string JsonLineOfMissing(std::string_view key) {
  auto json = JsonOfKey(key);
  json["value"] = nullptr;
  return json.dump() + "\n";
}

}  // namespace erda::cli
