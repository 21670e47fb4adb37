// get, put, del, incr.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "erda/client.h"
#include "tools/cli/command.h"
#include "tools/cli/commands.h"

namespace erda::cli {

namespace {

struct GetOptions {
  std::string key;
  bool raw = false;
  bool with_version = false;
  bool with_expiry = false;
};

struct PutCommand {
  std::string key;
  std::string value;
  PutOptions options;
  bool if_absent = false;
  bool with_version = false;
};

struct DelOptions {
  std::string key;
  DeleteOptions options;
};

struct IncrOptions {
  std::string key;
  int64_t delta = 1;
};

std::optional<std::string> ReadStdin() {
  std::string all;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t size = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (size == 0) return all;
    if (size > 0) all.append(buffer.data(), static_cast<size_t>(size));
    if (size < 0 && errno != EINTR) return std::nullopt;
  }
}

int Get(Session& session, const GetOptions& options) {
  auto got = session.client->GetVersioned(options.key);
  if (!got.ok()) return FailWith(session, got.status());
  std::string& value = got->value;
  if (options.with_expiry) {
    value.insert(0, fmt::format("{} ", got->expires ? got->expires->time_since_epoch().count() : 0));
  }
  if (options.with_version) value.insert(0, fmt::format("{} ", got->version));
  if (!options.raw) value.push_back('\n');
  return Print(value);
}

int Put(Session& session, const PutCommand& put) {
  std::optional<std::string> from_stdin;
  if (put.value == "-") {
    from_stdin = ReadStdin();
    if (!from_stdin) return FailWith(fmt::format("cannot read stdin: {}", std::strerror(errno)));
  }
  PutOptions options = put.options;
  if (put.if_absent) options.if_version = kAbsent;
  const auto version = session.client->Put(put.key, from_stdin ? *from_stdin : put.value, options);
  if (!version.ok()) return FailWith(session, version.status());
  return put.with_version ? Print(fmt::format("{}\n", *version)) : 0;
}

int Del(Session& session, const DelOptions& del) {
  if (!del.options.if_version) return Finish(session, session.client->Delete(del.key));
  return Finish(session, session.client->Delete(del.key, del.options));
}

int Incr(Session& session, const IncrOptions& options) {
  const auto sum = session.client->Increment(options.key, options.delta);
  return sum.ok() ? Print(fmt::format("{}\n", *sum)) : FailWith(session, sum.status());
}

void AddKey(CLI::App& sub, std::string& key) { sub.add_option("KEY", key)->required()->type_name(""); }

CLI::Option* AddIfVersion(CLI::App& sub, std::optional<uint64_t>& version) {
  const auto set = [&version](uint64_t number) { version = number; };
  return sub.add_option_function<uint64_t>("--if-version", set, "Only if the key has this version (exit code 6)")
      ->check(tools::NumberFrom<uint64_t>(0, UINT64_MAX))
      ->type_name("N");
}

}  // namespace

void AddGet(CLI::App& sub, Session& session) {
  GetOptions& options = Bind(sub, session, Get);
  AddKey(sub, options.key);
  sub.add_flag("--raw", options.raw, "Only the value's bytes, without a newline");
  sub.add_flag("--with-version", options.with_version, "The version and a space before the value");
  sub.add_flag("--with-expiry", options.with_expiry,
               "When it expires, in milliseconds of Unix time, and a space before the value; 0: never");
}

void AddPut(CLI::App& sub, Session& session) {
  PutCommand& put = Bind(sub, session, Put);
  AddKey(sub, put.key);
  sub.add_option("VALUE", put.value, "The value, or - to read it from stdin")->required()->type_name("");
  CLI::Option* if_version = AddIfVersion(sub, put.options.if_version);
  sub.add_flag("--if-absent", put.if_absent, "Only if the key has no value (exit code 6)")->excludes(if_version);
  sub.add_flag("--with-version", put.with_version, "Print the version of what was put");
  const auto set_ttl = [&put](int64_t ms) { put.options.ttl = std::chrono::milliseconds(ms); };
  sub.add_option_function<int64_t>("--ttl", set_ttl, "The value expires after so many milliseconds; default: never")
      ->check(tools::NumberFrom<int64_t>(1, kTtlMax.count()))
      ->type_name("MS");
}

void AddDel(CLI::App& sub, Session& session) {
  DelOptions& del = Bind(sub, session, Del);
  AddKey(sub, del.key);
  AddIfVersion(sub, del.options.if_version);
}

void AddIncr(CLI::App& sub, Session& session) {
  IncrOptions& options = Bind(sub, session, Incr);
  AddKey(sub, options.key);
  sub.add_option("DELTA", options.delta, "What is added; default 1")->type_name("");
}

}  // namespace erda::cli
