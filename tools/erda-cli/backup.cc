// The commands dump and load.
#include "tools/erda-cli/backup.h"

#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "tools/erda-cli/command.h"
#include "tools/shared/dump.h"
#include "tools/shared/files.h"
#include "tools/shared/progress.h"

namespace erda::cli {

namespace {

struct DumpOptions {
  std::string file;
};

struct LoadOptions {
  std::string file;
  bool if_absent = false;
};

bool ShowsProgress() { return tools::Progress::HasTerminal(); }

int CannotWrite(const std::string& file) {
  return FailHere(fmt::format("cannot write {}: {}", file, std::strerror(errno)));
}

// Prints the counts to stdout, or to stderr if stdout has the dump.
int TellDumped(const DumpOptions& options, const tools::Dumped& dumped) {
  const std::string text = fmt::format("keys {}, bytes {}\n", dumped.keys, dumped.bytes);
  if (options.file != "-") {
    if (const int code = Print(text); code != 0) return code;
  } else {
    fmt::print(stderr, "{}", text);
  }
  if (dumped.damaged == 0) return 0;
  return FailHere(fmt::format("the dump lacks {} keys: their values are damaged in the pool, and new puts repair them",
                              dumped.damaged));
}

int Dump(Session& session, const DumpOptions& options) {
  if (options.file == "-") {
    const auto dumped = tools::Dump(*session.client, stdout, ShowsProgress());
    if (!dumped.ok()) return FailWith(session, dumped.status());
    if (std::fflush(stdout) != 0) return CannotWrite("stdout");
    return TellDumped(options, *dumped);
  }
  WholeFile to(options.file);
  if (to.file() == nullptr) return CannotWrite(to.name());
  const auto dumped = tools::Dump(*session.client, to.file(), ShowsProgress());
  if (!dumped.ok()) return FailWith(session, dumped.status());
  if (!to.Keep()) return CannotWrite(options.file);
  return TellDumped(options, *dumped);
}

int Load(Session& session, const LoadOptions& options) {
  const bool from_stdin = options.file == "-";
  File file(from_stdin ? fdopen(dup(STDIN_FILENO), "re") : std::fopen(options.file.c_str(), "re"));
  if (!file) return FailHere(fmt::format("cannot read {}: {}", options.file, std::strerror(errno)));
  tools::Loaded loaded;
  const auto status = tools::Load(*session.client, file.get(), options.if_absent, ShowsProgress(), &loaded);
  std::string text = fmt::format("keys {}", loaded.keys);
  if (loaded.present > 0) text += fmt::format(", left as they were {}", loaded.present);
  if (loaded.expired > 0) text += fmt::format(", expired {}", loaded.expired);
  if (const int code = Print(text + "\n"); code != 0) return code;
  if (!status.ok()) return FailWith(session, status);
  if (loaded.damaged == 0) return 0;
  return FailHere(fmt::format("the dump lacks {} keys: their values were damaged when it was written", loaded.damaged));
}

}  // namespace

void AddDump(CLI::App& sub, Session& session) {
  DumpOptions& options = Bind(sub, session, Dump);
  sub.add_option("FILE", options.file, "The file, or - for stdout")->required()->type_name("");
}

void AddLoad(CLI::App& sub, Session& session) {
  LoadOptions& options = Bind(sub, session, Load);
  sub.add_option("FILE", options.file, "The dump, or - for stdin")->required()->type_name("");
  sub.add_flag("--if-absent", options.if_absent, "Leave a key as it is if it has a value");
}

}  // namespace erda::cli
