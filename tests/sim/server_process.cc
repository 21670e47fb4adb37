#include "sim/server_process.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/test_hash.h"
#include "format/superblock.h"
#include "inspect/inspection.h"
#include "journal/apply.h"
#include "nvm/writer.h"
#include "sim/medium.h"

namespace erda::sim {

using format::Counter;

ServerProcess::ServerProcess(fabric::SimNetwork& network, const Plan& plan)
    : network_(network),
      plan_(plan),
      crash_random_(plan.seed + 17),
      time_random_(plan.seed + 29),
      grow_random_(plan.seed + 23) {
  MakePool();
}

ServerProcess::~ServerProcess() {
  if (running()) Stop();
}

void ServerProcess::Require(const Status& status) {
  if (!status.ok() && failure_.empty()) failure_ = "the server failed: " + status.ToString();
}

// Makes the pool as FormattedPool does, but with a fixed uuid and hash seed. Random ones would change each checksum and
// place, and no run could be repeated.
void ServerProcess::MakePool() {
  auto geometry = format::ChooseGeometry(WishOf(plan_));
  if (!geometry.ok()) return Require(geometry.status());
  format::Superblock superblock{};
  superblock.magic = format::kPoolMagic;
  superblock.format_version = format::kFormatVersion;
  superblock.geometry = *geometry;
  superblock.generation = 1;
  superblock.clean = 1;
  superblock.uuid.fill(static_cast<uint8_t>(plan_.seed));
  superblock.hash_seed = kTestHashSeed;
  superblock.crc = format::SuperblockCrc(superblock);
  images_.cached.resize(plan_.pool_size / sizeof(uint64_t));
  std::memcpy(images_.cached.data(), &superblock, sizeof(superblock));
  images_.durable = images_.cached;
  if (!plan_.journal) return;
  server::StreamDisk::Mirror mirror;
  if (plan_.mirror) {
    index_offset_ = geometry->index_offset;
    BeginMirror();
    mirror = [this](std::span<const std::byte> entries) {
      CheckZeroes(entries);
      nvm::Writer writer(*mirror_);
      Require(journal::ApplyToPool(entries, writer));
    };
  }
  images_.streams = std::make_shared<server::StreamDisk>(geometry->shards, std::move(mirror));
}

// The mirror's power may fail between the zeroes of a region and the word that calls it free. Runs seldom show what
// comes of that.
void ServerProcess::CheckZeroes(std::span<const std::byte> entries) {
  bool zeroes = false;
  const bool whole = journal::ForEachEntry(entries, mirror_->size(), [&](const journal::Entry& entry) {
    const bool is_word = entry.offset >= format::kRegionTableOffset && entry.offset < index_offset_;
    if (zeroes && is_word && !entry.fenced) {
      Require({Code::kInternal, "no fence follows the zeroes of a region in the stream"});
    }
    zeroes = entry.kind == journal::EntryKind::kZeroes && entry.size == plan_.region_size;
  });
  if (!whole) Require({Code::kCorruption, "the stream has a malformed entry"});
}

void ServerProcess::BeginMirror() {
  mirror_ = std::make_unique<server::CrashPool>(images_.cached);
  mirror_->before_fence = [this] {
    if (mirror_fails_ && crash_random_.Chance(0.2)) throw server::Crash();
  };
}

Result<std::unique_ptr<server::FormattedPool>> ServerProcess::OpenPool() {
  auto pool = std::make_unique<server::CrashPool>(
      std::move(images_), power_safe() ? nvm::Durability::kPowerSafe : nvm::Durability::kProcessSafe);
  crash_pool_ = pool.get();
  crash_pool_->before_fence = [this] {
    if (alone_) return;
    if (plan_.journal && crash_random_.Chance(plan_.hold_chance)) crash_pool_->HoldSome(crash_random_);
    // A start has few fences, and each of them matters.
    const uint64_t moves = Count(Counter::kCleanMoves);
    const bool moved = std::exchange(moves_fenced_, moves) != moves;
    // The shard stores the record of a split block before the second fence of the split. The third fence is the last
    // one. After it, other keys take the freed slots.
    const uint64_t splits = Splits();
    if (std::exchange(splits_fenced_, splits) != splits) fences_of_split_ = 3;
    const bool split = fences_of_split_ > 0 && fences_of_split_-- > 0;
    const double crash_chance =
        plan_.crash_chance + (moved ? plan_.move_crash_chance : 0) + (split ? plan_.split_crash_chance : 0);
    const double chance = running() ? crash_chance : plan_.start_crash_chance;
    const bool ends = crashes_ && crash_random_.Chance(chance);
    if (on_fence) on_fence(ends);
    if (ends) throw ProcessEnds();
  };
  return server::FormattedPool::Take(std::move(pool), {"the pool", 0, Nanoseconds(0)}, {0, 0, 0, 0, 0});
}

void ServerProcess::Start() {
  while (!running() && failure_.empty()) {
    try {
      Require(StartOnce());
    } catch (const ProcessEnds&) {
      ++recoveries_cut_off_;
      Crash();
      if (plan_.power_cut_share > 0 && crash_random_.Chance(0.3)) CutPower();
    }
  }
}

// Adds some regions with unknown contents to the medium, up to four times the plan's size.
void ServerProcess::Widen() {
  const uint64_t bytes = images_.cached.size() * sizeof(uint64_t) + grow_random_.Between(1, 8) * plan_.region_size;
  if (bytes > 4 * plan_.pool_size) return;
  for (auto* image : {&images_.cached, &images_.durable}) image->resize(bytes / sizeof(uint64_t), 0xa5a5a5a5a5a5a5a5);
}

// Starts the server's clock as server_shards.cc does. The machine's wall clock may have been set back since the last
// server.
void ServerProcess::StartClock() {
  if (time_) latest_micros_ = std::max(latest_micros_, time_->Micros());
  if (plan_.ttl_share > 0 && time_random_.Chance(0.4)) set_back_ += time_random_.Uniform(5'000);
  const auto since = std::chrono::floor<std::chrono::microseconds>(network_.Now());
  const uint64_t wall = kWallMicros + static_cast<uint64_t>(since.count()) - set_back_;
  time_.emplace(ServerTime::From(network_, wall, pool_->time(), plan_.note_ahead * 1000));
}

uint64_t ServerProcess::LatestTime() const {
  const uint64_t micros = time_ ? std::max(latest_micros_, time_->Micros()) : latest_micros_;
  return (micros + 999) / 1000;
}

uint64_t ServerProcess::TimeOf(uint32_t shard) const {
  const uint64_t told = shard < told_.size() ? told_[shard] : 0;
  return tells_time_ ? std::max(told, shards_[shard].shard->control().time()) : told;
}

Status ServerProcess::StartOnce() {
  alone_ = flipped_at_rest_;
  const bool grows = plan_.grow_chance > 0 && starts_ > 0 && grow_random_.Chance(plan_.grow_chance);
  if (grows) Widen();
  const uint64_t medium_bytes = images_.cached.size() * sizeof(uint64_t);
  auto pool = OpenPool();
  if (!pool.ok()) return pool.status();
  pool_ = *std::move(pool);
  if (grows && !pool_->needs_recovery() && pool_->geometry().pool_size < medium_bytes) {
    if (auto status = pool_->Grow(medium_bytes); !status.ok()) return status;
    ++growths_;
  }
  for (size_t i = 0; i < plan_.ports; ++i) {
    // With read-after-write, the NIC's Writes go past the caches of the CPU.
    fabric::SimNetwork::Placed placed;
    if (plan_.flush_methods.at(i) == format::FlushMethod::kReadAfterWrite) {
      placed = [pool = crash_pool_](std::span<const std::byte> bytes) {
        const std::byte* const first = pool->bytes().data();
        if (bytes.data() < first || bytes.data() >= first + pool->size()) return;
        pool->ReadBack(static_cast<uint64_t>(bytes.data() - first), bytes.size());
      };
    }
    fabrics_.push_back(network_.CreateFabric("server", std::move(placed)));
    auto regions = server::PoolRegions::Register(*fabrics_.back(), pool_->pool());
    if (!regions.ok()) return regions.status();
    regions_.push_back(*std::move(regions));
  }
  server::ShardOptions options;
  options.slot_bytes = 2048;
  options.reservations_per_client = plan_.reservations_per_client;
  options.requests_per_second = plan_.requests_per_second;
  options.staging_bytes = 0;  // one segment, so that puts wait for room there, too
  options.server_id = ++starts_;
  StartClock();
  options.time = &*time_;
  options.note_ahead = plan_.note_ahead;
  options.clock = &network_;
  options.index_grows = plan_.index_grows;
  for (uint32_t number = 0; number < pool_->geometry().shards; ++number) {
    ShardProcess process;
    std::vector<server::Port> ports;
    for (size_t i = 0; i < plan_.ports; ++i) {
      auto queue = fabrics_[i]->CreateQueue();
      if (!queue.ok()) return queue.status();
      ports.push_back({*fabrics_[i], regions_[i], **queue, plan_.flush_methods.at(i)});
      process.queues.push_back(*std::move(queue));
    }
    auto shard = server::Shard::Create(*pool_, number, ports, options);
    if (!shard.ok()) return shard.status();
    process.shard = *std::move(shard);
    shards_.push_back(std::move(process));
  }
  for (ShardProcess& process : shards_) {
    if (auto status = process.shard->data().TakeUp(); !status.ok()) return status;
  }
  if (pool_->needs_recovery()) {
    Inspect(false);
    for (ShardProcess& process : shards_) recovered_ += process.shard->data().Repair();
    Inspect(true);
  }
  // Nothing is served before the disk holds what the recovery found and stored.
  if (plan_.journal) crash_pool_->HoldAll();
  for (ShardProcess& process : shards_) process.shard->data().BeginCleaning();
  if (auto status = pool_->MarkOpen(); !status.ok()) return status;
  for (size_t i = 0; i < plan_.ports; ++i) {
    auto listener = fabrics_[i]->Listen(ServerAddress(i));
    if (!listener.ok()) return listener.status();
    listeners_.push_back(*std::move(listener));
  }
  tells_time_ = true;
  if (std::exchange(flipped_at_rest_, false)) EndRest();
  alone_ = false;
  return {};
}

// erda-inspect reads the pool by separate code. It finds no damage after a crash or a recovery. After a recovery it
// finds nothing in flight.
void ServerProcess::Inspect(bool recovered) {
  const auto report = inspect::InspectPool(pool_->pool().bytes(), {});
  if (!report.ok()) return Require(report.status());
  // Forged headers in a chunk are damage to erda-inspect, and may make recovery skip some of the forger's keys.
  if (plan_.forge_chance > 0) return;
  if (report->damage_count > 0 && plan_.damage_chance == 0) Require({Code::kCorruption, report->damage.front().what});
  for (const inspect::ShardReport& shard : report->shards) {
    if (recovered && shard.unsettled() > 0) Require({Code::kInternal, "an entry is not settled after a recovery"});
  }
}

void ServerProcess::Stop() {
  try {
    listeners_.clear();
    for (ShardProcess& process : shards_) {
      while (!process.shard->EndSessions() && network_.Step()) {
      }
    }
    for (ShardProcess& process : shards_) process.shard->Close();
    if (pool_) Require(pool_->MarkClosed());
    if (plan_.mirror) CompareMirror();
  } catch (const ProcessEnds&) {
    return Crash();
  }
  KeepImages();
  Drop();
}

void ServerProcess::Crash() {
  network_.KillNode("server");
  if (crash_random_.Chance(plan_.power_cut_share)) {
    if (plan_.mirror && crash_random_.Chance(0.4)) {
      CutPrimary();
    } else if (plan_.journal) {
      KeepImages();
      CutPower();
    } else {
      ++power_cuts_;
      images_.cached = crash_pool_->AfterPowerCut(crash_random_, ShareKept());
      images_.durable = images_.cached;
      if (on_power_cut) on_power_cut();
    }
  } else {
    ++process_deaths_;
    KeepImages();
  }
  Drop();
}

void ServerProcess::CutPower() {
  ++power_cuts_;
  if (plan_.mirror) return Promote();
  const double kept = ShareKept();
  if (plan_.journal) {
    images_.streams->CutPower(crash_random_, std::as_writable_bytes(std::span(images_.durable)));
    images_.streams->Forget();
    images_.cached = images_.durable;
  }
  for (size_t i = 0; i < images_.durable.size(); ++i) {
    uint64_t& cached = images_.cached[i];
    if (cached != images_.durable[i] && !crash_random_.Chance(kept)) cached = images_.durable[i];
  }
  images_.durable = images_.cached;
  if (on_power_cut) on_power_cut();
}

// The log may differ: `left` is never flushed, and neither is a value whose client did not commit it.
void ServerProcess::CompareMirror() {
  crash_pool_->HoldAll();
  const auto report = inspect::InspectPool(mirror_->bytes(), {});
  if (!report.ok()) return Require(report.status());
  if (report->damage_count > 0 && plan_.forge_chance == 0) {
    Require({Code::kCorruption, "the mirror: " + report->damage.front().what});
  }
  constexpr uint64_t kBegin = format::kShardRecordsOffset;
  const uint64_t bytes = pool_->geometry().regions_offset - kBegin;
  if (std::memcmp(mirror_->bytes().data() + kBegin, pool_->pool().bytes().data() + kBegin, bytes) != 0) {
    Require({Code::kInternal, "the mirror has another index than the primary"});
  }
}

// The stream is gone, and the mirror makes a copy.
void ServerProcess::CutPrimary() {
  ++power_cuts_;
  auto image = crash_pool_->AfterPowerCut(crash_random_, ShareKept());
  KeepImages();
  images_.streams->Forget();
  images_.cached = std::move(image);
  images_.durable = images_.cached;
  BeginMirror();
  if (on_power_cut) on_power_cut();
}

// The mirror stores some more of what it has received, until its power fails, too.
void ServerProcess::Promote() {
  mirror_fails_ = true;
  try {
    images_.streams->CutPower(crash_random_, {});
  } catch (const server::Crash&) {
  }
  mirror_fails_ = false;
  images_.streams->Forget();
  auto image = mirror_->AfterPowerCut(crash_random_, ShareKept());
  // No stream has the superblocks.
  std::memcpy(image.data(), images_.durable.data(), format::kShardRecordsOffset);
  images_.cached = std::move(image);
  images_.durable = images_.cached;
  BeginMirror();
  if (on_power_cut) on_power_cut();
}

// Returns the share of the unflushed words that a power cut keeps.
double ServerProcess::ShareKept() {
  constexpr std::array kShares = {0.0, 0.3, 0.7, 1.0};
  return kShares.at(crash_random_.Uniform(kShares.size()));
}

std::optional<std::string> ServerProcess::Damage(std::string_view key) {
  if (!running()) return std::nullopt;
  // A copy that no entry names yet would replace the damaged version.
  const auto cleans = [](const ShardProcess& process) { return !process.shard->data().cleaner().idle(); };
  if (std::any_of(shards_.begin(), shards_.end(), cleans)) return std::nullopt;
  const Medium medium(pool_->pool().bytes(), pool_->geometry(), pool_->seed());
  const auto version = medium.SettledOf(key);
  // A version is not settled for good if a power cut can make it unsettled again.
  if (!version || !crash_pool_->IsDurable(version->entry_at, sizeof(format::IndexEntry))) return std::nullopt;
  // The stream would write over the damage.
  if (crash_pool_->WillWrite(version->at, version->bytes)) return std::nullopt;
  std::string value(AsString(version->view.value));
  const auto before = medium.Before(*version);
  if (before && before->bytes <= version->bytes && crash_random_.Chance(0.4)) {
    // The bytes of the version before it, at the wrong place.
    const auto bytes = pool_->pool().bytes().subspan(before->at, before->bytes);
    crash_pool_->Damage(version->at, std::vector<std::byte>(bytes.begin(), bytes.end()));
    return value;
  }
  const uint64_t in_header = format::ValueOffset(version->view.header.label_size());
  const uint64_t at = version->at + crash_random_.Uniform(crash_random_.Chance(0.5) ? in_header : version->bytes);
  // Leaves out the bits of kLeft: no checksum covers them, and none needs to.
  const uint64_t bits = at - version->at == offsetof(format::ObjectHeader, flags) ? 4 : 8;
  const std::byte flipped = pool_->pool().bytes()[at] ^ std::byte{1} << static_cast<int>(crash_random_.Uniform(bits));
  crash_pool_->Damage(at, {&flipped, 1});
  return value;
}

bool ServerProcess::FlipIndexBit(Random& random) {
  constexpr uint64_t kBits = 8 * sizeof(format::IndexEntry);
  constexpr int kStepsAtMost = 2000;
  if (!running()) return false;
  const auto number = static_cast<uint32_t>(random.Uniform(shards_.size()));
  server::Shard& shard = *shards_[number].shard;
  if (!shard.data().CountKeys()) return false;
  const uint64_t slot = random.Uniform(pool_->geometry().index_slots);  // of the slots of the first index
  const uint64_t bit = random.Uniform(kBits);
  const uint64_t first = pool_->geometry().FirstSlotOffset(number, slot);
  const auto bytes = pool_->pool().view().bytes;
  if (LoadAs<format::IndexEntry>(bytes.subspan(first)).word == 0) return false;  // a free slot's meta means nothing
  bytes[first + bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
  const auto undone = [&] { return shard.counters().Get(Counter::kFlipsUndone); };
  const uint64_t before = undone();
  alone_ = true;
  for (int i = 0; i < kStepsAtMost && undone() == before; ++i) {
    shard.data().cleaner().Scrub(2000);
    (void)shard.Poll();
  }
  alone_ = false;
  if (undone() == before) Require({Code::kCorruption, "a flipped bit of an index entry stays"});
  return true;
}

bool ServerProcess::FlipIndexBitAtRest(Random& random) {
  constexpr uint64_t kWords = sizeof(format::IndexEntry) / sizeof(uint64_t);
  const auto found = format::FindSuperblock(std::as_bytes(std::span(images_.cached)));
  if (running() || !found.ok() || found->superblock.clean != 1 || found->other_damaged) return false;
  const format::Geometry& geometry = found->superblock.geometry;
  const auto shard = static_cast<uint32_t>(random.Uniform(geometry.shards));
  const uint64_t slot = random.Uniform(geometry.index_slots);
  const uint64_t first = geometry.FirstSlotOffset(shard, slot) / sizeof(uint64_t);
  const uint64_t word = first + random.Uniform(kWords);
  const uint64_t bit = uint64_t{1} << random.Uniform(64);
  if (images_.cached[first] == 0 || images_.cached[word] != images_.durable[word]) return false;
  images_.cached[word] ^= bit;
  images_.durable[word] ^= bit;
  flipped_at_rest_ = true;
  return true;
}

void ServerProcess::EndRest() {
  uint64_t undone = 0;
  for (const ShardProcess& process : shards_) {
    while (!process.shard->data().CountKeys()) (void)process.shard->Poll();
    undone += process.shard->counters().Get(Counter::kFlipsUndone);
  }
  if (undone != 1) Require({Code::kCorruption, "a bit stays that flipped while no server ran"});
}

void ServerProcess::KeepImages() {
  images_ = crash_pool_->AfterProcessEnd([this] { return crash_random_.Chance(0.5); });
}

void ServerProcess::Drop() {
  told_.resize(std::max(told_.size(), shards_.size()));
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) told_[shard] = TimeOf(shard);
  tells_time_ = false;
  listeners_.clear();
  for (const ShardProcess& process : shards_) {
    for (size_t i = 0; i < before_.size(); ++i) before_[i] += process.shard->counters().Get(Counter(i));
  }
  for (const Counter now : {Counter::kClients, Counter::kKeys, Counter::kInFlight, Counter::kLogBytesUsed}) {
    before_[static_cast<size_t>(now)] = 0;
  }
  shards_.clear();
  regions_.clear();
  crash_pool_ = nullptr;
  pool_.reset();
  fabrics_.clear();
}

void ServerProcess::Step(Random& random) {
  if (!running()) return;
  try {
    if (random.Chance(0.2)) {
      const size_t port = random.Uniform(listeners_.size());
      if (auto incoming = listeners_[port]->Poll()) Admit(std::move(incoming), port);
    }
    if (plan_.journal && random.Chance(plan_.hold_chance)) crash_pool_->HoldSome(random);
    ShardProcess& process = shards_[random.Uniform(shards_.size())];
    if (random.Chance(plan_.cleaner_chance)) process.shard->data().cleaner().Step();
    if (random.Chance(0.02)) process.shard->data().cleaner().Scrub(2000);
    if (plan_.ttl_share > 0 && random.Chance(0.02)) process.shard->data().cleaner().Sweep();
    if (plan_.ttl_share > 0 && random.Chance(0.02)) process.shard->data().KeepTime();
    if (process.shard->Poll() == 0 && process.shard->data().CountKeys() && random.Chance(plan_.tidy_chance)) {
      process.shard->Tidy(std::chrono::milliseconds(300));
      if (process.shard->awaits_writers()) process.shard->PassTime(std::chrono::milliseconds(300));
    }
  } catch (const ProcessEnds&) {
    Crash();
  }
}

void ServerProcess::Admit(std::unique_ptr<fabric::Incoming> incoming, size_t port) {
  const auto guest = server::Greet(*incoming, nullptr, static_cast<uint32_t>(shards_.size()));
  if (guest) shards_[guest->hello.shard].shard->Admit(std::move(incoming), guest->hello, port, guest->admission);
}

uint64_t ServerProcess::Splits() const {
  if (crash_pool_ == nullptr || !pool_) return 0;
  uint64_t splits = 0;
  for (uint32_t shard = 0; shard < pool_->geometry().shards; ++shard) {
    const auto record = LoadAs<format::ShardRecord>(crash_pool_->bytes().subspan(format::ShardRecordOffset(shard)));
    const uint64_t blocks = format::CheckedWord(record.blocks).number();
    if (blocks != 0) splits += blocks - pool_->geometry().first_blocks();
  }
  return splits;
}

uint64_t ServerProcess::Count(Counter counter) const {
  uint64_t sum = before_[static_cast<size_t>(counter)];
  for (const ShardProcess& process : shards_) sum += process.shard->counters().Get(counter);
  return sum;
}

}  // namespace erda::sim
