// The commands get, put, del, mget and incr.
#include "tools/erda-cli/values.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "erda/client.h"
#include "erda/status.h"
#include "tools/erda-cli/command.h"
#include "tools/erda-cli/keys.h"
#include "tools/erda-cli/text.h"
#include "tools/shared/files.h"

namespace erda::cli {

namespace {

// A number as the store has it: signed, 8 bytes, in little-endian order.
using NumberBytes = std::array<char, sizeof(int64_t)>;

std::optional<int64_t> NumberOf(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string BytesOfNumber(int64_t number) {
  const auto bytes = std::bit_cast<NumberBytes>(number);
  return {bytes.begin(), bytes.end()};
}

std::optional<int64_t> NumberInBytes(std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little);
  NumberBytes number{};
  if (bytes.size() != number.size()) return std::nullopt;
  std::copy(bytes.begin(), bytes.end(), number.begin());
  return std::bit_cast<int64_t>(number);
}

struct GetOptions {
  KeyOption key;
  std::string out;
  bool raw = false;
  bool number = false;
  bool with_version = false;
  bool with_expiry = false;

  void Check() const { key.Check(); }
};

struct PutCommand {
  KeyOption key;
  std::string value;
  bool value_file = false;
  bool number = false;
  PutOptions options;
  bool if_absent = false;
  bool with_version = false;

  [[nodiscard]] bool reads_value() const { return value_file || (value == "-" && !number); }
  void Check() const {
    key.Check();
    if (number && !value_file && !NumberOf(value)) {
      throw CLI::ValidationError("VALUE", fmt::format("'{}' is not a whole number of 64 bits", value));
    }
    if (key.form.file && key.word == "-" && reads_value() && value == "-") {
      throw CLI::ValidationError("VALUE", "key and value cannot both be read from stdin; give a file for one of them");
    }
  }
};

struct DelOptions {
  KeyOptions keys;
  DeleteOptions options;

