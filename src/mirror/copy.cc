#include "mirror/copy.h"

#include <algorithm>
#include <string>

#include "base/bytes.h"
#include "format/hello.h"
#include "mirror/breach.h"

namespace erda::mirror {

namespace {

// No cache line lies in two pieces, and so no word does.
static_assert(format::kShardRecordsOffset % kCacheLine == 0 && Copy::kPieceBytesMax % kCacheLine == 0);

// Returns how long a piece takes at this rate, rounded up.
Nanoseconds TimeFor(uint64_t bytes, uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return Nanoseconds(0);
  constexpr uint64_t kSecond = 1'000'000'000;
  static_assert(Copy::kPieceBytesMax <= UINT64_MAX / 2 / kSecond);
  return Nanoseconds((bytes * kSecond + bytes_per_second - 1) / bytes_per_second);
}

}  // namespace

Copy::Copy(std::span<std::byte> buffer, nvm::Writer& writer, const Clock& clock, uint64_t bytes_per_second)
    : buffer_(buffer.first(AlignDown(std::min<uint64_t>(buffer.size(), kPieceBytesMax), kCacheLine))),
      writer_(writer),
      clock_(clock),
      bytes_per_second_(bytes_per_second) {}

Status Copy::Begin(fabric::Channel& channel) {
  End();
  const auto offered = channel.peer_regions();
  if (offered.size() <= format::kPoolRegion || offered[format::kPoolRegion].size != size())
    return Breach("the primary", "it offers no pool of the size of the mirror's pool");
  channel_ = &channel;
  return {};
}

Status Copy::Step() {
  if (channel_ == nullptr || is_reading() || is_done()) return {};
  const Nanoseconds now = clock_.Now();
  if (now < due_at_) return {};
  const uint64_t bytes = std::min<uint64_t>(buffer_.size(), size() - at_);
  fabric::WorkRequest work;
  work.kind = fabric::OpKind::kRead;
  work.local = buffer_.first(bytes);
  work.remote = {format::kPoolRegion, at_};
  if (auto status = channel_->Post({&work, 1}); !status.ok()) {
    End();
    return status;
  }
  reading_bytes_ = bytes;
  // Time that passed without a Read is not made up for.
  due_at_ = now + TimeFor(bytes, bytes_per_second_);
  return {};
}

Status Copy::Take(const fabric::Completion& completion) {
  const uint64_t bytes = reading_bytes_;
  if (completion.code != Code::kOk) {
    End();
    return {completion.code, "the copy of the primary's pool stopped: a read of " + std::to_string(bytes) +
                                 " bytes at offset " + std::to_string(at_) + " failed"};
  }
  Store(buffer_.first(bytes));
  at_ += bytes;
  reading_bytes_ = 0;
  return {};
}

void Copy::End() {
  channel_ = nullptr;
  reading_bytes_ = 0;
}

void Copy::Store(std::span<const std::byte> piece) {
  for (uint64_t line = 0; line < piece.size(); line += kCacheLine) {
    const auto bytes = piece.subspan(line, std::min<uint64_t>(kCacheLine, piece.size() - line));
    if (!std::ranges::equal(bytes, writer_.Bytes(at_ + line, bytes.size()))) writer_.WriteWords(at_ + line, bytes);
  }
  // Pairs with the mark in the superblock that the mirror is in sync.
  writer_.Persist(at_, piece.size());
}

}  // namespace erda::mirror
