#include "tools/erda-cli/command.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tools/erda-cli/text.h"

namespace erda::cli {

int ExitCode(Code code) {
  switch (code) {
    case Code::kOk:
      return 0;
    case Code::kNotFound:
      return kExitNotFound;
    case Code::kInvalidArgument:
      return tools::kExitUsage;
    case Code::kUnavailable:
    case Code::kTimeout:
      return 3;
    case Code::kResourceExhausted:
      return 4;
    case Code::kConflict:
      return 6;
    case Code::kPermissionDenied:
      return kExitDenied;
    default:
      return kExitOther;
  }
}

int FailWith(const Session& session, const Status& status) {
  if (status.code() == Code::kNotFound) {
    fmt::print(stderr, "not found\n");
    return ExitCode(status.code());
  }
  return tools::Fail(kProgram, tools::Describe(session.address, status), ExitCode(status.code()));
}

int FailWith(const Session& session, std::string_view key, const Status& status) {
  if (status.code() != Code::kCorruption) return FailWith(session, status);
  return FailWith(session, Status(status.code(), fmt::format("key {}: {}", Escaped(key), status.message())));
}

int FailHere(const Status& status) {
  return tools::Fail(kProgram, std::string(status.message()), ExitCode(status.code()));
}

int FailHere(std::string message) { return tools::Fail(kProgram, std::move(message), kExitOther); }

int Finish(const Session& session, const Status& status) { return status.ok() ? 0 : FailWith(session, status); }

int Print(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() && std::fflush(stdout) == 0) return 0;
  return FailHere(fmt::format("cannot write to stdout: {}", std::strerror(errno)));
}

}  // namespace erda::cli
