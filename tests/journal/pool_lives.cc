#include "journal/pool_lives.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/bytes.h"
#include "journal/ring_fixture.h"
#include "nvm/writer.h"
#include "server/pool/pool_opening.h"

namespace erda::journal {

namespace {

constexpr format::GeometryWish kWish{98304 + 68 * 4096, PoolLives::kShards, 4096, 4096, 256, 30};
constexpr uint64_t kJournalBytes = 2 * Disk::kBlock + PoolLives::kShards * RingFile::kPartBytesMin;
// Each shard flushes into a part of the log that begins at a multiple of it. So each flush is one entry.
constexpr uint64_t kPartBytes = kEntryBytesMax;
constexpr uint64_t kFirstPart = 3 * kPartBytes;
constexpr uint64_t kLarge = 32 << 10;
static_assert(kFirstPart + PoolLives::kShards * kPartBytes <= kWish.pool_size);

std::span<const std::byte> WithoutSuperblocks(std::span<const std::byte> pool) {
  return pool.subspan(format::kShardRecordsOffset);
}

}  // namespace

Status PoolLives::Make() {
  nvm::PoolOptions options;
  options.path = files_.pool();
  options.size = kWish.pool_size;
  Status status = server::MakeJournaledPool(options, kWish, files_.journal(), kJournalBytes, {.in_memory = true});
  account_ = {};
  EmptyArchive();
  account_.pool.resize(kWish.pool_size);
  account_.mark = status.ok() ? Account::Mark::kClosed : Account::Mark::kUnknown;
  return status;
}

void PoolLives::Remove() {
  Reboot();
  files_.Restore({}, random_.Next());
}

void PoolLives::Reboot() {
  if (superblock_.generation == 0) return;  // It never opened.
  EXPECT_TRUE(Image::Remove("/dev/shm", superblock_.uuid).ok());
}

void PoolLives::EmptyArchive() {
  for (const auto& file : std::filesystem::directory_iterator(archive_.path())) std::filesystem::remove(file);
}

void PoolLives::Break(const std::string& what) {
  if (broken_.empty()) broken_ = what;
}

// --- A life

bool PoolLives::Start() {
  auto opened = JournaledPool::Open({.pool = files_.pool(),
                                     .journal = files_.journal(),
                                     .front = front_,
                                     .disk_in_memory = true,
                                     .archive = archive_.path().string(),
                                     .archive_event = [this](const std::string& line) { Break(line); }});
  if (!opened.ok()) {
    if (!files_.off() && !files_.failed()) Break("the pool does not open: " + opened.status().ToString());
    return false;
  }
  journaled_ = opened->get();
  CheckBytes();
  auto pool = server::FormattedPool::Take(*std::move(opened), {}, {.shards = 0});
  if (!pool.ok()) {
    Break("the pool is not taken: " + pool.status().ToString());
    return false;
  }
  pool_ = *std::move(pool);
  superblock_ = pool_->superblock();
  CheckMark();
  if (account_.mark == Account::Mark::kClosed) account_.mark = Account::Mark::kUnknown;
  if (!pool_->MarkOpen().ok()) return false;
  account_.mark = Account::Mark::kInUse;
  return true;
}

void PoolLives::CheckMark() {
  const uint64_t applied = journaled_->start().bytes_applied;
  applied_ += applied;
  const bool closed = account_.mark == Account::Mark::kClosed;
  if (closed && applied > 0) Break("a pool that was closed cleanly needs its journal");
  if (closed && pool_->needs_recovery()) Break("a pool that was closed cleanly says that it is in use");
  if (account_.mark == Account::Mark::kInUse && !pool_->needs_recovery()) {
    Break("a pool that was in use says that it was closed cleanly");
  }
}

void PoolLives::CheckBytes() {
  std::vector<std::byte> expected = account_.pool;
  for (uint32_t number = 0; number < kShards; ++number) {
    Account::Shard& shard = account_.shards[number];
    const Place place = journaled_->OfShard(number).place();
    if (place < shard.held) {
      Break("shard " + std::to_string(number) + " goes on at place " + std::to_string(place) + ", and held " +
            std::to_string(shard.held));
    }
    Place end = shard.begin;
    for (; !shard.flushes.empty() && shard.flushes.front().end <= place; shard.flushes.pop_front()) {
      const Account::Flush& flush = shard.flushes.front();
      std::memcpy(expected.data() + flush.offset, flush.bytes.data(), flush.bytes.size());
      end = flush.end;
    }
    if (end != place) Break("shard " + std::to_string(number) + " goes on between two flushes");
    shard = {.flushes = {}, .begin = place, .held = place};
  }
  const auto wanted = WithoutSuperblocks(expected);
  if (std::memcmp(wanted.data(), WithoutSuperblocks(journaled_->bytes()).data(), wanted.size()) != 0) {
    Break("the pool has other bytes than the flushes before the places where its streams go on");
  }
  account_.pool = std::move(expected);
}

// The simulated files have one error, and the disk fails by nothing but that.
void PoolLives::End() {
  if (pool_ && journaled_->failed() && journaled_->error_number() != EIO) {
    Break("the error number is not known: " + journaled_->failure().ToString());
  }
  pool_.reset();
  journaled_ = nullptr;
}

// --- What the shards do

void PoolLives::Put(uint32_t shard, uint64_t number, size_t size) {
  Flush(shard, kFirstPart + shard * kPartBytes + number * 512, SomeBytes(size, random_.Next()));
}

void PoolLives::PutZeroes(uint32_t shard, uint64_t number, size_t size) {
  Flush(shard, kFirstPart + shard * kPartBytes + number * 512, std::vector<std::byte>(size));
}

void PoolLives::Flush(uint32_t shard, uint64_t offset, std::vector<std::byte> bytes) {
  if (Fails()) return;
  nvm::Pool& pool = journaled_->OfShard(shard);
  nvm::Writer writer(pool);
  writer.Write(offset, bytes);
  writer.Persist(offset, bytes.size());
  account_.shards[shard].flushes.push_back({pool.place(), offset, std::move(bytes)});
}

void PoolLives::Hold(uint32_t shard) {
  if (Fails()) return;
  nvm::Pool& pool = journaled_->OfShard(shard);
  const Place place = pool.place();
  if (!front_.empty()) {
    pool.AskHeld(1);
    held_by_front_ += pool.held() >= place ? 1 : 0;
  }
  if (pool.held() >= place || pool.AwaitHeld().ok()) account_.shards[shard].held = place;
}

void PoolLives::Close() {
  if (Fails()) return;
  account_.mark = Account::Mark::kUnknown;
  if (pool_->MarkClosed().ok()) account_.mark = Account::Mark::kClosed;
}

void PoolLives::WorkWithoutWaiting() {
  for (uint64_t i = 0; i < 80; ++i) {
    Put(0, i % 60, kLarge);
    Put(1, i % 60, 1000);
  }
}

void PoolLives::GoRound() {
  for (int i = 0; i < 112; ++i) {
    Put(0, 0, kLarge);
    Hold(0);
    if (i % 16 == 0) (void)pool_->pool().Sync();
  }
  (void)pool_->pool().Sync();
}

void PoolLives::LeaveRecords() {
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    for (uint64_t i = 0; i < 3; ++i) {
      Put(shard, i, 700);
      Hold(shard);
    }
    Put(shard, 1, 700);  // Nobody waits for it.
  }
}

void PoolLives::WorkALittle() {
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    Put(shard, 2, 300);
    Hold(shard);
  }
}

void PoolLives::Work() {
  WorkALittle();
  Put(0, 0, 40'000);
  Put(0, 3, 600);
  Hold(0);
  PutZeroes(1, 0, kPartBytes);  // The checkpointer zeroes the range without a write.
  PutZeroes(1, 8, 2000);
  Hold(1);
  if (!Fails()) (void)pool_->pool().Sync();
  Put(0, 3, 600);
  Hold(0);
  for (uint64_t i = 0; i < 3; ++i) Put(1, i, 1000);
  Hold(1);
  Put(0, 4, 600);
  if (!Fails()) (void)pool_->pool().Sync();
  Put(1, 5, 100);
  Hold(1);
  Put(0, 0, 100);
  Close();
}

}  // namespace erda::journal
