#include "nvm/writer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/bytes.h"

namespace erda::nvm {

namespace {

constexpr std::array<std::byte, 4096> kZeroes{};

}  // namespace

void Writer::WriteWords(uint64_t offset, std::span<const std::byte> from) {
  constexpr uint64_t kWord = sizeof(uint64_t);
  const uint64_t before = std::min(AlignUp(offset, kWord) - offset, from.size());
  Write(offset, from.first(before));
  offset += before;
  from = from.subspan(before);
  for (; from.size() >= kWord; offset += kWord, from = from.subspan(kWord)) Store64(offset, LoadAs<uint64_t>(from));
  Write(offset, from);
}

void Writer::ZeroOut(uint64_t offset, uint64_t size) {
  for (uint64_t at = offset, end = offset + size; at < end;) {
    const uint64_t part = std::min(kZeroes.size() - at % kZeroes.size(), end - at);
    if (!IsZero(Bytes(at, part))) Write(at, std::span(kZeroes).first(part));
    at += part;
  }
  Flush(offset, size);
}

void Writer::WillUse(uint64_t offset, uint64_t size) const {
  static const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t end = offset + size;
  // A mapping begins at a page. Other memory refuses the advice, and does not need it. The advice goes in pieces: for
  // one request the kernel reads no more than the device likes to read at once.
  for (uint64_t at = AlignDown(offset, page); at < end; at += kPieceAhead) {
    if (::madvise(bytes_.data() + at, std::min(kPieceAhead, end - at), MADV_WILLNEED) != 0) return;
  }
}

void Writer::WaitLatency() const {
  const auto until = std::chrono::steady_clock::now() + pool_.write_latency();
  while (std::chrono::steady_clock::now() < until) {
  }
}

}  // namespace erda::nvm
