// keys.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "erda/client.h"
#include "erda/status.h"
#include "tools/cli/command.h"
#include "tools/cli/commands.h"
#include "tools/scan_pages.h"

namespace erda::cli {

namespace {

struct KeysOptions {};

int Keys(Session& session, const KeysOptions& /*none*/) {
  ScanOptions options;
  options.values = false;
  uint64_t damaged = 0;
  int code = 0;
  const auto print = [&](const ScanPage& page) {
    std::string text;
    for (const ScannedKey& each : page.keys) text.append(each.key).push_back('\n');
    code = Print(text);
    damaged += page.damaged;
    return code == 0 ? Status() : Status(Code::kInternal);  // it was told
  };
  const Status status = tools::ForEachPage(*session.client, options, print);
  if (code != 0) return code;
  if (!status.ok()) return FailWith(session, status);
  return damaged == 0 ? 0 : FailWith(fmt::format("{} keys are damaged in the pool", damaged));
}

}  // namespace

void AddKeys(CLI::App& sub, Session& session) { Bind(sub, session, Keys); }

}  // namespace erda::cli
