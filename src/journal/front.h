// The front of a journal is a small NVM (docs/journal.md, "A small NVM in front"). It holds the newest bytes of each
// shard's stream before the disk does. It has a part of the same size for each shard (front_part.h).
//
// Owns the memory and the parts. One thread opens, takes and clears it. After that each part is its shard's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "erda/status.h"
#include "journal/front_part.h"
#include "journal/identity.h"
#include "nvm/pool.h"
#include "nvm/writer.h"

namespace erda::journal {

class Front {
 public:
  // A part of the least size has room for a few entries of the largest size.
  static constexpr uint64_t kPartBytesMin = 512 << 10;

  // Maps the memory. Returns errors as nvm::OpenFront does; it has to have room for a part for each shard.
  static Result<std::unique_ptr<Front>> Open(const std::string& address, uint32_t shards, bool any_file);

  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  // Finds the parts of this journal. A blank front gets parts of it, of epoch 0, without bytes. `needed`: the parts
  // must be there, since they may have bytes that are nowhere else. Returns kInvalidArgument if they are not, or if the
  // front has something else: it is not blank. Then it changes nothing. Returns kCorruption if a part is damaged.
  Status Take(const std::vector<RingIdentity>& shards, bool needed);
  // REQUIRES: Take returned ok.
  [[nodiscard]] FrontPart& part(uint32_t shard) { return *parts_[shard].part; }
  // Returns true if the part was made for this epoch of the shard's ring.
  [[nodiscard]] bool IsOf(uint32_t shard, uint64_t epoch) const;
  // Returns the bytes of the stream that follow the end of the shard's ring. Returns kInvalidArgument if the part was
  // not made for the ring's epoch, and kCorruption if the disk has lost what came before these bytes. REQUIRES: the
  // ring names a front.
  [[nodiscard]] Result<std::vector<std::byte>> AfterRing(uint32_t shard, uint64_t epoch, Place ring_end) const;
  // Returns kInvalidArgument if the part is of another epoch.
  [[nodiscard]] Status CheckEpoch(uint32_t shard, uint64_t epoch) const;
  // Makes the part again, without bytes. REQUIRES: the disk or the pool file has the stream up to `first`.
  void Format(const RingIdentity& shard, uint64_t epoch, Place first);
  // Makes the parts blank that Take has found. REQUIRES: nobody needs their bytes.
  void Clear();

  [[nodiscard]] nvm::Pool& memory() { return *memory_; }
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  struct Part {
    std::unique_ptr<nvm::Writer> nvm;  // The part has its address.
    std::optional<FrontPart> part;
  };
  Front(std::string address, std::unique_ptr<nvm::Pool> memory, uint32_t shards);
  [[nodiscard]] uint64_t OffsetOf(uint32_t shard) const { return shard * part_bytes_; }
  // Leaves the part empty if its memory is free.
  Status FindPart(const RingIdentity& shard, bool needed);

  const std::string address_;
  const std::unique_ptr<nvm::Pool> memory_;
  const uint64_t part_bytes_;
  std::vector<Part> parts_;
};

}  // namespace erda::journal
