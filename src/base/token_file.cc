#include "base/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/bytes.h"
#include "base/unique_fd.h"

namespace erda {

namespace {

constexpr size_t kFileBytesMax = size_t{1} << 20;
constexpr std::string_view kBlanks = " \t\r";

// Removes the first word from a line, and returns it.
std::string_view TakeWord(std::string_view* line) {
  line->remove_prefix(std::min(line->find_first_not_of(kBlanks), line->size()));
  const std::string_view word = line->substr(0, line->find_first_of(kBlanks));
  line->remove_prefix(word.size());
  return word;
}

// Returns the rights that the word after a token gives. The word may be empty.
std::optional<TokenRights> ParseRights(std::string_view word) {
  if (word.empty()) return TokenRights::kWrite;
  if (word == "read-only") return TokenRights::kRead;
  if (word == "mirror") return TokenRights::kMirror;
  return std::nullopt;
}

Status CheckRights(const struct stat& info, const std::string& path) {
  if (!S_ISREG(info.st_mode)) return {Code::kInvalidArgument, "the token file " + path + " is not an ordinary file"};
  const bool is_roots = info.st_uid == 0;
  if (info.st_uid != ::geteuid() && !is_roots) {
    return {Code::kPermissionDenied,
            path + " belongs to another user: a token file must belong to this user, or to root"};
  }
  const mode_t forbidden = is_roots && ::geteuid() != 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO;
  if ((info.st_mode & forbidden) != 0) {
    return {Code::kPermissionDenied, path + " can be read or changed by other users: chmod 600 mends that"};
  }
  return {};
}

}  // namespace

std::string CheckToken(std::string_view secret) {
  if (secret.size() < kTokenBytesMin || secret.size() > kTokenBytesMax) {
    return "a token has " + std::to_string(kTokenBytesMin) + " to " + std::to_string(kTokenBytesMax) + " characters";
  }
  const bool printable = std::ranges::all_of(secret, [](char c) { return c > ' ' && c < 127; });
  return printable ? "" : "a token consists of printable ASCII characters without spaces";
}

Result<std::vector<Token>> ParseTokens(std::string_view text, const std::string& path) {
  std::vector<Token> tokens;
  const auto wrong = [&path](size_t line, const std::string& what) {
    return Status(Code::kInvalidArgument, path + ", line " + std::to_string(line) + ": " + what);
  };
  for (size_t number = 1; !text.empty(); ++number) {
    // It may be cut off, and then a token without its rights, or a shorter one, would count.
    if (text.find('\n') == std::string_view::npos) return wrong(number, "the line does not end with a newline");
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string_view secret = TakeWord(&line);
    if (secret.empty() || secret.front() == '#') continue;
    const auto rights = ParseRights(TakeWord(&line));
    if (const std::string what = CheckToken(secret); !what.empty()) return wrong(number, what);
    if (!rights || !TakeWord(&line).empty()) {
      return wrong(number, "after a token the line has nothing, or one of the words read-only and mirror");
    }
    if (std::ranges::find(tokens, secret, &Token::secret) != tokens.end()) {
      return wrong(number, "this token stands in an earlier line, too");
    }
    if (tokens.size() == kTokensMax)
      return wrong(number, "there are more than " + std::to_string(kTokensMax) + " tokens");
    tokens.push_back({std::string(secret), *rights});
  }
  if (tokens.empty()) return Status(Code::kInvalidArgument, "the token file " + path + " has no token");
  return tokens;
}

Result<std::vector<Token>> ReadTokenFile(const std::string& path) {
  // O_NONBLOCK: a pipe is no token file, and the open must not wait for it.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return ErrnoStatus("cannot open the token file " + path);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return ErrnoStatus("cannot examine the token file " + path);
  if (auto status = CheckRights(info, path); !status.ok()) return status;
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t n = ::read(file.get(), part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot read the token file " + path);
    if (n == 0) return ParseTokens(text, path);
    text.append(part.data(), static_cast<size_t>(n));
    if (text.size() > kFileBytesMax) return Status(Code::kInvalidArgument, "the token file " + path + " is too long");
  }
}

}  // namespace erda
