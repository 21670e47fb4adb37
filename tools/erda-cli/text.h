// Keys and values as text: escaped, hexadecimal, JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "erda/client.h"

namespace erda::cli {

// How many bytes of UTF-8 a character at the beginning of `bytes` has; 0: there is none.
[[nodiscard]] size_t CharacterBytes(std::string_view bytes);
[[nodiscard]] bool IsUtf8(std::string_view bytes);

// On one line, and unambiguous: \\, \n, \t and \r; \xNN for each other byte of a control character, and for what is
// no UTF-8.
[[nodiscard]] std::string Escaped(std::string_view bytes);

// "00ff" are two bytes, and "00FF" as well.
[[nodiscard]] std::string ToHex(std::string_view bytes);
[[nodiscard]] std::optional<std::string> FromHex(std::string_view digits);

// {"key":"...","value":"...","version":N,"expires_ms":N}: the last only if it expires. What is no UTF-8 is in base64,
// as "key_base64" and "value_base64".
[[nodiscard]] std::string JsonLine(std::string_view key, std::string_view value, uint64_t version,
                                   std::optional<Deadline> expires);
[[nodiscard]] std::string JsonLineOfKey(std::string_view key);      // {"key":"..."}
[[nodiscard]] std::string JsonLineOfMissing(std::string_view key);  // {"key":"...","value":null}

}  // namespace erda::cli
