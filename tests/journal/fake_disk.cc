#include "journal/fake_disk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace erda::journal {

FakeDisk::FakeDisk(uint64_t size, uint64_t sector, uint64_t seed)
    : sector_(sector), random_(seed), seen_(size), durable_(size) {
  EXPECT_TRUE(size % kBlock == 0 && kBlock % sector == 0);
}

FakeDisk::Fate FakeDisk::NextCall() {
  const uint64_t call = calls_++;
  if (call == cut_at_) off_ = true;
  if (off_) return Fate::kPowerCut;
  if (call != fail_at_) return Fate::kWorks;
  failed_ = true;
  return Fate::kFails;
}

void FakeDisk::Keep(uint64_t sector, std::span<const std::byte> bytes) {
  std::ranges::copy(bytes, durable_.begin() + static_cast<std::ptrdiff_t>(sector * sector_));
}

std::span<const std::byte> FakeDisk::Sector(uint64_t sector) const {
  return std::span(seen_).subspan(sector * sector_, sector_);
}

bool FakeDisk::Fits(uint64_t offset, std::span<const std::byte> bytes) const {
  const bool aligned =
      offset % kBlock == 0 && bytes.size() % kBlock == 0 && reinterpret_cast<uintptr_t>(bytes.data()) % kBlock == 0;
  const bool inside = offset <= seen_.size() && bytes.size() <= seen_.size() - offset;
  EXPECT_TRUE(aligned && inside) << bytes.size() << " bytes at " << offset;
  return aligned && inside;
}

Status FakeDisk::Read(uint64_t offset, std::span<std::byte> to) {
  if (off_) return {Code::kUnavailable, "the power is off"};
  if (!Fits(offset, to)) return {Code::kInvalidArgument, "a read that no disk does"};
  std::memcpy(to.data(), seen_.data() + offset, to.size());
  return {};
}

Status FakeDisk::Write(uint64_t offset, std::span<const std::byte> from) {
  if (!Fits(offset, from)) return {Code::kInvalidArgument, "a write that no disk does"};
  const bool was_off = off_;
  const Fate fate = NextCall();
  if (was_off) return {Code::kUnavailable, "the power is off"};
  for (uint64_t at = 0; at < from.size(); at += sector_) {
    if (fate == Fate::kFails && random_.Chance(0.5)) continue;
    std::memcpy(seen_.data() + offset + at, from.data() + at, sector_);
    const auto bytes = Sector((offset + at) / sector_);
    cached_[(offset + at) / sector_].emplace_back(bytes.begin(), bytes.end());
  }
  if (fate == Fate::kPowerCut) return {Code::kUnavailable, "the power goes off in a write"};
  return fate == Fate::kFails ? Status(Code::kInternal, "the disk fails in a write") : Status();
}

Status FakeDisk::Flush() {
  std::this_thread::sleep_for(flush_takes_.load());
  const Fate fate = NextCall();
  if (fate == Fate::kPowerCut) return {Code::kUnavailable, "the power goes off in a flush"};
  for (const auto& [sector, writes] : cached_) {
    if (fate == Fate::kFails && random_.Chance(0.5)) continue;
    Keep(sector, writes.back());
  }
  cached_.clear();
  return fate == Fate::kFails ? Status(Code::kInternal, "the disk fails in a flush") : Status();
}

void FakeDisk::PowerCut() {
  // Many cuts keep all of the cache, nothing, or almost all.
  constexpr double kChances[] = {0, 0.1, 0.5, 0.9, 1};
  const double kept = kChances[random_.Uniform(std::size(kChances))];
  for (const auto& [sector, writes] : cached_) {
    if (random_.Chance(kept)) Keep(sector, writes[random_.Uniform(writes.size())]);
  }
  cached_.clear();
  seen_ = durable_;
  off_ = failed_ = false;
  cut_at_ = fail_at_ = UINT64_MAX;
}

void FakeDisk::Reopen() {
  seen_ = durable_;
  for (const auto& [sector, writes] : cached_) {
    std::ranges::copy(writes.back(), seen_.begin() + static_cast<std::ptrdiff_t>(sector * sector_));
  }
  failed_ = false;
  cut_at_ = fail_at_ = UINT64_MAX;
}

}  // namespace erda::journal
