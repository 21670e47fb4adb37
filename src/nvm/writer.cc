#include "nvm/writer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/bytes.h"

namespace erda::nvm {

namespace {

constexpr std::array<std::byte, 4096> kZeroes{};

}  // namespace

void Writer::Write(uint64_t offset, std::span<const std::byte> from) {
  if (from.empty()) return;  // memcpy takes no null pointer, however few the bytes
  std::memcpy(bytes_.data() + offset, from.data(), from.size());
  counters_.bytes += from.size();
}

void Writer::Zero(uint64_t offset, uint64_t size) {
  for (uint64_t left = size; left > 0;) {
    const uint64_t part = std::min<uint64_t>(kZeroes.size(), left);
    Write(offset + size - left, std::span(kZeroes).first(part));
    left -= part;
  }
  Flush(offset, size);
}

void Writer::ZeroOut(uint64_t offset, uint64_t size) {
  for (uint64_t end = offset + size; offset < end;) {
    const uint64_t part = std::min(kZeroes.size() - offset % kZeroes.size(), end - offset);
    if (!IsZero(Bytes(offset, part))) {
      Write(offset, std::span(kZeroes).first(part));
      Flush(offset, part);
    }
    offset += part;
  }
}

void Writer::Flush(uint64_t offset, uint64_t size) {
  if (size == 0) return;
  pool_.FlushRange(bytes_.data() + offset, size);
  flushed_ = true;
  ++counters_.flushes;
}

void Writer::Fence() {
  if (!flushed_) return;
  pool_.Drain();
  flushed_ = false;
  ++counters_.fences;
  if (const auto latency = pool_.write_latency(); latency.count() > 0) {
    const auto until = std::chrono::steady_clock::now() + latency;
    while (std::chrono::steady_clock::now() < until) {
    }
  }
}

}  // namespace erda::nvm
