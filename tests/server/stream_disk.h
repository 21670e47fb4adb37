// The streams of a pool with a journal or a mirror, and a simulated disk or mirror that gets them piece by piece
// (docs/journal.md, docs/mirror.md). The bytes of the pool on the disk, or at the mirror, are the caller's. A kill
// leaves all of this, and a power cut leaves the disk or the mirror.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/random.h"
#include "journal/aligned_buffer.h"
#include "journal/apply.h"
#include "journal/captured_pool.h"
#include "journal/stream.h"

namespace erda::server {

class StreamDisk {
 public:
  // A mirror: stores whole entries of a stream, and may throw.
  using Mirror = std::function<void(std::span<const std::byte> entries)>;
  explicit StreamDisk(uint32_t shards, Mirror mirror = nullptr) : mirror_(std::move(mirror)) {
    for (uint32_t shard = 0; shard < shards; ++shard) streams_.push_back(std::make_unique<Streamed>(shard));
  }

  // Makes the pools of the shards' writers, for a process that begins.
  void Begin(nvm::Pool& image, std::span<std::byte> disk, const std::function<void()>& before_fence) {
    for (const auto& each : streams_) {
      const auto hold = [this, &each = *each, disk] {
        each.fenced = each.stream->end();
        Hold(each, disk, UINT64_MAX);
      };
      each->pool = std::make_unique<ShardPool>(image, *each, hold, before_fence, mirrored());
    }
  }
  // The process ends. Its memory stays.
  void End() {
    for (const auto& each : streams_) each->pool.reset();
  }
  [[nodiscard]] nvm::Pool& OfShard(uint32_t shard) { return *streams_[shard]->pool; }
  [[nodiscard]] bool mirrored() const { return mirror_ != nullptr; }

  // The disk gets some more of one stream, for good.
  void HoldSome(Random& random, std::span<std::byte> disk) {
    const uint64_t most = random.Chance(0.5) ? random.Between(1, 600) : journal::kEntrySpaceMax;
    Hold(*streams_[random.Uniform(streams_.size())], disk, most);
  }
  // With a mirror: the pools have begun, and a fence may throw.
  void HoldAll(std::span<std::byte> disk) {
    for (const auto& each : streams_) {
      if (mirrored()) each->pool->AskHeld(1);
      Hold(*each, disk, UINT64_MAX);
    }
  }
  // Returns true if the disk will get an entry that writes there.
  [[nodiscard]] bool WillWrite(uint64_t offset, uint64_t size) const {
    bool found = false;
    const auto look = [&](const journal::Entry& entry) {
      found = found || (entry.offset < offset + size && offset < entry.offset + entry.size);
    };
    for (const auto& each : streams_) {
      for (const auto piece : each->stream->Bytes(*each->held, each->stream->end())) {
        if (!journal::ForEachEntry(piece, UINT64_MAX, look)) std::abort();
      }
    }
    return found;
  }
  // The power is cut. Records that the disk has not confirmed may be there or not.
  void CutPower(Random& random, std::span<std::byte> disk) {
    for (const auto& each : streams_) {
      const uint64_t most = random.Chance(0.5) ? 0 : random.Between(1, 4096);
      if (most > 0) Hold(*each, disk, most);
    }
  }
  // After a power cut. The streams are empty then.
  void Forget() {
    for (const auto& each : streams_) *each = Streamed(each->shard);
  }

 private:
  struct Streamed {
    explicit Streamed(uint32_t number) : shard(number), memory(std::make_unique<journal::AlignedBuffer>(kMemory)) {
      stream = std::make_unique<journal::Stream>(journal::Stream::Format(memory->bytes(), {}, number, 0).value());
      held = std::make_unique<std::atomic<journal::Place>>(0);
      health = std::make_unique<journal::Health>([] {}, [](const Status& /*status*/) {});
    }

    uint32_t shard;
    std::unique_ptr<journal::AlignedBuffer> memory;
    std::unique_ptr<journal::Stream> stream;
    std::unique_ptr<std::atomic<journal::Place>> held;
    std::unique_ptr<journal::Health> health;
    // Of a mirrored pool: the shard has fenced its own pool up to this place. Pieces for the mirror end here.
    journal::Place fenced = 0;
    std::unique_ptr<nvm::Pool> pool;
  };
  // A pool that may crash in a fence.
  class ShardPool final : public journal::CapturedPool {
   public:
    ShardPool(nvm::Pool& image, Streamed& streamed, const std::function<void()>& wait,
              std::function<void()> before_fence, bool mirrored)
        : CapturedPool(image, *streamed.stream,
                       {.held = streamed.held.get(),
                        .health = streamed.health.get(),
                        .await_room = wait,
                        .await_held =
                            [wait] {
                              wait();
                              return Status();
                            },
                        .ask = [&streamed](uint64_t /*waiters*/) { streamed.fenced = streamed.stream->end(); },
                        .mirrored = mirrored}),
          streamed_(streamed),
          before_fence_(std::move(before_fence)),
          mirrored_(mirrored) {}

   private:
    void Drain() override {
      if (!mirrored_) return before_fence_();
      CapturedPool::Drain();  // The pool that is fenced there calls before_fence.
      streamed_.fenced = streamed_.stream->end();
    }

    Streamed& streamed_;
    const std::function<void()> before_fence_;
    const bool mirrored_;
  };
  static constexpr uint64_t kMemory = journal::Stream::MemoryFor(journal::Stream::kCapacityMin);

  // The disk gets the next `most` bytes of the stream, or the first entry if that is longer.
  void Hold(Streamed& each, std::span<std::byte> disk, uint64_t most) {
    const journal::Place from = *each.held;
    journal::Place to = CutAt(*each.stream, from, most);
    if (mirrored()) to = std::min(to, std::max(from, each.fenced));
    for (const auto piece : each.stream->Bytes(from, to)) {
      if (mirror_ != nullptr) {
        mirror_(piece);
      } else if (!journal::ApplyToMemory(piece, disk).ok()) {
        std::abort();
      }
    }
    each.stream->Release(to);
    *each.held = to;
  }
  [[nodiscard]] static journal::Place CutAt(const journal::Stream& stream, journal::Place from, uint64_t most) {
    const journal::Place to = stream.Cut(from, std::max(most, journal::kEntrySpaceMax));
    if (most >= journal::kEntrySpaceMax) return to;
    // Entry by entry.
    journal::Place at = from;
    for (const auto piece : stream.Bytes(from, to)) {
      for (auto rest = piece; !rest.empty() && at < from + most;) {
        const auto entry = journal::ParseEntry(rest, UINT64_MAX);
        if (!entry) std::abort();
        at += entry->space;
        rest = rest.subspan(entry->space);
      }
    }
    return at;
  }

  const Mirror mirror_;
  std::vector<std::unique_ptr<Streamed>> streams_;
};

}  // namespace erda::server
