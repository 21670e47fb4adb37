// An engine whose server is a log and an entry by hand: the newest version of the key is not settled.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/test_hash.h"
#include "client/engine_fixture.h"
#include "client/expiry.h"
#include "format/control_block.h"
#include "format/hello.h"
#include "format/index_entry.h"
#include "format/object.h"

namespace erda::client {

class ChainTest : public EngineTest {
 protected:
  static constexpr auto kOlder = LogAddress::At(0, 4096);
  static constexpr auto kOriginal = LogAddress::At(0, 8192);
  static constexpr auto kMiddle = LogAddress::At(0, 12288);
  static constexpr auto kNewest = LogAddress::At(0, 16384);
  static constexpr auto kMoved = LogAddress::At(1, 20480);  // The old version is here now.

  // Writes a whole version into the log. With deadline 0 it does not expire.
  void Write(LogAddress at, uint64_t version, LogAddress previous, std::string_view value, uint8_t flags,
             std::string_view key = kKey, uint64_t deadline = 0, format::ObjectKind kind = format::ObjectKind::kValue) {
    format::ObjectHeader header{};
    header.key_size = static_cast<uint16_t>(key.size());
    header.kind = static_cast<uint8_t>(kind);
    header.flags = static_cast<uint8_t>(flags | (deadline != 0 ? format::ObjectHeader::kExpiresFlag : 0));
    header.value_size = static_cast<uint32_t>(value.size());
    header.previous = previous.raw();
    header.version = version;
    header.key_hash = HashKey(key);
    const uint32_t pool_seed = format::PoolSeed(format::HelloReply{}.pool_uuid);
    header.header_crc = format::HeaderCrc({pool_seed, 0, at, 1}, header, key, deadline);
    const uint32_t checksum = format::ObjectChecksum(header, AsBytes(value));
    std::byte* const to = InLog(at);
    std::memcpy(to, &header, sizeof(header));
    if (deadline != 0) std::memcpy(to + format::kLabelOffset, &deadline, sizeof(deadline));
    std::memcpy(to + header.key_offset(), key.data(), key.size());
    std::memcpy(to + format::ChecksumOffset(header.label_size()), &checksum, sizeof(checksum));
    std::memcpy(to + format::ValueOffset(header.label_size()), value.data(), value.size());
  }
  std::byte* InLog(LogAddress at) { return log_.data() + at.offset_in_slot(); }
  // Writes the newest version, which is not settled. A get of this client has to pass it.
  void WriteNewest(LogAddress previous) { Write(kNewest, 9, previous, "newest", format::ObjectHeader::kPersistedFlag); }

  void Get() {
    const Status started = engine_->Get(kKey, [this](const Result<std::string_view>& value) {
      got_ = value.ok() ? *value : CodeName(value.status().code());
    });
    ASSERT_TRUE(started.ok()) << started.ToString();
  }
  // Answers all posted Reads, and those that follow from them, until the version at `stop` is read.
  void Serve(LogAddress stop = format::kNoAddress) {
    while (!fabric_->posted.empty() && !Reads(fabric_->posted.front(), stop)) {
      Answer(fabric_->Take());
      if (fabric_->posted.empty()) engine_->Poll();
    }
  }
  // The same, for a get that begins again and again until the entry changes.
  void ServeSome() {
    for (int reads = 0; reads < 100 && !fabric_->posted.empty(); ++reads) {
      Answer(fabric_->Take());
      if (fabric_->posted.empty()) engine_->Poll();
    }
  }
  void SetOld(LogAddress old) { word_ = format::EntryWord::Make(true, kNewest, old, false); }
  // The only version from now on. It is settled.
  void Settle(LogAddress at) { word_ = format::EntryWord::Make(true, at, format::kNoAddress, true); }

  void Answer(const WorkRequest& work) {
    ASSERT_EQ(work.kind, OpKind::kRead);
    std::memset(work.local.data(), 0, work.local.size());
    if (ReadsTime(work)) {
      std::memcpy(work.local.data(), &shard_time_, sizeof(shard_time_));
    } else if (work.remote.region == format::kControlRegion) {
      for (const uint32_t slot : {0U, 1U}) {
        std::memcpy(work.local.data() + format::HeadSlotOffset(0, slot), &slots_[slot], sizeof(slots_[slot]));
      }
    } else if (work.remote.offset >= geometry_.RegionOffset(0)) {
      const uint64_t from = work.remote.offset - geometry_.RegionOffset(0);
      ASSERT_LE(from + work.local.size(), log_.size());
      std::memcpy(work.local.data(), log_.data() + from, work.local.size());
      old_headers_ += work.local.size() == kOldHeaderBytes ? 1 : 0;
    } else {
      const format::IndexEntry entry{word_.raw(),
                                     format::EntryMeta::Make(format::EntryMeta::TagOf(HashKey(kKey)), 0, 0, 4).raw()};
      std::memcpy(work.local.data(), &entry, sizeof(entry));
    }
    fabric_->Complete(work);
  }
  [[nodiscard]] bool Reads(const WorkRequest& work, LogAddress at) const {
    return !at.none() && work.remote.offset == geometry_.RegionOffset(0) + at.offset_in_slot();
  }

  // Returns true if the Read is one of the 8 bytes of the shard's time.
  [[nodiscard]] static bool ReadsTime(const WorkRequest& work) {
    return work.remote.region == kTimeWord.region && work.remote.offset == kTimeWord.offset &&
           work.local.size() == sizeof(uint64_t);
  }

  uint64_t shard_time_ = kServerMillis;
  std::vector<std::byte> log_ = std::vector<std::byte>(32768);  // The beginning of the first region.
  format::HeadSlot slots_[2] = {format::HeadSlot::Of(0, 1), format::HeadSlot::Of(0, 1)};
  format::EntryWord word_ = format::EntryWord::Make(true, kNewest, kMoved, false);
  uint32_t old_headers_ = 0;  // The number of headers of old versions that were read.
  std::string got_;
};

}  // namespace erda::client
