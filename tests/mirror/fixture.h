// For the tests of links: a primary's pool and its stream, and mirrors with theirs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "base/shared_memory.h"
#include "fabric/fixture.h"
#include "format/mirror_link.h"
#include "format/superblock.h"
#include "journal/entry.h"
#include "journal/recording_pool.h"
#include "journal/stream.h"
#include "mirror/follower.h"
#include "nvm/writer.h"

namespace erda::mirror {

inline testing::AssertionResult Ok(const Status& status) {
  return status.ok() ? testing::AssertionSuccess() : testing::AssertionFailure() << status.ToString();
}

inline constexpr uint64_t kPoolBytes = 1 << 20;
inline constexpr uint64_t kFirst = format::kShardRecordsOffset;
inline constexpr uint64_t kStreamBytes = journal::Stream::kCapacityMin;
inline constexpr journal::Place kBegin = 4096;

// A mirror with its pool, its ring, and its end of a link.
struct MirrorEnd {
  // Makes a ring of this size. The old channel ends.
  void MakeRing(fabric::Fabric& fabric, uint64_t bytes) {
    Unlink();
    ring = *SharedMemory::Create("erda-ring", bytes);
    region = *fabric.Register(ring.view(), fabric::Access::kRemoteReadWrite);
  }
  // The link begins, over a channel that is connected.
  Status Begin(const format::MirrorHello& hello, std::optional<journal::Place> from = std::nullopt) {
    follower.emplace(ring.bytes(), writer);
    said_in_sync = false;
    return follower->Start(*channel, hello, from.value_or(hello.end));
  }
  // Stores all that has come, and answers.
  Status StoreAll() {
    while (follower->has_piece()) {
      if (auto status = follower->Store(); !status.ok()) return status;
    }
    return follower->Answer(*channel);
  }
  // Says so once, when it has joined this shard. (The tests' primary has one.)
  Status SayInSync() {
    if (!follower->has_joined() || std::exchange(said_in_sync, true)) return {};
    return follower->SayInSync(*channel);
  }
  void Unlink() {
    follower.reset();
    channel.reset();
    region.reset();
  }

  journal::RecordingPool pool{std::vector<std::byte>(kPoolBytes)};
  nvm::Writer writer{pool};
  SharedMemory ring;
  std::unique_ptr<fabric::Region> region;
  std::unique_ptr<fabric::Channel> channel;
  std::optional<Follower> follower;
  bool said_in_sync = false;
};

// The primary is the end that accepts, and its pool is `image_`.
class MirrorFixture : public fabric::FabricTest {
 protected:
  using Place = journal::Place;
  using Stream = journal::Stream;

  void SetUp() override {
    FabricTest::SetUp();
    if (!HasFatalFailure()) MakeStream(kStreamBytes);
  }

  void MakeStream(uint64_t capacity, Place begin = kBegin) {
    auto stream = Stream::Format(server_.bytes(0, Stream::MemoryFor(capacity)), {}, 0, begin, {{7, 8, 9}, 0});
    ASSERT_TRUE(stream.ok()) << stream.status().ToString();
    stream_.emplace(*stream);
  }
  // Changes the primary's pool, and appends that to the stream. Returns false if the stream has no room.
  bool Change(uint64_t offset, uint64_t size, uint64_t seed, bool fenced = false) {
    const std::string bytes = fabric::Pattern(size, seed);
    if (!stream_->Append(offset, AsBytes(bytes), fenced)) return false;
    std::ranges::copy(AsBytes(bytes), image_.begin() + static_cast<ptrdiff_t>(offset));
    changes_.push_back(std::to_string(offset) + "+" + std::to_string(size));
    return true;
  }
  bool Clear(uint64_t offset, uint64_t size) {
    if (!stream_->AppendZeroes(offset, size)) return false;
    std::fill_n(image_.begin() + static_cast<ptrdiff_t>(offset), size, std::byte{0});
    changes_.push_back(std::to_string(offset) + "+" + std::to_string(size));
    return true;
  }
  // Appends an entry of any kind and any length up to the largest.
  bool ChangeSomething(Random& random) {
    const uint64_t longest = random.Chance(0.1) ? journal::kEntryBytesMax : 300;
    const uint64_t size = 1 + random.Uniform(longest);
    const uint64_t offset = kFirst + random.Uniform(kPoolBytes - kFirst - size);
    if (random.Chance(0.2)) return Clear(offset, size);
    return Change(offset, size, random.Next(), random.Chance(0.3));
  }
  [[nodiscard]] bool IsEqual(const MirrorEnd& mirror) const { return std::ranges::equal(mirror.pool.bytes(), image_); }

  std::vector<std::byte> image_ = std::vector<std::byte>(kPoolBytes);
  std::optional<Stream> stream_;
  std::vector<std::string> changes_;  // As a RecordingPool notes them.
};

}  // namespace erda::mirror
