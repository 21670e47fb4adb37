// A file of tokens. A server's file has the tokens that it accepts. A client uses the first token of its file.
//
//   # comment
//   TOKEN               may read and write
//   TOKEN read-only
//   TOKEN mirror        makes mirrors (docs/mirror.md), and no clients
//
// Each line has one token: 16 to 256 printable characters without spaces. `head -c 32 /dev/urandom | base64` makes one.
//
// Owns nothing: the caller gets copies of the tokens. Any thread may call these functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "erda/status.h"

namespace erda {

enum class TokenRights : uint8_t { kWrite, kRead, kMirror };

struct Token {
  std::string secret;
  TokenRights rights = TokenRights::kWrite;
  friend bool operator==(const Token&, const Token&) = default;
};

inline constexpr size_t kTokenBytesMin = 16;
inline constexpr size_t kTokenBytesMax = 256;
inline constexpr size_t kTokensMax = 256;
// Checks a token. Returns an empty string if it is valid, and otherwise its fault. The fault never contains the token.
[[nodiscard]] std::string CheckToken(std::string_view secret);

// Read the tokens of a text or file. An error gives the number of a line, and never its text. Return kInvalidArgument
// if a line is wrong, or if there is no token. ReadTokenFile returns kPermissionDenied if other users could read or
// change the file. The file must belong to the caller, and no other user may read it. If it
// belongs to root, at most its group may read it, too.
[[nodiscard]] Result<std::vector<Token>> ParseTokens(std::string_view text, const std::string& path);
[[nodiscard]] Result<std::vector<Token>> ReadTokenFile(const std::string& path);

}  // namespace erda
