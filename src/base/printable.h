// Bytes in a form that people can read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace erda {

// Returns printable ASCII as it is, any other byte as \xNN, and a backslash as \\.
[[nodiscard]] inline std::string Printable(std::string_view bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      if (c == '\\') text += '\\';
      text += c;
    } else {
      text += "\\x";
      text += kDigits[byte >> 4];
      text += kDigits[byte & 15];
    }
  }
  return text;
}

}  // namespace erda
