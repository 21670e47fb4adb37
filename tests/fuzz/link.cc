// A hostile primary talks to the mirror's end of a link, or a hostile mirror to the primary's.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "fuzz/check.h"
#include "fuzz/targets.h"
#include "journal/entry.h"
#include "journal/recording_pool.h"
#include "journal/stream.h"
#include "mirror/feed.h"
#include "mirror/follower.h"
#include "nvm/writer.h"

namespace erda::fuzz {

namespace {

using fabric::OpKind;
using fabric::WorkRequest;
using format::kMirrorUnit;
using journal::Place;
using journal::Stream;

constexpr uint64_t kRingBytes = format::kMirrorRingBytesMin;
constexpr uint64_t kPoolBytes = 64 << 10;
constexpr Place kBegin = 5 * kRingBytes - 16;  // The first entry is torn at the ring's end.

// Eight bytes of the input.
struct LinkAction {
  uint8_t kind;
  uint8_t small;
  uint16_t middle;
  uint32_t large;

  // A number of units that is often one that can be.
  [[nodiscard]] uint32_t Units() const { return small % 4 == 0 ? large : large % 64; }
};
static_assert(sizeof(LinkAction) == 8);

// A channel that gives each message to its owner.
class OwnChannel : public fabric::Channel {
 public:
  explicit OwnChannel(std::function<void(std::span<const WorkRequest>)> on_post) : on_post_(std::move(on_post)) {}

  Status Post(std::span<const WorkRequest> batch) override {
    on_post_(batch);
    return {};
  }
  bool Fence() override { return true; }
  [[nodiscard]] bool connected() const override { return true; }
  [[nodiscard]] std::span<const fabric::RemoteRegion> peer_regions() const override { return offered_; }
  [[nodiscard]] std::span<const std::byte> peer_data() const override { return {}; }
  [[nodiscard]] const Status& error() const override { return ok_; }

 private:
  const std::function<void(std::span<const WorkRequest>)> on_post_;
  const std::array<fabric::RemoteRegion, 1> offered_ = {{{kRingBytes, fabric::Access::kRemoteReadWrite}}};
  const Status ok_;
};

class HostilePrimary {
 public:
  HostilePrimary() { Link(kBegin); }

  void Do(const LinkAction& action) {
    switch (action.kind % 8) {
      case 0:
      case 1:
        return PlaceEntry(action);
      case 2:
        return Place(action.middle * kMirrorUnit % kRingBytes, BytesOf(action.large));
      case 3:
        return End(follower_->Take(action.Units()));
      case 4:  // All that it has placed.
        return End(follower_->Take(static_cast<uint32_t>((placed_ - follower_->received()) / kMirrorUnit)));
      case 5:
      case 6:
        if (follower_->has_piece()) End(follower_->Store());
        return;
      default:
        if (action.small % 16 == 0 && !joins_) {
          joins_ = true;
          return End(follower_->Join(channel_));
        }
        if (action.small % 16 == 1 && follower_->has_joined()) return End(follower_->SayInSync(channel_));
        return End(follower_->Answer(channel_));
    }
  }
  void Finish() const { Check(IsZero(pool_.bytes().first(format::kShardRecordsOffset)), "the superblocks changed"); }
  [[nodiscard]] uint64_t stored() const { return stored_; }
  [[nodiscard]] uint64_t ended() const { return ended_; }

 private:
  void Link(journal::Place from) {
    follower_.emplace(ring_, writer_);
    answered_ = placed_ = from;
    joins_ = false;
    Check(follower_->Start(channel_, {{}, from, from, 0, 0, 0}, from).ok(), "a sound hello is refused");
  }
  // After an error a new link begins. Its ring has any bytes.
  void End(const Status& status) {
    const journal::Place stored = follower_->stored();
    Check(stored <= follower_->received() && answered_ <= stored, "places are out of order");
    Check(follower_->received() - answered_ <= kRingBytes, "more was taken than the ring has");
    if (status.ok()) return;
    ++ended_;
    Link(stored);
  }
  // Every other entry is well-formed.
  void PlaceEntry(const LinkAction& action) {
    if (action.small % 2 == 0) {
      std::vector<std::byte> entry(journal::EntrySpace(1 + action.middle % 256));
      const std::vector<std::byte> bytes(1 + action.middle % 256, std::byte{action.small});
      journal::WriteBytes(entry.data(), format::kShardRecordsOffset + action.large % 4096, bytes,
                          action.small % 4 == 0);
      for (size_t at = 0; at < entry.size(); at += kMirrorUnit, placed_ += kMirrorUnit) {
        Place(placed_ % kRingBytes, std::span(entry).subspan(at, kMirrorUnit));
      }
      return;
    }
    constexpr std::array<uint64_t, 6> kOffsets = {
        format::kShardRecordsOffset, 0, format::kShardRecordsOffset - 8, kPoolBytes - 8, UINT64_MAX - 8, 40'000};
    const uint64_t offset = kOffsets[action.small / 2 % kOffsets.size()] + action.large % 64;
    const uint32_t size = action.small >= 128 ? action.large : action.middle % 256;
    const journal::EntryHeader header{offset, size, journal::EntryKind{static_cast<uint16_t>(action.middle % 5)},
                                      static_cast<uint16_t>(action.middle % 3)};
    Place(placed_ % kRingBytes, BytesOf(header));
    placed_ += journal::EntrySpace(size % 4096);
  }
  void Place(uint64_t at, std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, ring_.begin() + static_cast<ptrdiff_t>(at));
  }

