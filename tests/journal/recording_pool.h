// A pool in memory that notes each write-back and each fence, for the tests of mirrors.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nvm/pool.h"

namespace erda::journal {

class RecordingPool final : public nvm::Pool {
 public:
  explicit RecordingPool(std::vector<std::byte> content) : content_(std::move(content)) { bytes_ = content_; }

  [[nodiscard]] MemoryView view() const override { return {bytes_, -1, -1}; }
  [[nodiscard]] bool created() const override { return false; }
  void RemoveIfCreated() override {}
  Status Widen(uint64_t /*kept*/, uint64_t /*size*/) override { return {Code::kInvalidArgument, "a test"}; }
  // Returns what came since the last call: "100+8" for a write-back of 8 bytes at 100, and "fence".
  [[nodiscard]] std::vector<std::string> Taken() { return std::exchange(events_, {}); }

 private:
  void FlushRange(const std::byte* begin, size_t size) override {
    events_.push_back(std::to_string(begin - bytes_.data()) + "+" + std::to_string(size));
  }
  void Drain() override { events_.emplace_back("fence"); }

  std::vector<std::byte> content_;
  std::vector<std::string> events_;
};

}  // namespace erda::journal
