// The proof that the observer of an index has heard of all changes by published puts. A function takes the proof by
// value if it shows what the observer has counted. Nothing can copy or move a proof, so a caller makes it in the call
// itself: log.counts(index.TellPublished()). A caller that forgets to tell does not compile. A value for one thread,
// the shard's.
#pragma once

namespace erda::index {

// EntryNews::TellPublished alone makes one.
class AllTold {
 public:
  AllTold(const AllTold&) = delete;
  AllTold& operator=(const AllTold&) = delete;

 private:
  friend class EntryNews;  // only to make a proof: the class has no state
  AllTold() = default;
};

}  // namespace erda::index