  std::vector<std::byte> ring_ = std::vector<std::byte>(kRingBytes);
  journal::RecordingPool pool_{std::vector<std::byte>(kPoolBytes)};
  nvm::Writer writer_{pool_};
  OwnChannel channel_{[this](std::span<const WorkRequest> batch) {
    // The message of Start tells of no stored bytes: the link begins where the hello does.
    for (const WorkRequest& work : batch) {
      answered_ += work.imm * kMirrorUnit;
      stored_ += work.imm;
    }
  }};
  std::optional<mirror::Follower> follower_;
  journal::Place answered_ = 0;
  journal::Place placed_ = 0;
  bool joins_ = false;
  uint64_t stored_ = 0;
  uint64_t ended_ = 0;
};

class HostileMirror {
 public:
  HostileMirror() { Link(); }

  void Do(const LinkAction& action) {
    switch (action.kind % 8) {
      case 0:
      case 1:
        return Append(action);
      case 2:
      case 3:
        return Say(action.Units());
      case 4:
        return End(feed_->Send());
      case 5:
        if (feed_->asks_to_join()) feed_->Join();
        return End(feed_->Send());
      case 6:
        return stream_.Release(feed_->stored());
      default:  // An honest answer.
        if (!ends_.empty()) Say(static_cast<uint32_t>((ends_.front() - feed_->stored()) / kMirrorUnit));
    }
  }
  void Finish() {
    const auto stream = Stream::Open(memory_, {}, 0);
    Check(stream.ok(), "the stream is damaged", stream.status().ToString());
    for (const auto part : stream->Bytes(stream->released(), stream->end())) {
      Check(journal::ForEachEntry(part, 4 * kPoolBytes, [](const journal::Entry&) {}), "an entry is not whole");
    }
  }
  [[nodiscard]] uint64_t stored() const { return stored_; }
  [[nodiscard]] uint64_t ended() const { return ended_; }

 private:
  void Link() {
    feed_.emplace(stream_, channel_, mirror::Feed::Hello(stream_));
    started_ = false;
    ends_.clear();
  }
  void Say(uint32_t imm) {
    const Status status = feed_->Take(imm);
    if (status.ok() && !started_) {
      started_ = true;
      sent_ = feed_->stored();
    }
    End(status);
  }
  void End(const Status& status) {
    const Place stored = feed_->stored();
    stored_ += static_cast<uint64_t>(std::erase_if(ends_, [stored](Place end) { return end <= stored; }));
    Check(stored <= stream_.end(), "more is stored than there is");
    Check(stream_.IsBetweenEntries(stream_.released(), stored), "what is stored ends inside of an entry");
    if (status.ok()) return;
    ++ended_;
    Link();
  }
  void Append(const LinkAction& action) {
    const uint64_t longest = action.small % 8 == 0 ? journal::kEntryBytesMax : 200;
    const std::vector<std::byte> bytes(1 + action.large % longest, std::byte{action.small});
    (void)stream_.Append(format::kShardRecordsOffset, bytes, action.middle % 2 == 0);
  }
  // The feed posts a piece.
  void Sent(std::span<const WorkRequest> batch) {
    Check(started_, "the mirror has not said where it begins");
    uint64_t bytes = 0;
    for (const WorkRequest& work : batch) {
      const bool last = &work == &batch.back();
      Check(work.kind == (last ? OpKind::kWriteImm : OpKind::kWrite), "the last one alone tells the mirror");
      Check(work.local.empty() || work.remote.offset == (sent_ + bytes) % kRingBytes, "it lies elsewhere in the ring");
      Check(work.remote.offset + work.local.size() <= kRingBytes, "it goes past the ring");
      CheckInStream(work.local);
      bytes += work.local.size();
    }
    Check(bytes == batch.back().imm * kMirrorUnit, "the mirror is told another length");
    if (bytes == 0) return;
    sent_ += bytes;
    ends_.push_back(sent_);
    Check(stream_.IsBetweenEntries(stream_.released(), sent_), "a piece ends inside of an entry");
    Check(sent_ - feed_->stored() <= kRingBytes, "more is sent than the ring has room for");
    Check(ends_.size() <= format::kMirrorPiecesMax, "more pieces are under way than may be");
  }
  void CheckInStream(std::span<const std::byte> bytes) const {
    const std::span<const std::byte> area = std::span(memory_).subspan(Stream::kHeaderBytes);
    const bool in = bytes.empty() || (bytes.data() >= area.data() && bytes.data() + bytes.size() <= &area.back() + 1);
    Check(in, "bytes of something else are sent");
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(Stream::MemoryFor(4 * Stream::kCapacityMin));
  Stream stream_ = *Stream::Format(memory_, {}, 0, kBegin);
  OwnChannel channel_{[this](std::span<const WorkRequest> batch) { Sent(batch); }};
  std::optional<mirror::Feed> feed_;
  bool started_ = false;
  Place sent_ = 0;
  std::vector<Place> ends_;  // Of the pieces that are under way.
  uint64_t stored_ = 0;
  uint64_t ended_ = 0;
};

template <class Hostile>
Linked Converse(std::span<const uint8_t> input) {
  Hostile hostile;
  for (; input.size() >= sizeof(LinkAction); input = input.subspan(sizeof(LinkAction))) {
    LinkAction action{};
    std::memcpy(&action, input.data(), sizeof(action));
    hostile.Do(action);
  }
  hostile.Finish();
  return {hostile.stored(), hostile.ended()};
}

}  // namespace

Linked Link(std::span<const uint8_t> input) {
  if (input.empty()) return {};
  return input[0] % 2 == 0 ? Converse<HostilePrimary>(input.subspan(1)) : Converse<HostileMirror>(input.subspan(1));
}

}  // namespace erda::fuzz
