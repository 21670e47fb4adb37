// Keys and values as text: escaped, hexadecimal, JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "erda/client.h"

namespace erda::cli {

// Returns how many bytes the UTF-8 character at the beginning of `bytes` has; 0 if no such character is there.
[[nodiscard]] size_t CharacterBytes(std::string_view bytes);
[[nodiscard]] bool IsUtf8(std::string_view bytes);

// Returns the bytes on one line, without ambiguity. It has \\, \n, \t and \r, and \xNN for each other byte of a control
// character, and for each byte that is not UTF-8.
[[nodiscard]] std::string Escaped(std::string_view bytes);

// Converts bytes to and from hexadecimal digits. "00ff" and "00FF" are the same two bytes.
[[nodiscard]] std::string ToHex(std::string_view bytes);
[[nodiscard]] std::optional<std::string> FromHex(std::string_view digits);

// {"key":"...","value":"...","version":N,"expires_ms":N}: the last only if the value expires. Bytes that are not UTF-8
// are in base64, as "key_base64" and "value_base64".
[[nodiscard]] std::string JsonLine(std::string_view key, std::string_view value, uint64_t version,
                                   std::optional<Deadline> expires);
[[nodiscard]] std::string JsonLineOfKey(std::string_view key);      // Returns {"key":"..."}.
[[nodiscard]] std::string JsonLineOfMissing(std::string_view key);  // Returns {"key":"...","value":null}.

}  // namespace erda::cli
