// A server's memory by hand: an index that grows, a log, and a control block. A client reads it, one Read after the
// other. The test may change the memory before any of the Reads.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hand_clock.h"
#include "base/test_hash.h"
#include "client/engine.h"
#include "client/expiry.h"
#include "client/hand_fabric.h"
#include "format/activity.h"
#include "format/control_block.h"
#include "format/durability.h"
#include "format/hello.h"
#include "format/index_entry.h"
#include "format/object.h"

namespace erda::client {

// A server's memory: an index with one block of 128 slots, and the regions after it.
class HandPoolTest : public testing::Test {
 protected:
  static constexpr uint64_t kBlockSlots = 128;
  static constexpr uint64_t kBlocksInRun = 2;
  // The regions of the blocks that the server has after block 0. Each region has two blocks.
  static constexpr std::array<uint32_t, 3> kRunRegions = {7, 3, 5};
  static constexpr uint64_t kBlocks = 1 + kBlocksInRun * kRunRegions.size();
  static constexpr uint32_t kLogRegion = 1;
  // A slot in the second half of a neighbourhood. Only a second look sees it.
  static constexpr uint32_t kFar = format::kFirstLook + 5;

  void SetUp() override { Make(0); }

  void Make(uint32_t regions_per_head) {
    geometry_ = *format::ChooseGeometry({256 << 10, 1, 4096, 4096, kBlockSlots, regions_per_head});
    ASSERT_EQ(geometry_.first_blocks(), 1U);
    ASSERT_EQ(geometry_.block_slots(), kBlockSlots);
    ASSERT_EQ(geometry_.run_slots(), kBlocksInRun * kBlockSlots);
    pool_.assign(geometry_.pool_size, std::byte{0});
    control_.assign(format::ControlRegionBytes(geometry_), std::byte{0});
    const auto slot = format::HeadSlot::Of(kLogRegion, 1);
    for (uint32_t head = 0; head < geometry_.heads(); ++head) {
      std::memcpy(control_.data() + format::HeadSlotOffset(head, 0), &slot, sizeof(slot));
    }
    Tell(1);
  }

  // --- The control block

  void Tell(uint64_t blocks) {
    std::memcpy(control_.data() + offsetof(format::ControlBlock, blocks), &blocks, sizeof(blocks));
  }
  void TellDisplacements(uint64_t number) {
    std::memcpy(control_.data() + offsetof(format::ControlBlock, displacements), &number, sizeof(number));
  }
  void TellTime(uint64_t millis) {
    std::memcpy(control_.data() + offsetof(format::ControlBlock, time), &millis, sizeof(millis));
  }
  void TellRuns() {
    for (uint32_t run = 0; run < kRunRegions.size(); ++run) TellRun(run, kRunRegions[run] + 1);
  }
  void TellRun(uint32_t run, uint32_t number) {
    std::memcpy(control_.data() + format::RunsOffset(geometry_) + run * sizeof(number), &number, sizeof(number));
  }

  // --- The pool

