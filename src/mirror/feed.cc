#include "mirror/feed.h"

#include <algorithm>
#include <array>
#include <span>

#include "journal/entry.h"
#include "mirror/breach.h"

namespace erda::mirror {

using fabric::OpKind;
using fabric::WorkRequest;
using format::kMirrorPiecesMax;
using format::kMirrorUnit;
using format::kMirrorWord;
using journal::Place;

namespace {

static_assert(kMirrorUnit == journal::kEntryAlignment);
static_assert(Feed::kPieceBytesMax >= journal::kEntrySpaceMax);
static_assert(format::kMirrorRingBytesMin >= 2 * journal::kEntrySpaceMax, "an empty ring has room for an entry");
static_assert(Feed::kPieceBytesMax / kMirrorUnit <= UINT32_MAX);

// The requests that place a piece: the stream's memory and the ring are circular, so there are three at most.
class PieceWrites {
 public:
  explicit PieceWrites(uint64_t ring_bytes) : ring_bytes_(ring_bytes) {}

  void Add(std::span<const std::byte> bytes, Place at) {
    while (!bytes.empty()) {
      const uint64_t in_ring = at % ring_bytes_;
      const uint64_t size = std::min<uint64_t>(bytes.size(), ring_bytes_ - in_ring);
      WorkRequest& work = works_[count_++];
      work.kind = OpKind::kWrite;
      work.signaled = false;
      // A Write only reads it.
      work.local = {const_cast<std::byte*>(bytes.data()), size};
      work.remote = {format::kMirrorRingRegion, in_ring};
      bytes = bytes.subspan(size);
      at += size;
    }
  }
  // Lets the last one tell the mirror, and returns them.
  [[nodiscard]] std::span<const WorkRequest> FinishWith(uint32_t imm) {
    WorkRequest& last = works_[count_ == 0 ? count_++ : count_ - 1];
    last.kind = OpKind::kWriteImm;
    last.signaled = false;
    last.imm = imm;
    return std::span(works_).first(count_);
  }

 private:
  const uint64_t ring_bytes_;
  std::array<WorkRequest, 3> works_{};
  size_t count_ = 0;
};

}  // namespace

format::MirrorHello Feed::Hello(const journal::Stream& stream) {
  // In this order: the end may grow meanwhile, and the beginning may not go past it.
  const Place begin = stream.released();
  return {stream.life().secret, begin, stream.end(), 0, 0, 0};
}

// --- The mirror's messages

Status Feed::Take(uint32_t imm) {
  const uint64_t bytes = uint64_t{imm} * kMirrorUnit;
  if (ring_bytes_ == 0) return Start(bytes);
  if (imm == kMirrorWord) return TakeWord();
  if (bytes > sent_ - stored_) return Breach("the mirror", "it says that it has stored more than was sent");
  const Place stored = stored_ + bytes;
  while (!ends_.empty() && ends_.front() <= stored) {
    stored_ = ends_.front();
    ends_.pop_front();
  }
  return stored_ == stored ? Status() : Breach("the mirror", "what it has stored ends inside of a piece");
}

Status Feed::TakeWord() {
  if (!wants_to_join_) {
    wants_to_join_ = true;
    return {};
  }
  if (!told_) return Breach("the mirror", "it asks to join a second time");
  if (stored_ < *joined_at_) return Breach("the mirror", "it says too soon that it is in sync");
  if (in_sync_) return Breach("the mirror", "it says twice that it is in sync");
  in_sync_ = true;
  return {};
}

Status Feed::Start(uint64_t bytes) {
  const auto offered = channel_.peer_regions();
  if (offered.size() <= format::kMirrorRingRegion ||
      !format::IsMirrorRingSize(offered[format::kMirrorRingRegion].size)) {
    return Breach("the mirror", "it offers no ring of a possible size");
  }
  const uint64_t all = hello_.end - hello_.begin;
  // A new mirror begins at the end.
  if (bytes > all || (bytes != all && !stream_.IsBetweenEntries(hello_.begin, hello_.begin + bytes))) {
    return Breach("the mirror", "it wants to begin where the stream has no entry");
  }
  ring_bytes_ = offered[format::kMirrorRingRegion].size;
  sent_ = stored_ = hello_.begin + bytes;
  return {};
}

// --- Pieces

Status Feed::Send() {
  if (ring_bytes_ == 0) return {};
  while (true) {
    if (sent_ == joined_at_ && !told_) {
      if (auto status = TellJoined(); !status.ok()) return status;
    }
    const Place end = NextEnd();
    if (end == sent_) return {};
    if (auto status = SendPiece(end); !status.ok()) return status;
  }
}

Place Feed::NextEnd() const {
  if (ends_.size() >= kMirrorPiecesMax) return sent_;
  const uint64_t room = std::min(kPieceBytesMax, ring_bytes_ - (sent_ - stored_));
  // A piece ends where the mirror joins.
  const Place end = joined_at_ && !told_ ? *joined_at_ : stream_.end();
  if (end - sent_ <= room) return end;
  return room < journal::kEntrySpaceMax ? sent_ : stream_.Cut(sent_, room);
}

Status Feed::SendPiece(Place end) {
  PieceWrites writes(ring_bytes_);
  Place at = sent_;
  for (const std::span<const std::byte> part : stream_.Bytes(sent_, end)) {
    writes.Add(part, at);
    at += part.size();
  }
  const auto units = static_cast<uint32_t>((end - sent_) / kMirrorUnit);
  if (auto status = channel_.Post(writes.FinishWith(units)); !status.ok()) return status;
  ends_.push_back(end);
  sent_ = end;
  return {};
}

void Feed::Join() { joined_at_ = stream_.end(); }

Status Feed::TellJoined() {
  told_ = true;
  return channel_.Post(PieceWrites(ring_bytes_).FinishWith(kMirrorWord));
}

}  // namespace erda::mirror
