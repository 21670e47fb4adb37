// Judges an index entry by the objects that it leads to, when nothing vouches for the pool. Decides as recovery_table.h
// does, but believes neither the settled bit nor the old version. Owns nothing, and changes nothing. The thread that
// starts the shard calls it.
#pragma once

#include <cstdint>
#include <optional>

#include "format/entry_word.h"
#include "format/geometry.h"
#include "format/object.h"
#include "server/found_regions.h"

namespace erda::server {

struct JudgedEntry {
  enum class Verdict : uint8_t {
    kSound,    // `word` stands, and names a whole version of the entry's key
    kDamaged,  // the entry leads to nothing whole
    kGone      // the key was deleted, or its first put was never whole
  };
  Verdict verdict = Verdict::kDamaged;
  format::EntryWord word;
  format::ObjectView version;        // that the entry names, as far as it has a header; kNothing: no key is known
  bool went_back = false;            // to a version before the newest one
  std::optional<uint64_t> key_hash;  // of the version's key, if that can be the entry's

  // The version has a header, and so a key.
  [[nodiscard]] bool has_key() const { return version.state != format::ObjectState::kNothing; }
};

class EntryJudge {
 public:
  EntryJudge(const FoundRegions& regions, const format::Geometry& geometry, uint32_t shard)
      : regions_(regions), geometry_(geometry), shard_(shard) {}

  [[nodiscard]] JudgedEntry Judge(const format::IndexEntry& entry) const;

 private:
  [[nodiscard]] JudgedEntry JudgeVersions(const format::IndexEntry& entry) const;
  // The newest version is not whole: goes back to the newest one before it that is.
  [[nodiscard]] JudgedEntry GoBack(uint32_t head, format::EntryWord word, const format::ObjectView& newest,
                                   const format::ObjectView& old, bool old_is_whole) const;
  // The object can be of the entry's key.
  [[nodiscard]] bool Fits(const format::IndexEntry& entry, const format::ObjectView& view) const;

  const FoundRegions& regions_;
  const format::Geometry& geometry_;
  const uint32_t shard_;
};

}  // namespace erda::server
