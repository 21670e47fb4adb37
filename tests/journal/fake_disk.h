// A disk in memory with a volatile cache, and with power cuts and errors at chosen calls.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/random.h"
#include "journal/disk.h"

namespace erda::journal {

// A power cut keeps or loses each sector of the writes that no flush covers, in any order. A sector that several such
// writes changed has the bytes of any of them afterwards.
class FakeDisk final : public Disk {
 public:
  // The disk writes sectors of that size whole, or not at all.
  FakeDisk(uint64_t size, uint64_t sector, uint64_t seed);

  Status Read(uint64_t offset, std::span<std::byte> to) override;
  Status Write(uint64_t offset, std::span<const std::byte> from) override;
  Status Flush() override;
  [[nodiscard]] uint64_t size() const override { return seen_.size(); }

  // The power goes off in this write or flush, counted from the next one as 0. It and all later calls fail, until
  // PowerCut ends the time without power.
  void CutAt(uint64_t call) { cut_at_ = calls_ + call; }
  [[nodiscard]] bool off() const { return off_; }
  // This write or flush fails, and later ones do not. A write that fails is done in part. A flush that fails keeps some
  // sectors and forgets others, as the kernel does. Reads still return the new bytes of a forgotten sector. But no
  // flush writes it, and Reopen or PowerCut takes it.
  void FailAt(uint64_t call) { fail_at_ = calls_ + call; }
  // Returns true from that failure on, until PowerCut or Reopen.
  [[nodiscard]] bool failed() const { return failed_; }
  // Each flush takes this long.
  void FlushTakes(std::chrono::milliseconds time) { flush_takes_ = time; }
  // The number of writes and flushes so far.
  [[nodiscard]] uint64_t calls() const { return calls_; }

  // The power goes off and comes back.
  void PowerCut();
  // A process ends and the next one opens the disk. The cache stays, and forgotten sectors show what the disk has.
  void Reopen();

  // The bytes that reads return, for a test that damages them.
  [[nodiscard]] std::span<std::byte> bytes() { return seen_; }

 private:
  enum class Fate : uint8_t { kWorks, kFails, kPowerCut };
  Fate NextCall();
  // Fails the test if the caller may not read or write there.
  [[nodiscard]] bool Fits(uint64_t offset, std::span<const std::byte> bytes) const;
  void Keep(uint64_t sector, std::span<const std::byte> bytes);
  [[nodiscard]] std::span<const std::byte> Sector(uint64_t sector) const;

  const uint64_t sector_;
  std::atomic<std::chrono::milliseconds> flush_takes_{};
  Random random_;
  std::vector<std::byte> seen_;     // The bytes that reads return.
  std::vector<std::byte> durable_;  // A power cut keeps these in any case.
  // By sector: the bytes of each write since the last flush.
  std::map<uint64_t, std::vector<std::vector<std::byte>>> cached_;
  std::atomic<uint64_t> calls_ = 0;
  uint64_t cut_at_ = UINT64_MAX;
  uint64_t fail_at_ = UINT64_MAX;
  bool off_ = false;
  bool failed_ = false;
};

}  // namespace erda::journal
