#include "tools/shared/dump.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "base/printable.h"
#include "tools/shared/dump_file.h"
#include "tools/shared/progress.h"
#include "tools/shared/scan_pages.h"

namespace erda::tools {

namespace {

// After this number of keys the progress is drawn again.
constexpr uint64_t kKeysPerUpdate = 1000;
// The most bytes of puts under way. A larger value goes alone.
constexpr uint64_t kBytesAtOnce = uint64_t{16} << 20;

uint64_t MillisecondsOf(const std::optional<Deadline>& deadline) {
  return deadline ? static_cast<uint64_t>(deadline->time_since_epoch().count()) : 0;
}

// Returns 0 if the size is unknown, as of a pipe.
uint64_t SizeOf(std::FILE* file) {
  struct stat status {};
  return fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode) ? static_cast<uint64_t>(status.st_size) : 0;
}

// Returns the milliseconds that are left until the deadline, or 0. (The clock's unit is too fine for a time far ahead.)
std::chrono::milliseconds LeftUntil(uint64_t deadline) {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto passed = static_cast<uint64_t>(now.time_since_epoch().count());
  const uint64_t left = deadline > passed ? deadline - passed : 0;
  return std::chrono::milliseconds(std::min(left, static_cast<uint64_t>(kTtlMax.count())));
}

// Whether a read would return at once. The stream may have bytes in its buffer: then a needless wait costs only time.
bool HasMore(std::FILE* file) {
  pollfd look{fileno(file), POLLIN, 0};
  return ::poll(&look, 1, 0) != 0;
}

}  // namespace

Result<Dumped> Dump(Client& client, std::FILE* to, bool show_progress) {
  DumpWriter writer(to);
  if (auto status = writer.Begin(); !status.ok()) return status;
  Progress progress("dump", 0, show_progress, "keys");
  uint64_t damaged = 0;
  const auto write = [&](const ScanPage& page) {
    for (const ScannedKey& each : page.keys) {
      if (auto status = writer.Add(each.key, each.value, MillisecondsOf(each.expires)); !status.ok()) return status;
    }
    damaged += page.damaged;
    progress.Update(writer.keys(), page.part);
    return Status();
  };
  if (auto status = ForEachPage(client, {}, write); !status.ok()) return status;
  if (auto status = writer.End(damaged); !status.ok()) return status;
  return Dumped{writer.keys(), writer.bytes(), damaged};
}

Status Load(Client& client, std::FILE* from, bool if_absent, bool show_progress, Loaded* loaded) {
  DumpReader reader(from);
  if (auto status = reader.Begin(); !status.ok()) return status;
  const uint64_t size = SizeOf(from);
  Progress progress("load", 0, show_progress && size != 0, "keys");
  Status failed;
  const uint32_t puts_at_once = ClientOptions().queue_depth;  // As many as a client has room for.
  uint32_t under_way = 0;
  uint64_t bytes_under_way = 0;
  for (;;) {
    // End all puts before waiting for the file: a put that has not ended keeps other clients off its key.
    if (under_way > 0 && !HasMore(from)) {
      Status drained = client.Drain();
      if (failed.ok()) failed = std::move(drained);
      if (!failed.ok()) break;
    }
    auto next = reader.Next();
    if (!next.ok()) {
      if (failed.ok()) failed = next.status();
      break;
    }
    if (!*next) break;
    const DumpRecord& record = **next;
    PutOptions options;
    if (if_absent) options.if_version = kAbsent;
    if (record.deadline != 0) {
      options.ttl = LeftUntil(record.deadline);
      if (options.ttl->count() == 0) {
        ++loaded->expired;
        client.Poll();
        continue;
      }
    }
    const uint64_t bytes = record.value.size();
    const auto done = [&failed, &under_way, &bytes_under_way, bytes, loaded,
                       key = record.key](const Result<uint64_t>& version) {
      --under_way;
      bytes_under_way -= bytes;
      if (version.ok()) {
        ++loaded->keys;
      } else if (version.status().code() == Code::kConflict) {
        ++loaded->present;
      } else if (failed.ok()) {
        failed = Status(version.status().code(),
                        fmt::format("key {}: {}", Printable(key), std::string(version.status().message())));
      }
    };
    while (under_way == puts_at_once || (under_way > 0 && bytes_under_way + bytes > kBytesAtOnce)) client.Poll();
    if (!failed.ok()) break;
    ++under_way;
    bytes_under_way += bytes;
    if (auto status = client.PutAsync(record.key, record.value, options, done); !status.ok()) done(status);
    if (!failed.ok()) break;
    if (reader.keys() % kKeysPerUpdate == 0) {
      progress.Update(reader.keys(),
                      static_cast<double>(reader.bytes()) / static_cast<double>(std::max<uint64_t>(size, 1)));
    }
  }
  if (auto status = client.Drain(); !status.ok() && failed.ok()) failed = std::move(status);
  loaded->damaged = reader.damaged();
  return failed;
}

}  // namespace erda::tools
