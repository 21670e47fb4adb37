// A ring over many lives of its process, with power cuts, kills and errors of the disk at random calls. The test has
// its own account of the stream, and compares at each start.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "journal/fake_disk.h"
#include "journal/ring.h"
#include "journal/ring_fixture.h"

namespace erda::journal {
namespace {

#ifdef ERDA_SANITIZED
constexpr uint64_t kRingSeeds = 200;
#else
constexpr uint64_t kRingSeeds = 2000;
#endif
constexpr uint64_t kLives = 16;

// Counts of the situations that the runs came to. A test that never gets there proves nothing.
struct RingRuns {
  uint64_t records = 0;
  uint64_t wraps = 0;
  uint64_t refused = 0;
  uint64_t cuts_that_lost = 0;          // Some of the stream that was not held.
  uint64_t cuts_that_kept = 0;          // All of it.
  uint64_t kills_that_go_on = 0;        // In the middle of a stream whose end the disk did not have.
  uint64_t checkpoints_that_count = 0;  // Though their flush never returned.
  uint64_t checkpoints_that_do_not = 0;
  uint64_t failures = 0;
};

class RingLives {
 public:
  RingLives(uint64_t seed, RingRuns* runs)
      : random_(seed),
        runs_(*runs),
        sizes_(random_.Between(1, std::size(kSizes))),
        part_{random_.Uniform(2) * Disk::kBlock, random_.Between(8, 24) * Disk::kBlock},
        disk_(part_.offset + part_.size, kSectors[random_.Uniform(std::size(kSectors))], random_.Next()) {}

  void Run() {
    ASSERT_TRUE(Ring::Format(disk_, part_, kRingIdentity).ok());
    for (uint64_t life = 0; life < kLives && !testing::Test::HasFatalFailure(); ++life) Live();
  }

 private:
  // The smallest one tears a checkpoint block, which a real disk rarely does.
  static constexpr uint64_t kSectors[] = {32, 512, 512, 4096, 4096};

  // Some fill their blocks. A run uses the first ones alone: the fewer there are, the more often do records of several
  // lives end at the same places.
  static constexpr uint64_t kSizes[] = {RecordRoom(1), 100, RecordRoom(1) + 1, RecordRoom(5), 3 * 4096, RecordRoom(2)};

  // Returns a time that follows from the place.
  static uint64_t TimeAt(Place place) { return place * 7 + 1; }

  void Live() {
    if (random_.Chance(0.7)) {
      disk_.CutAt(random_.Uniform(40));
    } else if (random_.Chance(0.5)) {
      disk_.FailAt(random_.Uniform(40));
    }
    if (Start()) {
      const uint64_t steps = random_.Uniform(random_.Chance(0.5) ? 3 : 30);
      for (uint64_t i = 0; i < steps && ring_->failure().ok() && !testing::Test::HasFatalFailure(); ++i) Step();
      if (ring_->failure().ok() && random_.Chance(0.4)) WriteSome();
      if (!ring_->failure().ok()) TryAfterFailure();
      EXPECT_EQ(disk_.failed() || disk_.off(), !ring_->failure().ok());
    }
    ring_.reset();
    if (disk_.off() || random_.Chance(0.3)) {
      disk_.PowerCut();
      image_is_lost_ = true;
    } else {
      disk_.Reopen();
    }
  }

  // Opens the ring, and begins an epoch if there is no image of the stream. Returns false after an error.
  bool Start() {
    Open();
    if (testing::Test::HasFatalFailure() || !ring_) return false;
    if (!image_is_lost_) {
      if (ring_->end() < stream_.size()) ++runs_.kills_that_go_on;
      return true;
    }
    ++(ring_->end() < stream_.size() ? runs_.cuts_that_lost : runs_.cuts_that_kept);
    stream_.resize(ring_->end());
    const uint64_t before = ring_->epoch();
    if (!ring_->BeginEpoch(ring_->end()).ok()) return false;
    epoch_ = ring_->epoch();
    EXPECT_EQ(epoch_, before + 1);
    image_is_lost_ = false;
    return true;
  }

  void Open() {
    std::vector<std::byte> replayed;
    std::vector<std::pair<Place, Place>> records;
    uint64_t epoch = 0;
    bool times_fit = true;
    bool epochs_fit = true;
    auto ring = Ring::Open(disk_, part_, kRingIdentity, [&](const Record& record) {
      replayed.insert(replayed.end(), record.bytes.begin(), record.bytes.end());
      records.emplace_back(record.from, record.end());
      times_fit = times_fit && record.time_us == TimeAt(record.from);
      epochs_fit = epochs_fit && record.epoch >= epoch;
      epoch = record.epoch;
      return Status();
    });
    if (!ring.ok()) {
      ASSERT_TRUE(disk_.off() || ring.status().code() == Code::kInternal) << ring.status().ToString();
      return;
    }
    ASSERT_GE(ring->epoch(), epoch_);
    const Place begin = ring->checkpoint();
    ASSERT_TRUE(begin == checkpoint_ || begin == asked_) << begin << " is neither " << checkpoint_ << " nor " << asked_;
    if (checkpoint_ != asked_) ++(begin == asked_ ? runs_.checkpoints_that_count : runs_.checkpoints_that_do_not);
    checkpoint_ = asked_ = begin;
    ASSERT_GE(ring->end(), held_) << "the ring lost what it had acknowledged";
    ASSERT_LE(ring->end(), stream_.size()) << "the ring has more than was written";
    ASSERT_EQ(ring->held(), ring->end());
    ASSERT_EQ(replayed.size(), ring->end() - begin);
    const auto expected = std::span(stream_).subspan(begin, replayed.size());
    ASSERT_TRUE(std::ranges::equal(replayed, expected)) << "the ring has other bytes than were written";
    ASSERT_TRUE(times_fit);
    ASSERT_TRUE(epochs_fit);
    ends_.clear();
    Place next = begin;
    for (const auto& [from, end] : records) {
      ASSERT_EQ(from, next);
      next = end;
      ends_.push_back(end);
    }
    held_ = ring->end();
    ASSERT_TRUE(ring->CheckEnd().ok());
    ring_.emplace(*std::move(ring));
  }