  void Check() const {
    keys.Check();
    if (options.if_version && (keys.words.size() != 1 || !keys.list.empty())) {
      throw CLI::ValidationError("--if-version", "the condition is about one KEY: give one, and no --file");
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
  if (!got.ok()) return FailWith(session, *key, got.status());
  std::string& value = got->value;
  if (options.number) {
    const auto number = NumberInBytes(value);
    if (!number) {
      return FailHere(Status(Code::kInvalidArgument,
                             fmt::format("the value of {} has {} bytes, and a number has 8: get it without --number",
                                         Escaped(*key), value.size())));
    }
    value = std::to_string(*number);
  }
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
  // 0 for a key that is too long; Put then reports that.
  const size_t most = std::max(session.client->max_value_bytes(key->size()), size_t{1});
  auto value = put.reads_value() ? ReadAll(put.value, most) : put.value;
  if (!value.ok()) return FailHere(value.status());
  if (put.number) {
    if (value->ends_with('\n')) value->pop_back();
    const auto number = NumberOf(*value);
    if (!number)
      return FailHere(Status(Code::kInvalidArgument,
                             "the file " + put.value + " does not hold one whole number, as --number wants it"));
    value = BytesOfNumber(*number);
  }
  if (value->size() > most && most > 1) {
    return FailHere(Status(Code::kInvalidArgument,
                           fmt::format("the value of {} is too large: the pool takes values up to {} bytes for this "
                                       "key. Make a pool with a larger --segment-size for larger values",
                                       Escaped(*key), most)));
  }
  PutOptions options = put.options;
  if (put.if_absent) options.if_version = kAbsent;
  const auto version = session.client->Put(*key, *value, options);
  if (!version.ok()) return FailWith(session, *key, version.status());
  return put.with_version ? Print(fmt::format("{}\n", *version)) : 0;
}

// Absent keys change only the exit code.
int Del(Session& session, const DelOptions& del) {
  const auto keys = del.keys.Read();
  if (!keys.ok()) return FailHere(keys.status());
  int code = 0;
  for (const std::string& key : *keys) {
    const Status status =
        del.options.if_version ? session.client->Delete(key, del.options) : session.client->Delete(key);
    if (status.ok()) continue;
    if (status.code() != Code::kNotFound || keys->size() == 1) return FailWith(session, key, status);
    fmt::print(stderr, "not found: {}\n", Escaped(key));
    code = kExitNotFound;
  }
  return code;
}

// The number of gets that are outstanding, and of values in memory.
constexpr size_t kGetsAtOnce = 64;

// Appends the line of a key. Returns 0, or the exit code for a damaged value, which has no line.
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

// A missing or damaged key changes only the exit code.
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
  if (sum.ok()) return Print(fmt::format("{}\n", *sum));
  if (sum.status().code() == Code::kInvalidArgument) {
    // The value is text, perhaps of a number: tell the user how to make it a number that the command can add to.
    if (const auto value = session.client->Get(*key); value.ok() && !NumberInBytes(*value)) {
      const auto text = NumberOf(*value);
      return FailHere(Status(
          Code::kInvalidArgument,
          fmt::format("the value of {} is {}, not a number of 8 bytes; make it one: erda-cli put --number {} {}",
                      Escaped(*key), text ? fmt::format("the text {}", *text) : fmt::format("{} bytes", value->size()),
                      Escaped(*key), text ? std::to_string(*text) : "N")));
    }
  }
  return FailWith(session, *key, sum.status());
}

CLI::Option* AddIfVersion(CLI::App& sub, std::optional<uint64_t>& version) {
  const auto set = [&version](uint64_t number) { version = number; };
  return sub
      .add_option_function<uint64_t>("--if-version", set, "Only if the key has this version; otherwise exit code 6")
      ->check(tools::NumberFrom<uint64_t>(0, UINT64_MAX))
      ->type_name("N");
}

}  // namespace

void AddGet(CLI::App& sub, Session& session) {
  GetOptions& options = Bind(sub, session, Get);
  options.key.AddTo(sub);
  sub.add_flag("--raw", options.raw, "Print only the value's bytes, without a newline");
  sub.add_flag("--number", options.number, "The value is a number of 8 bytes, as incr has it: print it in decimal");
  CLI::Option* const version =
      sub.add_flag("--with-version", options.with_version, "Print the version and a space before the value");
  CLI::Option* const expiry = sub.add_flag(
      "--with-expiry", options.with_expiry,
      "Print when the value expires, in milliseconds of Unix time, and a space before the value; 0: never");
  sub.add_option("--out", options.out,
                 "Write only the value's bytes, into this file. The file appears when it has all of them")
      ->type_name("FILE")
      ->excludes(version)
      ->excludes(expiry);
}

void AddPut(CLI::App& sub, Session& session) {
  PutCommand& put = Bind(sub, session, Put);
  put.key.AddTo(sub);
  sub.add_option("VALUE", put.value, "The value, or - to read it from stdin")->required()->type_name("");
  sub.add_flag("--value-file", put.value_file, "VALUE is a file, whose bytes are the value; - is stdin");
  sub.add_flag("--number", put.number, "VALUE is a whole number: put it as 8 bytes, for incr and get --number");
  CLI::Option* if_version = AddIfVersion(sub, put.options.if_version);
  sub.add_flag("--if-absent", put.if_absent, "Only if the key has no value; otherwise exit code 6")
      ->excludes(if_version);
  sub.add_flag("--with-version", put.with_version, "Print the version of the value that was put");
  const auto set_ttl = [&put](int64_t ms) { put.options.ttl = std::chrono::milliseconds(ms); };
  sub.add_option_function<int64_t>("--ttl", set_ttl, "The value expires after MS milliseconds; default never")
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
               "Print each key as a JSON object on a line, with version and expires_ms. A missing key has the value "
               "null. Bytes that are not UTF-8 are in key_base64 and value_base64 instead");
}

void AddIncr(CLI::App& sub, Session& session) {
  IncrOptions& options = Bind(sub, session, Incr);
  options.key.AddTo(sub);
  sub.add_option("DELTA", options.delta, "The number to add; default 1")->type_name("");
}

}  // namespace erda::cli
