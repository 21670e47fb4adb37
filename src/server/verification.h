// Full verification of one shard (docs/protocol.md, "After a power cut, on an ordinary file"). Each page of the pool's
// file may be of another time since it was last synced, so nothing vouches for anything: settled bits, marks, states of
// segments, the version limit, the region table and the number of blocks may each be older than what they speak of.
// What can be believed is what a checksum covers together with its place: an object. So the index is judged by the
// objects that it leads to, and the log by what the index leads to.
//
// Look reads the structure alone and decides whether the shard can be repaired; Repair reads every entry and every
// value that one names, and leaves what a clean close leaves: then the shard is opened like one. Every step of Repair
// may be the last one: the superblock still says that nothing vouches for the pool, so the next server begins here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "erda/server.h"
#include "format/geometry.h"
#include "format/index_layout.h"
#include "format/log_layout.h"
#include "format/object.h"
#include "index/index.h"
#include "nvm/writer.h"

namespace erda::server {

class Verification {
 public:
  // Is told of each key whose newest value is damaged; of an empty one if the key cannot be known.
  using TellDamaged = std::function<void(std::string_view key)>;

  Verification(nvm::Writer& nvm, const format::Geometry& geometry, uint32_t pool_seed, uint32_t shard);

  // Changes nothing. kCorruption: the index cannot be found again; the message says what to do.
  Status Look();
  // REQUIRES: Look was ok. An error: the disk does not take the version limit, so nothing may be served.
  Status Repair(const TellDamaged& tell, RecoveryReport* report);

 private:
  static constexpr uint32_t kNoRegion = UINT32_MAX;
  struct Region {
    uint32_t generation = 0;
    uint32_t head = 0;  // of the shard
    uint32_t slot = 0;
    uint32_t score = 0;  // segments whose headers have this generation
    bool linked = false;
    std::vector<bool> named;  // by segment: an entry leads there
  };
  enum class Verdict : uint8_t {
    kSound,    // `word` stands, and names a whole version of the entry's key
    kDamaged,  // it leads to nothing whole
    kGone      // the key was deleted, or its first put was never whole
  };
  struct Judged {
    Verdict verdict = Verdict::kDamaged;
    format::EntryWord word;
    format::ObjectView version;  // that the entry names, as far as it has a header; kNothing: no key is known
    bool went_back = false;
  };
  // An entry that stands where no get looks for it.
  struct Misplaced {
    index::Slot slot = 0;
    format::IndexEntry entry;
  };
  struct Twin {
    index::Slot slot = 0;
    std::optional<uint64_t> key_hash;
  };

  void LookAtRegions();
  Status LookAtGenerations() const;
  [[nodiscard]] Region FromWord(uint32_t region) const;
  [[nodiscard]] Region FromObjects(uint32_t region) const;
  [[nodiscard]] uint32_t CountHeaders(uint32_t region, uint32_t generation) const;
  Status LookAtRuns();
  Status LookAtBlocks();

  void RaiseBlocks();
  void JudgeSlots(const TellDamaged& tell);
  std::optional<uint64_t> JudgeSlot(index::Slot slot, const TellDamaged& tell);
  [[nodiscard]] format::Reaches RecordedReaches() const;
  void RaiseReach(index::Slot slot, const format::IndexEntry& entry, uint64_t key_hash);
  [[nodiscard]] Judged Judge(const format::IndexEntry& entry) const;
  [[nodiscard]] bool Fits(const format::IndexEntry& entry, const format::ObjectView& view) const;
  [[nodiscard]] bool IsInPlace(index::Slot slot, const format::IndexEntry& entry, const Judged& judged) const;
  // Of two entries of one key in one block; true if `slot` goes.
  bool EndTwin(index::Slot other, index::Slot slot, const TellDamaged& tell);
  void MoveHome(const Misplaced& misplaced, const TellDamaged& tell);
  [[nodiscard]] std::optional<index::Slot> FindAgain(const Misplaced& misplaced) const;
  bool KeepNewer(const Judged& judged);
  void RepairRegions();
  void RepairSegments(uint32_t region);
  [[nodiscard]] uint64_t VersionsEnd() const;
  void StoreRecord();

  [[nodiscard]] uint32_t FirstHead() const { return shard_ * geometry_.heads_per_shard; }
  [[nodiscard]] uint64_t SegmentOffset(uint32_t region, uint64_t segment) const {
    return geometry_.RegionOffset(region) + segment * geometry_.segment_size;
  }
  [[nodiscard]] format::SegmentHeader HeaderOf(uint32_t region, uint64_t segment) const;
  [[nodiscard]] format::RegionWord WordOf(uint32_t region) const;
  void StoreWord(uint32_t region, format::RegionWord word);
  [[nodiscard]] format::IndexEntry At(index::Slot slot) const;
  void StoreEntry(index::Slot slot, format::EntryWord word);
  // The region that the address is in, or null.
  [[nodiscard]] const Region* Find(uint32_t head, format::LogAddress address, uint32_t* number) const;
  [[nodiscard]] format::ObjectView Inspect(uint32_t head, format::LogAddress address) const;
  void MarkNamed(uint32_t head, format::LogAddress address);

  nvm::Writer& nvm_;
  const format::Geometry& geometry_;
  const uint32_t pool_seed_;
  const uint32_t shard_;
  std::vector<Region> regions_;               // by number in the shard
  std::vector<std::vector<uint32_t>> heads_;  // by head of the shard and slot: a region's number in the shard
  std::vector<uint32_t> runs_;                // as in the control block: regions plus 1
  format::IndexLayout layout_;
  uint64_t known_blocks_ = 0;  // that there are places for
  uint32_t newest_generation_ = 0;
  uint64_t newest_version_ = 0;
  std::vector<Misplaced> misplaced_;
  RecoveryReport report_;
};

}  // namespace erda::server
