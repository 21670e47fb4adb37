// Judges an index entry by the objects that it leads to, when the pool's bytes are not trusted (verification.h).
// Decides as recovery_table.h does, but trusts neither the settled bit nor the old version. Owns nothing, and changes
// nothing. The thread that starts the shard calls it.
#pragma once

#include <cstdint>
#include <optional>

#include "format/entry_word.h"
#include "format/geometry.h"
#include "format/object.h"
#include "server/recovery/found_regions.h"

namespace erda::server {

struct JudgedEntry {
  enum class Verdict : uint8_t {
    kSound,    // `word` is right, and names a whole version of the entry's key.
    kDamaged,  // The entry leads to no whole version.
    kGone      // The key was deleted, or its first put was never whole.
  };
  Verdict verdict = Verdict::kDamaged;
  format::EntryWord word;
  format::ObjectView version;        // The version that the entry names, if it has a header. kNothing: no key is known.
  bool went_back = false;            // `word` names a version before the newest one.
  std::optional<uint64_t> key_hash;  // The hash of the version's key, if that can be the entry's key.

  // Returns true if the version has a header, and so a key.
  [[nodiscard]] bool has_key() const { return version.state != format::ObjectState::kNothing; }
};

class EntryJudge {
 public:
  EntryJudge(const FoundRegions& regions, const format::Geometry& geometry, uint32_t shard)
      : regions_(regions), geometry_(geometry), shard_(shard) {}

  [[nodiscard]] JudgedEntry Judge(const format::IndexEntry& entry) const;

 private:
  [[nodiscard]] JudgedEntry JudgeVersions(const format::IndexEntry& entry) const;
  // Goes back from a newest version that is not whole to the newest whole one before it.
  [[nodiscard]] JudgedEntry GoBack(uint32_t head, format::EntryWord word, const format::ObjectView& newest,
                                   const format::ObjectView& old, bool old_is_whole) const;
  // Returns true if the object can be of the entry's key.
  [[nodiscard]] bool Fits(const format::IndexEntry& entry, const format::ObjectView& view) const;

  const FoundRegions& regions_;
  const format::Geometry& geometry_;
  const uint32_t shard_;
};

}  // namespace erda::server