  // Returns a key whose hash ends with these four bits.
  static std::string KeyWith(uint64_t low, uint32_t number = 0) {
    for (uint64_t i = 0;; ++i) {
      const std::string key = "key" + std::to_string(i);
      if ((HashKey(key) & 15) == low && number-- == 0) return key;
    }
  }
  [[nodiscard]] uint64_t OffsetOf(uint64_t block) const {
    if (block == 0) return geometry_.index_offset;
    const uint64_t run = (block - 1) / kBlocksInRun;
    return geometry_.regions_offset + kRunRegions.at(run) * geometry_.region_size +
           (block - 1) % kBlocksInRun * kBlockSlots * sizeof(format::IndexEntry);
  }
  [[nodiscard]] uint64_t HomeOffset(uint64_t block, std::string_view key) const {
    return OffsetOf(block) + geometry_.HomeInBlock(HashKey(key)) * sizeof(format::IndexEntry);
  }
  // Returns the entry in the slot that is `distance` slots from the key's home.
  format::IndexEntry ReadSlot(uint64_t block, std::string_view key, uint32_t distance) {
    return LoadAs<format::IndexEntry>(std::span(pool_).subspan(
        HomeOffset(block, key) + distance * sizeof(format::IndexEntry), sizeof(format::IndexEntry)));
  }
  void WriteSlot(uint64_t block, std::string_view key, uint32_t distance, const format::IndexEntry& entry) {
    std::memcpy(pool_.data() + HomeOffset(block, key) + distance * sizeof(entry), &entry, sizeof(entry));
  }
  void WriteDepth(uint64_t block, std::string_view key, uint32_t distance, uint32_t depth) {
    format::IndexEntry entry = ReadSlot(block, key, distance);
    entry.meta = entry.entry_meta().WithDepth(depth).raw();
    WriteSlot(block, key, distance, entry);
  }
  // The part of a version that has arrived in the log.
  enum class Arrived : uint8_t { kAll, kHeader, kNothing };
  format::LogAddress Write(std::string_view key, std::string_view value, uint64_t hash,
                           Arrived arrived = Arrived::kAll) {
    const auto address = format::LogAddress::At(0, next_object_);
    next_object_ += format::ObjectSpace(format::LabelSize(key.size(), deadline_ != 0), value.size()) + 64;
    if (arrived != Arrived::kNothing) Arrive(address, key, value, hash, arrived);
    return address;
  }
  void Arrive(format::LogAddress address, std::string_view key, std::string_view value, uint64_t hash,
              Arrived arrived = Arrived::kAll) {
    format::ObjectHeader header{};
    header.key_size = static_cast<uint16_t>(key.size());
    header.kind = static_cast<uint8_t>(format::ObjectKind::kValue);
    header.value_size = static_cast<uint32_t>(value.size());
    header.version = next_version_++;
    header.key_hash = hash;
    if (deadline_ != 0) header.flags = format::ObjectHeader::kExpiresFlag;
    const uint32_t pool_seed = format::PoolSeed(format::HelloReply{}.pool_uuid);
    header.header_crc = format::HeaderCrc({pool_seed, geometry_.HeadOf(hash), address, 1}, header, key, deadline_);
    const uint32_t checksum = format::ObjectChecksum(header, AsBytes(value));
    std::byte* const to = pool_.data() + geometry_.RegionOffset(kLogRegion) + address.offset_in_slot();
    std::memcpy(to, &header, sizeof(header));
    if (deadline_ != 0) std::memcpy(to + format::kLabelOffset, &deadline_, sizeof(deadline_));
    std::memcpy(to + header.key_offset(), key.data(), key.size());
    if (arrived == Arrived::kHeader) return;
    std::memcpy(to + format::ChecksumOffset(header.label_size()), &checksum, sizeof(checksum));
    std::memcpy(to + format::ValueOffset(header.label_size()), value.data(), value.size());
  }
  // Stores a version, and a settled entry that names it.
  void Put(uint64_t block, std::string_view key, std::string_view value, uint32_t depth, uint32_t distance = 3) {
    const uint64_t hash = HashKey(key);
    const uint64_t bytes = format::ObjectSpace(key.size(), value.size());
    const auto address = Write(key, value, hash);
    WriteSlot(block, key, distance,
              {format::EntryWord().Published(address).Settled().raw(),
               format::EntryMeta::Make(format::EntryMeta::TagOf(hash), depth, distance, bytes).raw()});
  }
  // Moves the key as a split does. It stores the entry in the same slot of the new block, frees the old slot, and
  // stores the depth there.
  void Move(uint64_t from, uint64_t to, std::string_view key, uint32_t depth, uint32_t distance = 3) {
    WriteDepth(from, key, distance, depth);
    const format::IndexEntry entry = ReadSlot(from, key, distance);
    WriteSlot(to, key, distance, entry);
    WriteSlot(from, key, distance, {0, entry.meta});
  }
  void Forget(uint64_t block, std::string_view key, uint32_t distance = 3) { WriteSlot(block, key, distance, {}); }

  // --- The client

