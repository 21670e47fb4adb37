#include "crash/judge.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/clock.h"

namespace erda::crash {

namespace {

using sim::Record;

// Returns true if the operations fit into one history that begins with a put of `held`.
bool Fits(uint64_t held, const std::vector<Operation>& operations) {
  std::vector<Record> records;
  uint64_t events = 0;
  if (held != Record::kAbsent) {
    records.push_back({.client = 0, .action = Action::kPut, .value = held, .begin = 1, .end = 2, .code = Code::kOk});
    events = 2;
  }
  // Sorts by time. If two times are equal, the begin comes first, since that claims less.
  std::vector<std::tuple<uint64_t, bool, size_t>> order;  // time, whether it is an end, record
  for (const Operation& o : operations) {
    order.emplace_back(o.begin, false, records.size());
    if (o.end != Record::kNever) order.emplace_back(o.end, true, records.size());
    records.push_back({.client = o.client, .key = o.key, .action = o.action, .value = o.value, .code = o.code});
  }
  std::sort(order.begin(), order.end());
  for (const auto& [time, is_end, record] : order) (is_end ? records[record].end : records[record].begin) = ++events;
  return sim::IsLinearizable(records);
}

// Returns the operations as the judge counts them after a power cut, which may have undone puts with kPlaced. `holds`
// is the value that the key has now, and tells which ones. A put that had ended before the put of `holds` began must
// have taken effect. Each later placed put may be undone, and gets that saw its value before the cut then prove
// nothing.
std::vector<Operation> WithUndone(const std::vector<Operation>& done, uint64_t holds) {
  uint64_t since = 0;
  for (const Operation& o : done) {
    if (o.action == Action::kPut && o.value == holds) since = o.begin;
  }
  const auto undone = [&](const Operation& o) { return o.placed && o.value != holds && o.end > since; };
  std::vector<uint64_t> values;
  std::vector<Operation> left;
  for (Operation o : done) {
    if (undone(o)) {
      values.push_back(o.value);
      o.code = Code::kUnavailable;
    }
    left.push_back(o);
  }
  std::erase_if(left, [&](const Operation& o) {
    return o.action == Action::kGet && std::find(values.begin(), values.end(), o.value) != values.end();
  });
  return left;
}

// If a history fits, each part of it from the start fits, too. Returns the first end of an operation up to which this
// history does not fit, or the last end.
uint64_t FirstMisfit(uint64_t held, const std::vector<Operation>& operations) {
  const auto fits_until = [&](uint64_t time) {
    std::vector<Operation> until;
    for (Operation o : operations) {
      if (o.begin > time) continue;
      if (o.end > time) o = {o.client, o.number, o.key, o.action, o.begin, Record::kNever, Code::kUnavailable, o.value};
      until.push_back(o);
    }
    return Fits(held, until);
  };
  std::vector<uint64_t> ends;
  for (const Operation& o : operations) {
    if (o.end != Record::kNever) ends.push_back(o.end);
  }
  if (ends.empty()) return Record::kNever;
  std::sort(ends.begin(), ends.end());
  const auto first = std::partition_point(ends.begin(), ends.end(), fits_until);
  return first == ends.end() ? ends.back() : *first;
}

using Lines = std::vector<std::pair<uint64_t, std::string>>;  // each with its time

// Returns the lines of the history that lead to the fault, up to the end of the wrong operation at `wrong`.
std::string History(uint64_t held, const std::vector<Operation>& operations, const Lines& notes, uint64_t wrong) {
  constexpr size_t kLines = 40;
  if (operations.empty()) return "";
  uint64_t first = operations[0].begin;
  for (const Operation& o : operations) first = std::min(first, o.begin);
  const auto time = [first](uint64_t at) {
    return at == Record::kNever ? "never"
                                : fmt::format("{:.1f}", (static_cast<double>(at) - static_cast<double>(first)) / 1e3);
  };
  Lines lines;
  for (const auto& [at, what] : notes) lines.emplace_back(at, fmt::format("{} us: {}", time(at), what));
  for (const Operation& o : operations) {
    const char* mark = o.end == wrong && wrong != Record::kNever ? "  <-" : "";
    lines.emplace_back(o.begin, fmt::format("[{}, {}] us: {}{}", time(o.begin), time(o.end), ToText(o), mark));
  }
  std::erase_if(lines, [wrong](const auto& line) { return line.first > wrong; });
  std::sort(lines.begin(), lines.end());
  std::string text = held == Record::kAbsent ? "  at first: absent\n" : "  at first: " + ValueName(held) + "\n";
  const size_t skipped = lines.size() - std::min(lines.size(), kLines);
  if (skipped > 0) text += fmt::format("  ({} lines left out)\n", skipped);
  for (size_t i = skipped; i < lines.size(); ++i) text += "  " + lines[i].second + "\n";
  return text;
}

// Returns the fault of one operation alone, or nothing.
std::string Fault(const Operation& o, const std::unordered_map<uint64_t, uint32_t>& begun) {
  const bool full = o.code == Code::kResourceExhausted && o.action == Action::kPut;
  const bool unknown = o.code == Code::kUnavailable || o.code == Code::kTimeout;
  const bool absent = o.code == Code::kNotFound && o.action != Action::kPut;
  if (o.code != Code::kOk && !unknown && !absent && !full) return "an operation failed";
  if (o.action != Action::kGet || o.code != Code::kOk) return "";
  if (o.value == kDamaged) return "a get found a value that is not whole, or not of its key";
  const auto put = begun.find(o.value);
  return put == begun.end() || put->second != o.key ? "a get found a value that nobody put" : "";
}

}  // namespace

std::string Judge::Check(std::span<const Operation> done, std::span<const Operation> reads, Death death) {
  std::vector<std::vector<Operation>> done_of(held_.size());
  std::vector<std::vector<Operation>> reads_of(held_.size());
  for (const Operation& o : done) {
    if (o.key >= held_.size()) return "there is no such key: " + ToText(o);
    if (o.action == Action::kPut) begun_.emplace(o.value, o.key);
    done_of[o.key].push_back(o);
  }
  for (const Operation& o : reads) {
    if (o.key >= held_.size() || o.action != Action::kGet) return "not a read at the end: " + ToText(o);
    reads_of[o.key].push_back(o);
  }
  for (uint32_t key = 0; key < held_.size(); ++key) {
    const uint64_t held = held_[key];
    const Wrong wrong = CheckKey(key, done_of[key], reads_of[key], death);
    if (wrong.what.empty()) continue;
    done_of[key].insert(done_of[key].end(), reads_of[key].begin(), reads_of[key].end());
    return fmt::format("'{}': {}\n{}", KeyName(key), wrong.what, History(held, done_of[key], notes_, wrong.end));
  }
  notes_.clear();
  return "";
}

void Judge::Note(const std::string& what) {
  notes_.emplace_back(static_cast<uint64_t>(SteadyClock::Instance().Now().count()), what);
}

Judge::Wrong Judge::CheckKey(uint32_t key, std::vector<Operation> done, const std::vector<Operation>& reads,
                             Death death) {
  for (const std::span<const Operation> operations : {std::span<const Operation>(done), std::span(reads)}) {
    for (const Operation& o : operations) {
      if (const std::string fault = Fault(o, begun_); !fault.empty()) return {fault + ": " + ToText(o), o.end};
    }
  }
  const auto answered = std::find_if(reads.rbegin(), reads.rend(), [](const Operation& o) {
    return o.code == Code::kOk || o.code == Code::kNotFound;
  });
  if (answered == reads.rend()) return {"it could not be read at the end"};

  const uint64_t held = std::exchange(held_[key], answered->code == Code::kOk ? answered->value : Record::kAbsent);
  if (!Fits(held, done)) return {"no order of the operations explains what the clients saw", FirstMisfit(held, done)};
  if (death == Death::kPower) done = WithUndone(done, held_[key]);
  done.insert(done.end(), reads.begin(), reads.end());
  if (!Fits(held, done)) return {"what is there at the end is not what had to be kept", FirstMisfit(held, done)};
  return {};
}

}  // namespace erda::crash
