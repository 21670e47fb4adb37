#include "bench/ycsb/workload.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace erda::bench {

namespace {

constexpr std::array<std::string_view, 3> kDistributions = {"zipfian", "uniform", "latest"};

}  // namespace

std::string_view NameOf(Distribution distribution) { return kDistributions.at(static_cast<size_t>(distribution)); }

std::optional<Distribution> FindDistribution(std::string_view name) {
  const auto found = std::find(kDistributions.begin(), kDistributions.end(), name);
  if (found == kDistributions.end()) return std::nullopt;
  return static_cast<Distribution>(found - kDistributions.begin());
}

std::string MixOf(const Workload& workload) {
  std::string mix;
  const auto add = [&mix](uint32_t percent, std::string_view what) {
    if (percent > 0) mix += fmt::format("{}{}% {}", mix.empty() ? "" : ", ", percent, what);
  };
  add(workload.get_percent(), workload.distribution == Distribution::kLatest ? "get of the latest" : "get");
  add(workload.update_percent, "update");
  add(workload.insert_percent, "insert");
  add(workload.rmw_percent, "read-modify-write");
  return mix;
}

std::optional<Workload> FindWorkload(std::string_view name) {
  for (const Workload& workload : kWorkloads) {
    if (workload.name == name) return workload;
  }
  return std::nullopt;
}

Inserts::Inserts(uint64_t first, uint64_t most) : first_(first), ended_(most / 64 + 1), next_(first), limit_(first) {}

bool Inserts::Ended(uint64_t record) const {
  const uint64_t i = record - first_;
  return i / 64 < ended_.size() && (ended_[i / 64].load() >> (i % 64) & 1) != 0;
}

// Sequentially consistent: if two threads end neighbours at the same time, one of them sees the other's bit and moves
// the limit over both.
void Inserts::End(uint64_t record) {
  const uint64_t i = record - first_;
  ended_[i / 64].fetch_or(uint64_t{1} << (i % 64));
  uint64_t limit = limit_.load();
  while (Ended(limit)) {
    if (limit_.compare_exchange_weak(limit, limit + 1)) ++limit;
  }
}

OpSource::OpSource(const Workload& workload, uint64_t records, uint64_t seed, Inserts& inserts)
    : workload_(workload), random_(seed), zipfian_(records), scatter_(records), inserts_(inserts) {}

Op OpSource::Next() {
  uint64_t draw = random_.Uniform(100);
  if (draw < workload_.insert_percent) return {OpKind::kInsert, inserts_.Begin()};
  draw -= workload_.insert_percent;

  OpKind kind = OpKind::kGet;
  if (draw < workload_.update_percent) {
    kind = OpKind::kUpdate;
  } else if (draw < workload_.update_percent + workload_.rmw_percent) {
    kind = OpKind::kReadModifyWrite;
  }
  if (workload_.distribution == Distribution::kUniform) return {kind, random_.Uniform(zipfian_.size())};
  if (workload_.distribution == Distribution::kZipfian) return {kind, scatter_(zipfian_.Next(random_))};
  const uint64_t limit = inserts_.limit();
  if (limit != zipfian_.size()) zipfian_.Resize(limit);
  return {kind, limit - 1 - zipfian_.Next(random_)};
}

namespace {

constexpr size_t kOffsets = 64 * 1024;  // Places in the noise where a body can begin.

// "00" to "99". Digits come two at a time, and each half of a number separately, so that the processor works on both at
// once.
constexpr auto kTwoDigits = [] {
  std::array<std::array<char, 2>, 100> digits{};
  for (size_t i = 0; i < digits.size(); ++i) {
    digits[i] = {static_cast<char>('0' + i / 10), static_cast<char>('0' + i % 10)};
  }
  return digits;
}();

void TenDigits(uint64_t number, char* out) {
  const auto high = static_cast<uint32_t>(number / 100'000'000);
  const auto low = static_cast<uint32_t>(number % 100'000'000);
  const std::array<uint32_t, 5> pairs = {high, low / 1'000'000, low / 10'000 % 100, low / 100 % 100, low % 100};
  for (size_t i = 0; i < pairs.size(); ++i) std::memcpy(out + 2 * i, kTwoDigits[pairs[i]].data(), 2);
}

}  // namespace

Key KeyOf(uint64_t record) {
  constexpr uint64_t kTenDigits = 10'000'000'000;
  Key key = {'u', 's', 'e', 'r'};
  const uint64_t hash = Random::Mix(record + 1);
  TenDigits(hash / kTenDigits, key.data() + 4);
  TenDigits(hash % kTenDigits, key.data() + 14);
  return key;
}

Values::Values(size_t value_bytes) : value_bytes_(value_bytes), noise_(value_bytes + kOffsets, '\0') {
  Random random(1);
  for (size_t i = 0; i < noise_.size(); i += sizeof(uint64_t)) {
    const uint64_t word = random.Next();
    std::memcpy(&noise_[i], &word, std::min(sizeof(word), noise_.size() - i));
  }
}

std::string_view Values::Body(uint64_t record, uint64_t sequence) const {
  const size_t size = value_bytes_ - std::min(value_bytes_, kHeaderBytes);
  return std::string_view(noise_).substr(Random::Mix(Random::Mix(record + 1) + sequence) % kOffsets, size);
}

void Values::Fill(std::span<char> out, uint64_t record, uint64_t sequence) const {
  const std::array<uint64_t, 2> header = {record, sequence};
  static_assert(sizeof(header) == kHeaderBytes);
  std::memcpy(out.data(), header.data(), std::min(out.size(), kHeaderBytes));
  if (out.size() <= kHeaderBytes) return;
  const std::string_view body = Body(record, sequence);
  std::memcpy(out.data() + kHeaderBytes, body.data(), body.size());
}

std::string Values::Check(std::string_view value, uint64_t record) const {
  if (value.size() != value_bytes_) return fmt::format("the value has {} bytes, not {}", value.size(), value_bytes_);
  std::array<uint64_t, 2> header;
  std::memcpy(header.data(), value.data(), kHeaderBytes);
  if (header[0] != record) return "the value was written for another key";
  if (value.substr(kHeaderBytes) != Body(record, header[1])) return "the value is not one that was written as a whole";
  return "";
}

}  // namespace erda::bench
