#include "mirror/follower.h"

#include <algorithm>
#include <string>

#include "base/bytes.h"
#include "format/superblock.h"
#include "journal/apply.h"
#include "journal/entry.h"
#include "mirror/breach.h"

namespace erda::mirror {

using format::kMirrorUnit;
using format::kMirrorWord;
using journal::Place;

Follower::Follower(std::span<const std::byte> ring, nvm::Writer& writer)
    : ring_(ring), writer_(writer), torn_(std::make_unique<std::byte[]>(journal::kEntrySpaceMax)) {
  pieces_.Reserve(format::kMirrorPiecesMax);
}

// --- Messages

Status Follower::Say(fabric::Channel& channel, uint64_t bytes) {
  fabric::WorkRequest work;
  work.kind = fabric::OpKind::kWriteImm;
  work.signaled = false;
  work.imm = static_cast<uint32_t>(bytes / kMirrorUnit);
  return channel.Post({&work, 1});
}

Status Follower::Start(fabric::Channel& channel, const format::MirrorHello& hello, Place from) {
  if (!format::IsSound(hello)) return Breach("the primary", "its stream is at impossible places");
  if (from < hello.begin || from > hello.end || from % kMirrorUnit != 0) {
    return {Code::kInvalidArgument, "the primary has its stream from place " + std::to_string(hello.begin) + " to " +
                                        std::to_string(hello.end) + ", and not at " + std::to_string(from)};
  }
  received_ = stored_ = answered_ = from;
  return Say(channel, from - hello.begin);
}

Status Follower::Answer(fabric::Channel& channel) {
  if (answered_ == stored_) return {};
  if (auto status = Say(channel, stored_ - answered_); !status.ok()) return status;
  answered_ = stored_;
  return {};
}

Status Follower::Join(fabric::Channel& channel) {
  if (auto status = Say(channel, kMirrorWord); !status.ok()) return status;
  asked_to_join_ = true;
  return {};
}

Status Follower::SayInSync(fabric::Channel& channel) { return Say(channel, kMirrorWord); }

Status Follower::Take(uint32_t imm) {
  if (imm == kMirrorWord) {
    if (!asked_to_join_ || joined_at_)
      return Breach("the primary", "it lets the mirror join, though the mirror did not ask for that");
    joined_at_ = received_;
    return {};
  }
  const uint64_t bytes = uint64_t{imm} * kMirrorUnit;
  // The primary does not know of stored pieces before the answer. An honest one leaves them in the ring.
  if (bytes > ring_.size() - (received_ - answered_))
    return Breach("the primary", "it places more than the ring has room for");
  if (pieces_.size() >= format::kMirrorPiecesMax)
    return Breach("the primary", "it sends more pieces than may be under way");
  received_ += bytes;
  pieces_.push_back(received_);
  return {};
}

// --- Pieces

Status Follower::Store() {
  const Place end = pieces_.front();
  for (Place at = stored_; at < end;) {
    const auto entries = EntriesAt(at, end);
    auto status = journal::ApplyToPool(entries, writer_, format::kShardRecordsOffset);
    if (!status.ok()) return status;
    at += entries.size();
  }
  stored_ = end;
  pieces_.pop_front();
  return {};
}

std::span<const std::byte> Follower::InRing(Place from, Place to) const {
  const uint64_t begin = from % ring_.size();
  return ring_.subspan(begin, std::min(to - from, ring_.size() - begin));
}

std::span<const std::byte> Follower::EntriesAt(Place at, Place end) {
  const auto bytes = InRing(at, end);
  if (const uint64_t whole = journal::WholeEntries(bytes, bytes.size()); whole > 0) return bytes.first(whole);
  // The header is whole: places and the ring's size are multiples of 16. The primary may change it now, so the entry
  // may have any length.
  const uint64_t space = journal::EntrySpace(LoadAs<journal::EntryHeader>(bytes).size);
  if (space > journal::kEntrySpaceMax || space > end - at) return bytes;
  const std::span<std::byte> entry(torn_.get(), space);
  const uint64_t first = std::min<uint64_t>(space, bytes.size());
  std::ranges::copy(bytes.first(first), entry.begin());
  std::ranges::copy(InRing(at + first, at + space), entry.begin() + static_cast<ptrdiff_t>(first));
  return entry;
}

}  // namespace erda::mirror
