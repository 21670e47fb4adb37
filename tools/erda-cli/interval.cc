#include "tools/erda-cli/interval.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace erda::cli {

namespace {

std::string TextOf(const Reading& reading, const char* name) {
  const auto found = reading.info.find(name);
  return found == reading.info.end() ? "" : found->second;
}

uint64_t NumberIn(const Reading& reading, const char* name) {
  return std::strtoull(TextOf(reading, name).c_str(), nullptr, 10);
}

std::string Amount(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, kUnits[unit]);
}

std::string TimeText(std::chrono::nanoseconds time) {
  const auto nanos = static_cast<double>(time.count());
  if (nanos < 1e6) return fmt::format("{:.1f} us", nanos / 1e3);
  if (nanos < 1e9) return fmt::format("{:.1f} ms", nanos / 1e6);
  return fmt::format("{:.1f} s", nanos / 1e9);
}

// Counts only grow, but each is read separately.
uint64_t Since(uint64_t before, uint64_t now) { return now - std::min(now, before); }

LatencyHistogram Since(const LatencyHistogram& before, const LatencyHistogram& now) {
  LatencyHistogram times;
  for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i) times.counts[i] = Since(before.counts[i], now.counts[i]);
  return times;
}

std::string Quantiles(const LatencyHistogram& times) {
  std::string text;
  for (const double share : {0.5, 0.99, 0.999}) {
    text += fmt::format(" {:>10}", times.count() == 0 ? "-" : TimeText(times.Quantile(share)));
  }
  return text;
}

// Shows the live, used and free parts.
std::string Bar(uint64_t live, uint64_t used, uint64_t total) {
  constexpr size_t kWidth = 20;
  const auto part = [total](uint64_t bytes) {
    return static_cast<size_t>(
        std::lround(static_cast<double>(std::min(bytes, total)) / static_cast<double>(total) * kWidth));
  };
  std::string bar(kWidth, '.');
  if (total == 0) return bar;
  std::fill_n(bar.begin(), part(used), ':');
  std::fill_n(bar.begin(), part(std::min(live, used)), '#');
  return bar;
}

class Interval {
 public:
  Interval(const Reading* before, const Reading& now)
      : known_(before != nullptr && TextOf(*before, "server_id") == TextOf(now, "server_id")),
        before_(known_ ? *before : Reading{}),
        now_(now),
        seconds_(known_ ? std::max(std::chrono::duration<double>(now.at - before->at).count(), 1e-3) : 1) {}

  [[nodiscard]] std::vector<std::string> Lines() const {
    std::vector<std::string> lines = Totals();
    lines.emplace_back();
    lines.push_back(fmt::format("{:14} {:>12} {:>12} {:>10} {:>10} {:>10}", "requests",
                                known_ ? "per second" : "in all", "not ok", "p50", "p99", "p99.9"));
    for (size_t i = 0; i < now_.activity.operations.size(); ++i) {
      if (now_.activity.operations[i].count() > 0) lines.push_back(OfKind(i));
    }
    AddTimes(lines, "persist", &Activity::persist);
    AddTimes(lines, "hold", &Activity::hold);
    AddTimes(lines, "clean a region", &Activity::clean_region);
    lines.emplace_back();
    lines.push_back(fmt::format("{:14} {:>12} {:>12} {:>10} {:>10}", "fabric", known_ ? "requests/s" : "requests",
                                "connections", "refused", "violations"));
    for (size_t i = 0; i < now_.activity.fabrics.size(); ++i) lines.push_back(OfFabric(i));
    return lines;
  }

 private:
  [[nodiscard]] uint64_t number(const char* name) const { return NumberIn(now_, name); }
  // Returns the rate in a second, or the average since the start.
  [[nodiscard]] double Rate(uint64_t before, uint64_t now) const {
    return static_cast<double>(Since(before, now)) / seconds_;
  }
  [[nodiscard]] double RateOf(const char* name) const { return Rate(NumberIn(before_, name), number(name)); }
  [[nodiscard]] std::string Count(const char* name) const { return fmt::format("{:.0f}{}", RateOf(name), per()); }
  [[nodiscard]] std::string Bytes(const char* name) const { return Amount(RateOf(name)) + per(); }
  [[nodiscard]] const char* per() const { return known_ ? "/s" : ""; }