  void Step() {
    if (random_.Chance(0.65)) {
      if (random_.Chance(0.5)) {
        if (Write(&Ring::Append)) held_ = ring_->end();
      } else {
        WriteSome();
        // Otherwise the next step or the process's end comes before the flush.
        if (ring_->failure().ok() && random_.Chance(0.9) && ring_->Flush().ok()) held_ = ring_->end();
      }
    } else {
      Checkpoint();
    }
    ASSERT_EQ(ring_->held(), held_);
  }

  // Writes records without a flush.
  void WriteSome() {
    for (uint64_t records = random_.Between(1, 3); records > 0 && Write(&Ring::Write); --records) continue;
  }

  // Writes the next piece of the stream. Returns false if that was not possible.
  bool Write(Status (Ring::*call)(Place, Parts, uint64_t)) {
    const uint64_t size = kSizes[random_.Uniform(sizes_)];
    const Place from = ring_->end();
    const uint64_t room = ring_->Room();
    const uint64_t calls = disk_.calls();
    if (stream_.size() < from + size) {
      const auto more = SomeBytes(from + size - stream_.size(), random_.Next());
      stream_.insert(stream_.end(), more.begin(), more.end());
    }
    const auto bytes = std::span<const std::byte>(stream_).subspan(from, size);
    const uint64_t cut = random_.Uniform(size);
    const std::span<const std::byte> parts[] = {bytes.first(cut), bytes.subspan(cut)};
    const uint64_t free = ring_->free_bytes();
    const Status status = ((*ring_).*call)(from, Parts(parts), TimeAt(from));
    EXPECT_EQ(status.code() == Code::kResourceExhausted, size > room);
    if (size > room) {
      EXPECT_EQ(disk_.calls(), calls);
      EXPECT_EQ(ring_->end(), from);
      ++runs_.refused;
    }
    if (!status.ok()) return false;
    EXPECT_EQ(ring_->end(), from + size);
    if (ring_->free_bytes() + RecordBlocks(size) * Disk::kBlock < free)
      ++runs_.wraps;  // Blocks before the end are left out.
    ends_.push_back(from + size);
    ++runs_.records;
    return true;
  }

  void Checkpoint() {
    const auto held = static_cast<uint64_t>(std::ranges::upper_bound(ends_, held_) - ends_.begin());
    if (held == 0) return;
    const uint64_t count = random_.Between(1, held);
    asked_ = ends_[count - 1];
    if (!ring_->Checkpoint(asked_).ok()) return;
    ASSERT_EQ(ring_->checkpoint(), asked_);
    checkpoint_ = asked_;
    ends_.erase(ends_.begin(), ends_.begin() + static_cast<std::ptrdiff_t>(count));
    held_ = ring_->end();  // Its flush covers all records.
  }

  // Nothing may be tried again: the disk may have lost what is not flushed, and would say ok.
  void TryAfterFailure() {
    ++runs_.failures;
    const uint64_t calls = disk_.calls();
    const std::string first = ring_->failure().ToString();
    EXPECT_EQ(ring_->held(), held_);
    EXPECT_EQ(ring_->Flush().ToString(), first);
    const std::byte byte{};
    EXPECT_EQ(ring_->Append(ring_->end(), OnePart(std::span(&byte, 1)), 0).ToString(), first);
    EXPECT_EQ(ring_->Checkpoint(ring_->checkpoint()).ToString(), first);
    EXPECT_EQ(ring_->BeginEpoch(ring_->end()).ToString(), first);
    EXPECT_EQ(ring_->held(), held_);
    EXPECT_EQ(disk_.calls(), calls);
  }

  Random random_;
  RingRuns& runs_;
  const uint64_t sizes_;
  const RingPart part_;
  FakeDisk disk_;
  std::optional<Ring> ring_;
  // All that was written since the last cut, after what that cut left.
  std::vector<std::byte> stream_;
  std::deque<Place> ends_;  // Of the records after the checkpoint.
  Place held_ = 0;          // Acknowledged.
  Place checkpoint_ = 0;    // Acknowledged.
  Place asked_ = 0;         // The same, or that of a checkpoint that was not acknowledged.
  uint64_t epoch_ = 1;      // The last one that has begun.
  bool image_is_lost_ = false;
};

TEST(RingRandomTest, AcknowledgedRecordsComeBackAndNothingElse) {
  RingRuns runs;
  for (uint64_t seed = 1; seed <= kRingSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RingLives(seed, &runs).Run();
    if (HasFailure()) return;
  }
  EXPECT_GT(runs.records, 10 * kRingSeeds);
  EXPECT_GT(runs.wraps, kRingSeeds);
  EXPECT_GT(runs.refused, kRingSeeds);
  EXPECT_GT(runs.cuts_that_lost, kRingSeeds / 10);
  EXPECT_GT(runs.cuts_that_kept, kRingSeeds / 10);
  EXPECT_GT(runs.kills_that_go_on, kRingSeeds / 10);
  EXPECT_GT(runs.checkpoints_that_count, kRingSeeds / 100);
  EXPECT_GT(runs.checkpoints_that_do_not, kRingSeeds / 100);
  EXPECT_GT(runs.failures, kRingSeeds);
}

}  // namespace
}  // namespace erda::journal
