// A file of tokens: of a server those that it takes, of a client the one that it has (the first).
//
//   # comment
//   TOKEN               may read and write
//   TOKEN read-only
//
// One to a line; a token is 16 to 256 printable characters without spaces. `head -c 32 /dev/urandom | base64` makes
// one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "erda/status.h"

namespace erda {

struct Token {
  std::string secret;
  bool read_only = false;
  friend bool operator==(const Token&, const Token&) = default;
};

inline constexpr size_t kTokenBytesMin = 16;
inline constexpr size_t kTokenBytesMax = 256;
inline constexpr size_t kTokensMax = 256;
// Empty: it may be a token. Else what is wrong with it; never the token itself.
[[nodiscard]] std::string CheckToken(std::string_view secret);

// What a line says is never repeated in an error, but for its number. kInvalidArgument: a line is wrong, or there is no
// token. kPermissionDenied: others could read or change the file. It must belong to the caller, and be for him alone;
// or to root, and at most be readable by its group.
[[nodiscard]] Result<std::vector<Token>> ParseTokens(std::string_view text, const std::string& path);
[[nodiscard]] Result<std::vector<Token>> ReadTokenFile(const std::string& path);

}  // namespace erda
