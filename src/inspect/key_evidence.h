// The evidence of the versions of a shard's keys, as index and log give it. IndexEvidence adds that of the index first,
// then LogEvidence adds that of the log.
//
// An object is *proven* if the server wrote its header for certain. So the walk came to it from the beginning of its
// segment by headers that all verify, and it stands in no chunk. A client with a window may write any header into its
// chunk. A client may also put a value that holds headers, and a walk that lost its way could take one for an object.
// So an object that is not proven never wins over the version that the index names.
//
// Memory: some 60 bytes for each key. One thread uses it.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "format/log_address.h"
#include "format/object.h"
#include "inspect/placed_regions.h"
#include "inspect/salvage_bytes.h"

namespace erda::inspect {

// A version of a key, by its number and its object.
class KnownVersion {
 public:
  enum Flag : uint64_t {
    kNamed = 1,    // the index names the key, and so this version
    kDamaged = 2,  // its value is damaged, and the index names it
    kDeleted = 4,  // it is a tombstone
  };

  KnownVersion() = default;
  KnownVersion(uint64_t number, uint64_t offset, uint64_t flags = 0)
      : number_(number), offset_and_flags_(offset | flags) {}

  [[nodiscard]] uint64_t number() const { return number_; }
  // Returns the offset of the object in the pool, or 0 for no version.
  [[nodiscard]] uint64_t offset() const { return offset_and_flags_ & ~(format::kGranuleBytes - 1); }
  [[nodiscard]] bool none() const { return offset() == 0; }
  [[nodiscard]] bool is(Flag flag) const { return (offset_and_flags_ & flag) != 0; }

 private:
  uint64_t number_ = 0;
  uint64_t offset_and_flags_ = 0;  // an offset is of whole granules, so its low bits are free
};

class KeyEvidence {
 public:
  // newest: if true, a newer version counts although it is not proven, also for a key that the index names.
  KeyEvidence(const SalvageBytes& bytes, bool newest) : bytes_(bytes), newest_(newest) {}

  // The index names the object as its key's version. flags: of KnownVersion.
  void AddNamed(const FoundObject& object, uint64_t flags);
  // The index says that a put of the key was in flight, and names this object for it.
  void AddInFlight(uint64_t key_hash) { in_flight_.insert(key_hash); }
  // The log has this object of a value.
  void AddValue(const format::ObjectView& view, uint64_t offset, bool proven);
  // A tombstone slot has the tombstone of a delete, which was finished or not. Of the key's unnamed versions, the older
  // ones are deleted, and the newer ones count.
  void AddTombstone(uint64_t key_hash, uint64_t version);

  using ByHash = std::unordered_map<uint64_t, KnownVersion>;
  // Returns for each key the version to take. It is the newest one that counts. The keys of the map are hashes, or the
  // numbers after them if several keys have one hash.
  [[nodiscard]] const ByHash& best() const { return best_; }
  // Returns for each key's hash the newest version that is not whole.
  [[nodiscard]] const ByHash& unfinished() const { return unfinished_; }
  // Returns whether any version of a key with this hash is found, or a put of it was in flight.
  [[nodiscard]] bool Knows(uint64_t key_hash) const {
    return best_.contains(key_hash) || in_flight_.contains(key_hash);
  }
  // Returns whether a tombstone deletes a version that nothing names.
  [[nodiscard]] bool HasTombstoneAfter(uint64_t key_hash, uint64_t version) const;
  // Returns whether the log has a newer version that is not proven, of a key that the index names.
  [[nodiscard]] bool HasUnprovenAfter(uint64_t key_hash, uint64_t version) const;
  // Returns the newest whole version before a damaged one, or none.
  [[nodiscard]] KnownVersion Before(const KnownVersion& damaged) const;
  // Returns the newest version that is not whole, if it is newer than this one, or none.
  [[nodiscard]] KnownVersion UnfinishedAfter(uint64_t key_hash, uint64_t version) const;

 private:
  // Returns the best version of a key, to be read or set. It is at the key's hash in best_, or at one of the next
  // numbers if other keys have the same hash.
  [[nodiscard]] KnownVersion* BestOf(uint64_t key_hash, std::string_view key);

  const SalvageBytes& bytes_;
  const bool newest_;
  ByHash best_;                                        // By the number that BestOf finds.
  ByHash unfinished_;                                  // By the key's hash.
  std::unordered_map<uint64_t, KnownVersion> before_;  // By the offset of the damaged version in best_.
  std::unordered_map<uint64_t, uint64_t> unproven_;    // The newest number by the key's hash.
  std::unordered_set<uint64_t> in_flight_;             // Hashes of keys.
  std::unordered_map<uint64_t, uint64_t> tombstones_;  // The newest number by the key's hash.
};

}  // namespace erda::inspect
