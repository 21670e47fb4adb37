// get, put, del, mget, incr.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "erda/client.h"
#include "erda/status.h"
#include "tools/cli/command.h"
#include "tools/cli/commands.h"
#include "tools/cli/files.h"
#include "tools/cli/keys.h"
#include "tools/cli/text.h"

namespace erda::cli {

namespace {

struct GetOptions {
  KeyOption key;
  std::string out;
  bool raw = false;
  bool with_version = false;
  bool with_expiry = false;

  void Check() const { key.Check(); }
};

struct PutCommand {
  KeyOption key;
  std::string value;
  bool value_file = false;
  PutOptions options;
  bool if_absent = false;
  bool with_version = false;

  [[nodiscard]] bool reads_value() const { return value_file || value == "-"; }
  void Check() const {
    key.Check();
    if (key.form.file && key.word == "-" && reads_value() && value == "-") {
      throw CLI::ValidationError("VALUE", "key and value cannot both be read from stdin");
    }
  }
};

struct DelOptions {
  KeyOptions keys;
  DeleteOptions options;

  void Check() const {
    keys.Check();
    if (options.if_version && (keys.words.size() != 1 || !keys.list.empty())) {
      throw CLI::ValidationError("--if-version", "it is about one KEY");
    }
  }
};

struct MgetOptions {
  KeyOptions keys;
  bool json = false;

  void Check() const { keys.Check(); }
};

struct IncrOptions {
  KeyOption key;
  int64_t delta = 1;