  [[nodiscard]] std::vector<std::string> Totals() const {
    const uint64_t total = number("log_bytes_total");
    const uint64_t used = number("log_bytes_used");
    const uint64_t live = number("log_bytes_live");
    const auto percent = [total](uint64_t part) {
      return total == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(total);
    };
    std::vector<std::string> lines = {
        known_ ? fmt::format("In the last {:.1f} s", seconds_) : "Since the server's start",
        fmt::format("pool      {} {}, {}, shards {}", TextOf(now_, "pool_uuid"),
                    Amount(static_cast<double>(number("pool_bytes"))), TextOf(now_, "durability"), number("shards")),
        fmt::format("log       [{}] {}, {:.1f} % used, {:.1f} % live, {} regions free", Bar(live, used, total),
                    Amount(static_cast<double>(total)), percent(used), percent(live), number("free_regions")),
        fmt::format("index     {} keys, {} slots", number("keys"), number("index_slots")),
        fmt::format("clients   {} connections, {} in flight; {} refused, {} puts delayed; {} violations",
                    number("clients"), number("in_flight"), Count("refused"), Count("puts_delayed"),
                    number("violations")),
        fmt::format("shards    {} written to NVM, {} sleeps, {} verified, {} damaged", Bytes("nvm_bytes_written"),
                    Count("sleeps"), Bytes("scrub_bytes"), number("damaged_keys")),
        fmt::format("cleaner   {} regions, {} copied, {} freed, {} written to NVM", Count("clean_regions"),
                    Bytes("clean_bytes_copied"), Bytes("clean_bytes_freed"), Bytes("clean_nvm_bytes")),
    };
    if (number("journal_ring_bytes") > 0) lines.push_back(Journal());
    return lines;
  }

  [[nodiscard]] std::string Journal() const {
    const uint64_t at = number("journal_checkpoint_at_ms");
    const auto now = std::chrono::floor<std::chrono::milliseconds>(now_.date.time_since_epoch()).count();
    const auto ring = static_cast<double>(number("journal_ring_bytes"));
    return fmt::format("journal   {} written, {} flushes, {} not held; ring {:.0f} % used; {}{}",
                       Bytes("journal_bytes_written"), Count("journal_flushes"),
                       Amount(static_cast<double>(Since(number("journal_held_bytes"), number("journal_stream_bytes")))),
                       100 * static_cast<double>(number("journal_ring_used")) / ring,
                       at == 0 ? "no checkpoint yet"
                               : fmt::format("checkpoint {} s ago", Since(at, static_cast<uint64_t>(now)) / 1000),
                       Failure());
  }

  // Servers of earlier versions do not tell the error number.
  [[nodiscard]] std::string Failure() const {
    if (number("journals_failed") == 0) return "";
    const uint64_t error = number("journal_error_number");
    return "; its disk has failed" + (error == 0 ? "" : fmt::format(": {}", std::strerror(static_cast<int>(error))));
  }

  [[nodiscard]] std::string OfKind(size_t i) const {
    constexpr auto kOk = static_cast<size_t>(Code::kOk);
    const OperationStats& now = now_.activity.operations[i];
    const OperationStats before = known_ ? before_.activity.operations[i] : OperationStats();
    return fmt::format("{:14} {:12.0f} {:12.0f}{}", now.kind, Rate(before.count(), now.count()),
                       Rate(before.count() - before.outcomes[kOk], now.count() - now.outcomes[kOk]),
                       Quantiles(Since(before.time, now.time)));
  }

  void AddTimes(std::vector<std::string>& lines, const char* name, LatencyHistogram Activity::*times) const {
    if ((now_.activity.*times).count() == 0) return;
    lines.push_back(
        fmt::format("{:14} {:25}{}", name, "", Quantiles(Since(before_.activity.*times, now_.activity.*times))));
  }

  [[nodiscard]] std::string OfFabric(size_t i) const {
    const FabricStats& now = now_.activity.fabrics[i];
    uint64_t before = 0;
    for (const FabricStats& each : before_.activity.fabrics) {
      if (each.scheme == now.scheme && each.device == now.device) before = each.requests;
    }
    const std::string name = now.scheme + (now.device.empty() ? "" : " " + now.device);
    return fmt::format("{:14} {:12.0f} {:12} {:10} {:10}", name, Rate(before, now.requests), now.connections,
                       now.refused, now.violations);
  }

  const bool known_;
  const Reading before_;
  const Reading& now_;
  const double seconds_;
};

}  // namespace

Result<Reading> Read(Client& client) {
  const auto info = client.ServerInfo();
  if (!info.ok()) return info.status();
  auto activity = client.ServerActivity();
  if (!activity.ok()) return activity.status();
  return Reading{std::chrono::steady_clock::now(),
                 std::chrono::system_clock::now(),
                 {info->begin(), info->end()},
                 *std::move(activity)};
}

std::vector<std::string> LinesOf(const Reading* before, const Reading& now) { return Interval(before, now).Lines(); }

}  // namespace erda::cli
