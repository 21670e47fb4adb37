#include "journal/ring_fixture.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/random.h"

namespace erda::journal {

std::vector<std::byte> SomeBytes(uint64_t size, uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> bytes(size);
  for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
    const uint64_t word = random.Next();
    std::memcpy(bytes.data() + at, &word, std::min(sizeof(word), size - at));
  }
  return bytes;
}

std::optional<Ring> MustOpenRing(Disk& disk, const RingPart& part, std::vector<VisitedRecord>* visited) {
  auto ring = Ring::Open(disk, part, kRingIdentity, [visited](const Record& record) {
    if (visited != nullptr) {
      visited->push_back({record.from, record.epoch, record.time_us, {record.bytes.begin(), record.bytes.end()}});
    }
    return Status();
  });
  EXPECT_TRUE(ring.ok()) << ring.status().ToString();
  if (!ring.ok()) return {};
  return *std::move(ring);
}

Status AppendTo(Ring& ring, std::span<const std::byte> bytes, uint64_t time_us) {
  return ring.Append(ring.end(), OnePart(bytes), time_us);
}

std::optional<Ring> RingTest::Open() {
  visited_.clear();
  return MustOpenRing(disk_, part_, &visited_);
}

void RingTest::Plant(uint64_t block, Place place, uint64_t epoch, std::span<const std::byte> bytes,
                     const RingIdentity& identity) {
  const AlignedBuffer buffer(RecordBlocks(bytes.size()) * kDiskBlock);
  const auto record = EncodeRecord(identity, {place, 0, epoch, 0, {}}, OnePart(bytes), buffer.bytes());
  ASSERT_TRUE(disk_.Write(part_.offset + block * kDiskBlock, record).ok());
  ASSERT_TRUE(disk_.Flush().ok());
}

std::string RingTest::Visited() const {
  std::string all;
  for (const auto& record : visited_) all.append(AsString(record.bytes));
  return all;
}

}  // namespace erda::journal
