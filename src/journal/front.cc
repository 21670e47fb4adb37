#include "journal/front.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "nvm/front.h"

namespace erda::journal {

Result<std::unique_ptr<Front>> Front::Open(const std::string& address, uint32_t shards, bool any_file) {
  auto memory = nvm::OpenFront({.address = address, .least_size = shards * kPartBytesMin, .any_file = any_file});
  if (!memory.ok()) return memory.status();
  return std::unique_ptr<Front>(new Front(address, *std::move(memory), shards));
}

Front::Front(std::string address, std::unique_ptr<nvm::Pool> memory, uint32_t shards)
    : address_(std::move(address)),
      memory_(std::move(memory)),
      part_bytes_(AlignDown(memory_->size() / shards, 4096)),
      parts_(shards) {
  for (Part& part : parts_) part.nvm = std::make_unique<nvm::Writer>(*memory_);
}

Status Front::Take(const std::vector<RingIdentity>& shards, bool needed) {
  for (const RingIdentity& shard : shards) {
    if (auto status = FindPart(shard, needed); !status.ok()) {
      for (Part& part : parts_) part.part.reset();
      return {status.code(), "front " + address_ + ": " + std::string(status.message())};
    }
  }
  for (const RingIdentity& shard : shards) {
    if (!parts_[shard.shard].part) Format(shard, 0, 0);
  }
  return {};
}

Status Front::FindPart(const RingIdentity& shard, bool needed) {
  nvm::Writer& nvm = *parts_[shard.shard].nvm;
  auto part = FrontPart::Open(nvm, OffsetOf(shard.shard), part_bytes_, shard);
  if (part.ok()) {
    parts_[shard.shard].part = *std::move(part);
    return {};
  }
  if (part.status().code() != Code::kNotFound) return part.status();
  if (needed) {
    return {Code::kInvalidArgument,
            "it has no bytes of this journal, and the pool was not closed cleanly. So the newest bytes are in another "
            "front: name that one"};
  }
  if (!FrontPart::IsFree(nvm, OffsetOf(shard.shard), part_bytes_, shard)) {
    return {Code::kInvalidArgument,
            "it is not empty: it has something that does not belong to this journal. If nobody needs that, write "
            "zeroes over it"};
  }
  return {};
}

bool Front::IsOf(uint32_t shard, uint64_t epoch) const {
  const FrontPart& part = *parts_[shard].part;
  return part.is_formatted() && part.epoch() == epoch;
}

Status Front::CheckEpoch(uint32_t shard, uint64_t epoch) const {
  if (IsOf(shard, epoch)) return {};
  return {Code::kInvalidArgument, "the part for shard " + std::to_string(shard) + " in front " + address_ +
                                      " is of another time of the journal (epoch " +
                                      std::to_string(parts_[shard].part->epoch()) + ", not " + std::to_string(epoch) +
                                      "). So the newest bytes are in another front, or the journal is an older copy"};
}

Result<std::vector<std::byte>> Front::AfterRing(uint32_t shard, uint64_t epoch, Place ring_end) const {
  if (auto status = CheckEpoch(shard, epoch); !status.ok()) return status;
  const FrontPart& part = *parts_[shard].part;
  FrontPart::Found found = part.Read();
  if (found.from > ring_end) {
    return Status(Code::kCorruption, "the ring of shard " + std::to_string(shard) + " ends at place " +
                                         std::to_string(ring_end) + ", and the front begins at place " +
                                         std::to_string(found.from) + ": the disk has lost what it held");
  }
  const auto before = static_cast<ptrdiff_t>(std::min<uint64_t>(ring_end - found.from, found.bytes.size()));
  found.bytes.erase(found.bytes.begin(), found.bytes.begin() + before);
  return found.bytes;
}

void Front::Format(const RingIdentity& shard, uint64_t epoch, Place first) {
  Part& part = parts_[shard.shard];
  part.part = FrontPart::Format(*part.nvm, OffsetOf(shard.shard), part_bytes_, shard, epoch, first);
}

void Front::Clear() {
  for (uint32_t shard = 0; shard < parts_.size(); ++shard) {
    if (parts_[shard].part) FrontPart::Clear(*parts_[shard].nvm, OffsetOf(shard));
  }
}

}  // namespace erda::journal
