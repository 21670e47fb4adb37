// The memory that the processes of one measurement share: the counts of the workers, and the sign to stop.
//
// A file that each process maps. Each place belongs to one worker. The measuring process reads all places.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "erda/status.h"

namespace erda::shortage {

class Board {
 public:
  static constexpr uint64_t kPlaces = 128;

  // Makes the file.
  static Result<std::unique_ptr<Board>> Create(const std::string& path) { return Map(path, true); }
  static Result<std::unique_ptr<Board>> Open(const std::string& path) { return Map(path, false); }
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  ~Board();

  // The operations of a worker. Relaxed: only the number counts.
  void Count(uint64_t place, uint64_t operations) { At(place).store(operations, std::memory_order_relaxed); }
  [[nodiscard]] uint64_t CountOf(uint64_t place) const { return At(place).load(std::memory_order_relaxed); }
  // Release and acquire: a worker that sees the sign sees everything from before.
  void Stop() { At(kPlaces).store(1, std::memory_order_release); }
  [[nodiscard]] bool stopped() const { return At(kPlaces).load(std::memory_order_acquire) != 0; }

 private:
  static constexpr uint64_t kLine = 64;
  static constexpr uint64_t kBytes = (kPlaces + 1) * kLine;

  explicit Board(std::byte* memory) : memory_(memory) {}
  static Result<std::unique_ptr<Board>> Map(const std::string& path, bool create);
  [[nodiscard]] std::atomic_ref<uint64_t> At(uint64_t place) const {
    return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(memory_ + place * kLine));
  }

  std::byte* const memory_;
};

}  // namespace erda::shortage
