// The commands scan and keys.
#include "tools/erda-cli/scan.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "erda/client.h"
#include "erda/status.h"
#include "tools/erda-cli/command.h"
#include "tools/erda-cli/text.h"
#include "tools/shared/scan_pages.h"

namespace erda::cli {

namespace {

struct ScanCommand {
  bool lines = false;  // Prints each key as it is, and a newline.
  bool values = false;
  bool hex = false;
  bool null = false;
  bool json = false;
  std::string prefix;
  uint64_t cursor = 0;
  uint64_t limit = 0;  // 0: no limit.
};

std::string TextOf(const ScanCommand& scan, const ScannedKey& each) {
  if (scan.lines) return each.key + "\n";
  if (scan.null) return each.key + '\0';
  if (scan.json) {
    return scan.values ? JsonLine(each.key, each.value, each.version, each.expires) : JsonLineOfKey(each.key);
  }
  const std::string key = scan.hex ? ToHex(each.key) : Escaped(each.key);
  return scan.values ? fmt::format("{}\t{}\n", key, Escaped(each.value)) : key + "\n";
}

// Prints the cursor at which a scan with a limit can continue.
int TellCursor(const ScanCommand& scan, std::optional<uint64_t> next) {
  if (scan.json) return Print(fmt::format("{{\"cursor\":{}}}\n", next ? std::to_string(*next) : "null"));
  if (next) fmt::print(stderr, "cursor {}\n", *next);
  return 0;
}

int Scan(Session& session, const ScanCommand& scan) {
  ScanOptions options;
  options.cursor = scan.cursor;
  options.values = scan.values;
  if (scan.limit > 0) options.keys = std::min<uint64_t>(options.keys, scan.limit);
  std::optional<uint64_t> next;
  uint64_t printed = 0;
  uint64_t damaged = 0;
  int code = 0;
  const Status stop(Code::kInternal);  // ends the scan: a failure that is reported, or enough keys
  const auto print = [&](const ScanPage& page) {
    std::string text;
    for (const ScannedKey& each : page.keys) {
      if (!each.key.starts_with(scan.prefix)) continue;
      text += TextOf(scan, each);
      ++printed;
    }
    damaged += page.damaged;
    next = page.next;
    code = Print(text);
    return code != 0 || (scan.limit > 0 && printed >= scan.limit) ? stop : Status();
  };
  const Status status = tools::ForEachPage(*session.client, options, print);
  if (code != 0) return code;
  const bool enough = scan.limit > 0 && printed >= scan.limit;
  if (!status.ok() && !enough) return FailWith(session, status);
  if (scan.limit > 0) code = TellCursor(scan, next);
  if (code != 0) return code;
  return damaged == 0 ? 0
                      : FailHere(fmt::format("the values of {} keys are damaged in the pool, so the scan left these "
                                             "keys out; new puts repair them",
                                             damaged));
}

}  // namespace

void AddScan(CLI::App& sub, Session& session) {
  ScanCommand& scan = Bind(sub, session, Scan);
  CLI::Option* const values =
      sub.add_flag("--values", scan.values, "Also print the values: after each key a tab and its value");
  CLI::Option* const null = sub.add_flag(
      "-0,--null", scan.null, "Keys without escapes, and a NUL after each, as mget -0 and xargs -0 read them");
  null->excludes(values);
  CLI::Option* const hex =
      sub.add_flag("--key-hex", scan.hex, "Print keys in hexadecimal, as mget --key-hex reads them")->excludes(null);
  sub.add_flag("--json", scan.json, "Print each key as a JSON object on a line, as mget does")
      ->excludes(null)
      ->excludes(hex);
  sub.add_option("--prefix", scan.prefix,
                 "Print only keys that begin with TEXT. The command still reads all keys, since they have no order")
      ->type_name("TEXT");
  tools::AddNumber<uint64_t>(
      sub, "--limit", scan.limit, 1, UINT64_MAX,
      "Stop after about N keys, and print the cursor with which a scan can go on. It is on stderr, or the "
      "last object with --json (null: there are no more keys)");
  tools::AddNumber<uint64_t>(sub, "--cursor", scan.cursor, 0, UINT64_MAX,
                             "Go on where a scan with --limit stopped, of any client; default 0, the start");
}

void AddKeys(CLI::App& sub, Session& session) { Bind(sub, session, Scan).lines = true; }

}  // namespace erda::cli
