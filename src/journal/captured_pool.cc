#include "journal/captured_pool.h"

#include <string>
#include <utility>

#include "base/bytes.h"

namespace erda::journal {

CapturedPool::CapturedPool(nvm::Pool& image, Stream& stream, Medium medium)
    : image_(image), image_writer_(image), stream_(stream), medium_(std::move(medium)), fenced_(medium_.mirrored) {
  bytes_ = image.view().bytes;
  durability_ = nvm::Durability::kPowerSafe;
}

MemoryView CapturedPool::view() const {
  MemoryView view = image_.view();
  view.bytes = bytes_;  // Narrow may have made it shorter.
  return view;
}

Status CapturedPool::Widen(uint64_t /*kept*/, uint64_t size) {
  return {Code::kInvalidArgument, "a pool with a journal has " + std::to_string(this->size()) +
                                      " bytes and cannot get " + std::to_string(size) + " while it is open"};
}

Status CapturedPool::AwaitHeld() {
  if (held() >= place()) return {};
  FenceImage();
  return FrontHoldsAll() ? Status() : medium_.await_held();
}

void CapturedPool::AwaitRoom() {
  dropped_ = !medium_.health->ok();
  if (dropped_) return;
  FenceImage();
  medium_.await_room();
}

void CapturedPool::FlushZeroes(const std::byte* begin, size_t size) {
  if (medium_.mirrored) image_writer_.Flush(static_cast<uint64_t>(begin - bytes_.data()), size);
  CaptureZeroes(begin, size);
}

// Other processes may store into the range meanwhile. As on NVM, the medium then has any mixture of old and new bytes.
void CapturedPool::FlushRange(const std::byte* begin, size_t size) {
  if (medium_.mirrored) image_writer_.Flush(static_cast<uint64_t>(begin - bytes_.data()), size);
  Capture(begin, size);
}

void CapturedPool::CaptureZeroes(const std::byte* begin, size_t size) {
  const auto offset = static_cast<uint64_t>(begin - bytes_.data());
  while (!dropped_ && !stream_.AppendZeroes(offset, size, fenced_)) AwaitRoom();
  fenced_ = false;
}

void CapturedPool::Capture(const std::byte* begin, size_t size) {
  auto offset = static_cast<uint64_t>(begin - bytes_.data());
  auto range = std::span(begin, size);
  if (size >= kZeroesMin && IsZero(range)) return CaptureZeroes(begin, size);
  while (!range.empty()) {
    const uint64_t piece = FirstPiece(offset, range.size());
    while (!dropped_ && !stream_.Append(offset, range.first(piece), fenced_)) AwaitRoom();
    fenced_ = false;
    offset += piece;
    range = range.subspan(piece);
  }
}

}  // namespace erda::journal