  void TellSeed(const HashSeed& seed) {
    const auto at = offsetof(format::HelloReply, hash_seed);
    std::memcpy(fabric_->peer_data.data() + at, seed.data(), sizeof(seed));
  }
  void Connect(const HashSeed& seed = kTestHashSeed) {
    format::HelloReply hello{};
    hello.magic = format::kHelloMagic;
    hello.protocol_version = format::kProtocolVersion;
    hello.flush_method = static_cast<uint8_t>(format::FlushMethod::kServerFlush);
    hello.durability = static_cast<uint8_t>(format::Durability::kPowerSafe);
    hello.slots = std::min(4U, queue_depth_);
    hello.slot_bytes = 4096;
    hello.placing = static_cast<uint8_t>(placing_);
    hello.geometry = geometry_;
    hello.hash_seed = seed;
    const auto data = BytesOf(hello);
    fabric_->peer_data.assign(data.begin(), data.end());
    fabric_->peer_regions.assign(4, {geometry_.pool_size, fabric::Access::kRemoteReadWrite});
    if (placing_ == format::Placing::kStaging) fabric_->peer_regions[format::kStagingRegion].size = staging_bytes_;
    EngineOptions options;
    options.cache_entries = 0;
    options.queue_depth = queue_depth_;
    options.put_path = put_path_;
    auto engine = Engine::Create(fabric_, "hand:server", options, clock_);
    ASSERT_TRUE(engine.ok()) << engine.status().ToString();
    engine_ = *std::move(engine);
    ASSERT_TRUE(engine_->connections().Connect().ok());
    fabric_->Accept();
    engine_->Poll();
    ASSERT_EQ(Round(), "control");
    const auto up = engine_->connections().Connect();
    ASSERT_TRUE(up.ok() && *up);
  }
  void Get(std::string_view key, std::string* got) {
    *got = "nothing yet";
    const Status started = engine_->Get(key, [got](const Result<std::string_view>& value) {
      *got = value.ok() ? std::string(*value) : CodeName(value.status().code());
    });
    ASSERT_TRUE(started.ok()) << started.ToString();
  }
  // Answers all posted requests from memory, one after the other. Returns their names.
  std::string Round() {
    std::string names;
    const auto works = std::exchange(fabric_->posted, {});
    for (const fabric::WorkRequest& work : works) {
      if (const auto now = happens_.find(++reads_); now != happens_.end()) now->second();
      names += (names.empty() ? "" : ", ") + Answer(work);
    }
    engine_->Poll();
    return names;
  }
  std::string Answer(const fabric::WorkRequest& work) {
    if (work.kind == fabric::OpKind::kWriteImm) {
      fabric_->Complete(work);
      return "request";
    }
    EXPECT_EQ(work.kind, fabric::OpKind::kRead);
    const bool control = work.remote.region == format::kControlRegion;
    const std::span<std::byte> memory = control ? control_ : pool_;
    if (work.remote.offset + work.local.size() > memory.size()) {
      ADD_FAILURE() << "a Read beyond the end";
      return "?";
    }
    std::memcpy(work.local.data(), memory.data() + work.remote.offset, work.local.size());
    fabric_->Complete(work);
    return control ? NameInControl(work) : NameInPool(work);
  }
  // Gets the key, and returns the names of all its Reads, by round trips:
  //
  //   look N     the first half of a neighbourhood in block N
  //   all N      all of a neighbourhood in block N
  //   piece N    a piece of the window in block N
  //   entry N    an entry of block N alone
  //   reading    the numbers in the control block
  //   control    the control block
  //   version    a version
  std::string ReadsOfGet(const std::string& key) {
    key_ = key;
    reads_ = 0;
    Get(key, &got_);
    std::string names = Round();
    for (int rounds = 1; !fabric_->posted.empty(); ++rounds) {
      if (rounds == 10) return names + " | and so on";
      names += " | " + Round();
    }
    happens_.clear();
    return names;
  }
  static int RoundsIn(const std::string& names) {
    return 1 + static_cast<int>(std::count(names.begin(), names.end(), '|'));
  }
  // Runs `what` before the Read with this number is answered, in the next get.
  void Before(uint32_t read, std::function<void()> what) { happens_[read] = std::move(what); }

  static std::string NameInControl(const fabric::WorkRequest& work) {
    if (work.remote.offset == kTimeWord.offset && work.local.size() == sizeof(uint64_t)) return "time";
    if (work.remote.offset != 0) return "?";
    return work.local.size() == format::kMissReadingBytes ? "reading" : "control";
  }
  [[nodiscard]] std::string NameInPool(const fabric::WorkRequest& work) const {
    const uint64_t offset = work.remote.offset;
    const uint64_t log = geometry_.RegionOffset(kLogRegion);
    if (offset >= log && offset < log + geometry_.region_size) return "version";
    for (uint64_t block = 0; block < kBlocks; ++block) {
      const std::string name = " " + std::to_string(block);
      const bool home = offset == HomeOffset(block, key_);
      const bool whole = work.local.size() == kBlockSlots * sizeof(format::IndexEntry);
      if (whole && offset == OffsetOf(block)) return "block" + name;
      if (home && work.local.size() == format::kFirstLookBytes) return "look" + name;
      if (home && work.local.size() == format::kNeighbourhoodBytes) return "all" + name;
      const bool within =
          offset >= OffsetOf(block) && offset < OffsetOf(block) + kBlockSlots * sizeof(format::IndexEntry);
      if (within && work.local.size() == sizeof(format::IndexEntry)) return "entry" + name;
      if (within) return "piece" + name;
    }
    return "?";
  }

  HandClock clock_;
  uint32_t queue_depth_ = 64;
  PutPath put_path_ = PutPath::kAuto;
  format::Placing placing_ = format::Placing::kPool;
  uint64_t staging_bytes_ = 0;
  format::Geometry geometry_{};
  std::vector<std::byte> pool_;
  std::vector<std::byte> control_;
  uint64_t next_object_ = 256;
  uint64_t next_version_ = 1;
  const std::shared_ptr<HandFabric> fabric_ = std::make_shared<HandFabric>();
  std::unique_ptr<Engine> engine_;
  std::string key_;  // The key of the get.
  std::string got_;
  uint32_t reads_ = 0;
  uint64_t deadline_ = 0;  // The deadline of values that are stored from here on. 0: they do not expire.
  std::map<uint32_t, std::function<void()>> happens_;
};

}  // namespace erda::client