  void Check() const { key.Check(); }
};

int Get(Session& session, const GetOptions& options) {
  const auto key = options.key.Read();
  if (!key.ok()) return FailHere(key.status());
  auto got = session.client->GetVersioned(*key);
  if (!got.ok()) return FailWith(session, got.status());
  std::string& value = got->value;
  if (!options.out.empty()) {
    WholeFile to(options.out);
    const bool written =
        to.file() != nullptr && std::fwrite(value.data(), 1, value.size(), to.file()) == value.size() && to.Keep();
    return written ? 0 : FailHere(fmt::format("cannot write {}: {}", options.out, std::strerror(errno)));
  }
  if (options.with_expiry) {
    value.insert(0, fmt::format("{} ", got->expires ? got->expires->time_since_epoch().count() : 0));
  }
  if (options.with_version) value.insert(0, fmt::format("{} ", got->version));
  if (!options.raw) value.push_back('\n');
  return Print(value);
}

int Put(Session& session, const PutCommand& put) {
  const auto key = put.key.Read();
  if (!key.ok()) return FailHere(key.status());
  const auto value = put.reads_value() ? ReadAll(put.value) : put.value;
  if (!value.ok()) return FailHere(value.status());
  PutOptions options = put.options;
  if (put.if_absent) options.if_version = kAbsent;
  const auto version = session.client->Put(*key, *value, options);
  if (!version.ok()) return FailWith(session, version.status());
  return put.with_version ? Print(fmt::format("{}\n", *version)) : 0;
}

// Absent keys stop nothing, but for the exit code.
int Del(Session& session, const DelOptions& del) {
  const auto keys = del.keys.Read();
  if (!keys.ok()) return FailHere(keys.status());
  int code = 0;
  for (const std::string& key : *keys) {
    const Status status =
        del.options.if_version ? session.client->Delete(key, del.options) : session.client->Delete(key);
    if (status.ok()) continue;
    if (status.code() != Code::kNotFound || keys->size() == 1) return FailWith(session, status);
    fmt::print(stderr, "not found: {}\n", Escaped(key));
    code = kExitNotFound;
  }
  return code;
}

// So many at once: in flight, and in memory.
constexpr size_t kGetsAtOnce = 64;

// What there is to print of one; an exit code if there is nothing, and the value is damaged.
int AddTo(std::string& text, const MgetOptions& options, std::string_view key, const Result<Versioned>& got) {
  if (got.ok()) {
    text += options.json ? JsonLine(key, got->value, got->version, got->expires)
                         : fmt::format("{}\t{}\n", Escaped(key), Escaped(got->value));
    return 0;
  }
  if (got.status().code() == Code::kNotFound) {
    text += options.json ? JsonLineOfMissing(key) : Escaped(key) + "\n";
    return 0;
  }
  return FailHere(Status(got.status().code(), fmt::format("{}: {}", Escaped(key), got.status().ToString())));
}

// A missing or damaged one stops nothing, but for the exit code.
int Mget(Session& session, const MgetOptions& options) {
  const auto keys = options.keys.Read();
  if (!keys.ok()) return FailHere(keys.status());
  const std::vector<std::string_view> all(keys->begin(), keys->end());
  size_t missing = 0;
  int failed = 0;
  for (size_t at = 0; at < all.size(); at += kGetsAtOnce) {
    const auto some = std::span(all).subspan(at, std::min(kGetsAtOnce, all.size() - at));
    const auto got = session.client->MultiGetVersioned(some);
    std::string text;
    for (size_t i = 0; i < some.size(); ++i) {
      const Code code = got[i].status().code();
      if (code != Code::kOk && code != Code::kNotFound && code != Code::kCorruption) {
        return FailWith(session, got[i].status());
      }
      if (code == Code::kNotFound) ++missing;
      if (const int told = AddTo(text, options, some[i], got[i]); told != 0) failed = told;
    }
    if (const int code = Print(text); code != 0) return code;
  }
  if (missing > 0) fmt::print(stderr, "not found: {} of {} keys\n", missing, all.size());
  return failed != 0 ? failed : missing > 0 ? kExitNotFound : 0;
}

int Incr(Session& session, const IncrOptions& options) {
  const auto key = options.key.Read();
  if (!key.ok()) return FailHere(key.status());
  const auto sum = session.client->Increment(*key, options.delta);
  return sum.ok() ? Print(fmt::format("{}\n", *sum)) : FailWith(session, sum.status());
}

CLI::Option* AddIfVersion(CLI::App& sub, std::optional<uint64_t>& version) {
  const auto set = [&version](uint64_t number) { version = number; };
  return sub.add_option_function<uint64_t>("--if-version", set, "Only if the key has this version (exit code 6)")
      ->check(tools::NumberFrom<uint64_t>(0, UINT64_MAX))
      ->type_name("N");
}

}  // namespace

void AddGet(CLI::App& sub, Session& session) {
  GetOptions& options = Bind(sub, session, Get);
  options.key.AddTo(sub);
  sub.add_flag("--raw", options.raw, "Only the value's bytes, without a newline");
  CLI::Option* const version =
      sub.add_flag("--with-version", options.with_version, "The version and a space before the value");
  CLI::Option* const expiry =
      sub.add_flag("--with-expiry", options.with_expiry,
                   "When it expires, in milliseconds of Unix time, and a space before the value; 0: never");
  sub.add_option("--out", options.out, "Only the value's bytes, into this file, which is there when all of them are")
      ->type_name("FILE")
      ->excludes(version)
      ->excludes(expiry);
}

void AddPut(CLI::App& sub, Session& session) {
  PutCommand& put = Bind(sub, session, Put);
  put.key.AddTo(sub);
  sub.add_option("VALUE", put.value, "The value, or - to read it from stdin")->required()->type_name("");
  sub.add_flag("--value-file", put.value_file, "VALUE is a file, whose bytes are the value; - is stdin");
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
  del.keys.AddTo(sub);
  AddIfVersion(sub, del.options.if_version);
}

void AddMget(CLI::App& sub, Session& session) {
  MgetOptions& options = Bind(sub, session, Mget);
  options.keys.AddTo(sub);
  sub.add_flag("--json", options.json,
               "Each as a JSON object on a line, with version and expires_ms; value null: it is missing; key_base64 "
               "and value_base64 instead, where it is no UTF-8");
}

void AddIncr(CLI::App& sub, Session& session) {
  IncrOptions& options = Bind(sub, session, Incr);
  options.key.AddTo(sub);
  sub.add_option("DELTA", options.delta, "What is added; default 1")->type_name("");
}

}  // namespace erda::cli
