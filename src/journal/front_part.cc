#include "journal/front_part.h"

#include <algorithm>
#include <string>

#include "base/bytes.h"

namespace erda::journal {

namespace {

constexpr uint64_t kReleasedAt = offsetof(FrontHeader, released);
constexpr uint64_t kEndAt = offsetof(FrontHeader, end);

FrontHeader HeaderOf(const RingIdentity& identity, uint64_t capacity) {
  FrontHeader header{};
  header.magic = kFrontMagic;
  header.format_version = kFormatVersion;
  header.shard = identity.shard;
  header.uuid = identity.uuid;
  header.capacity = capacity;
  header.secret = identity.secret;
  return header;
}

}  // namespace

// The part has no bytes while its names change: `released` is the greatest place.
FrontPart FrontPart::Format(nvm::Writer& nvm, uint64_t offset, uint64_t size, const RingIdentity& identity,
                            uint64_t epoch, Place first) {
  FrontPart part(nvm, offset, size - sizeof(FrontHeader));
  part.StoreWord(kReleasedAt, UINT64_MAX);
  FrontHeader header = HeaderOf(identity, part.capacity_);
  header.epoch = epoch;
  header.released = UINT64_MAX;
  header.end = first;
  nvm.Write(offset, BytesOf(header));
  nvm.Persist(offset, sizeof(header));
  part.StoreWord(kReleasedAt, first);
  part.epoch_ = epoch;
  part.released_ = part.durable_released_ = part.end_ = first;
  return part;
}

Result<FrontPart> FrontPart::Open(nvm::Writer& nvm, uint64_t offset, uint64_t size, const RingIdentity& identity) {
  FrontPart part(nvm, offset, size - sizeof(FrontHeader));
  const auto header = LoadAs<FrontHeader>(nvm.Bytes(offset, sizeof(FrontHeader)));
  if (header.magic != kFrontMagic || header.format_version != kFormatVersion || header.shard != identity.shard ||
      header.uuid != identity.uuid || header.secret != identity.secret || header.capacity != part.capacity_) {
    return Status(Code::kNotFound, "the front has no part of this journal for shard " + std::to_string(identity.shard));
  }
  nvm.Persist(offset, sizeof(FrontHeader));
  part.epoch_ = header.epoch;
  part.released_ = part.durable_released_ = header.released;
  part.end_ = std::max(header.end, header.released);
  if (part.end_ - part.released_ > part.capacity_) {
    return Status(Code::kCorruption, "the part of the front for shard " + std::to_string(identity.shard) +
                                         " is damaged: it cannot have the stream from place " +
                                         std::to_string(header.released) + " to " + std::to_string(header.end));
  }
  return part;
}

// The magic number goes first: without it, the part has no bytes.
void FrontPart::Clear(nvm::Writer& nvm, uint64_t offset) {
  nvm.Store64(offset, 0);
  nvm.Persist(offset, sizeof(uint64_t));
  nvm.ZeroOut(offset, sizeof(FrontHeader));
  nvm.Fence();
}

// The numbers after the secret say nothing of whose part it is.
bool FrontPart::IsFree(const nvm::Writer& nvm, uint64_t offset, uint64_t size, const RingIdentity& identity) {
  const FrontHeader own = HeaderOf(identity, size - sizeof(FrontHeader));
  const auto there = nvm.Bytes(offset, sizeof(FrontHeader));
  for (uint64_t at = 0; at < sizeof(FrontHeader); at += sizeof(uint64_t)) {
    if (at >= offsetof(FrontHeader, epoch) && at < offsetof(FrontHeader, reserved)) continue;
    const auto word = LoadAs<uint64_t>(there.subspan(at));
    if (word != 0 && word != LoadAs<uint64_t>(BytesOf(own).subspan(at))) return false;
  }
  return true;
}

bool FrontPart::Append(Place from, Parts bytes) {
  uint64_t size = 0;
  for (const auto part : bytes) size += part.size();
  const bool leaves_out = from > end_;
  if (from - (leaves_out ? from : released_) + size > capacity_) return false;
  if (leaves_out) released_ = end_ = from;
  // In the first case, the old `released` and the new `end` would name bytes that were left out.
  if (leaves_out || end_ + size - durable_released_ > capacity_) PersistReleased();
  // NVM that fails may lose a store and take a later one.
  if (nvm_->failed()) return false;
  Place at = end_;
  for (const auto part : bytes) {
    Write(at, part);
    at += part.size();
  }
  // Pairs with the next fence: the bytes are on the medium before the word that says so.
  nvm_->Fence();
  if (nvm_->failed()) return false;
  StoreWord(kEndAt, at);
  if (nvm_->failed()) return false;
  end_ = at;
  return true;
}

void FrontPart::Release(Place place) { released_ = std::clamp(place, released_, end_); }

FrontPart::Found FrontPart::Read() const {
  Found found{released_, std::vector<std::byte>(end_ - released_)};
  const uint64_t begin = released_ % capacity_;
  const uint64_t first = std::min(found.bytes.size(), capacity_ - begin);
  const auto to_end = nvm_->Bytes(area() + begin, first);
  const auto rest = nvm_->Bytes(area(), found.bytes.size() - first);
  std::copy(rest.begin(), rest.end(), std::copy(to_end.begin(), to_end.end(), found.bytes.begin()));
  return found;
}

void FrontPart::StoreWord(uint64_t at, uint64_t value) {
  nvm_->Store64(offset_ + at, value);
  nvm_->Persist(offset_ + at, sizeof(value));
}

void FrontPart::Write(Place at, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const uint64_t begin = at % capacity_;
    const auto piece = bytes.first(std::min(bytes.size(), capacity_ - begin));
    nvm_->Write(area() + begin, piece);
    nvm_->Flush(area() + begin, piece.size());
    bytes = bytes.subspan(piece.size());
    at += piece.size();
  }
}

// Before other bytes stand in the space: otherwise a restart would take them for those that stood there.
void FrontPart::PersistReleased() {
  StoreWord(kReleasedAt, released_);
  durable_released_ = released_;
}

}  // namespace erda::journal
