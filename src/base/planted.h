// Defects that the simulator is given on purpose, to see that it finds them (docs/simulation.md). They are in the
// program erda-sim alone: everywhere else Planted() is false at compile time, and nothing of them is left.
#pragma once

#include <cstddef>
#include <cstdint>

namespace erda {

enum class Flaw : uint8_t {
  kNone,
  // The server
  kInlineNotFlushed,      // an inline put is published before its object is flushed
  kHeaderNotFlushed,      // a reserved version is published before its header and key are
  kMetaNotFlushed,        // a new entry's word is stored before its meta is flushed
  kCommitNotFlushed,      // a commit is acknowledged before the value is flushed
  kCommitUnfenced,        // a commit is acknowledged before the fence behind the flush of its value
  kSettledNotFlushed,     // what was found whole is settled without a flush
  kEntryNotFlushed,       // the entry that names a new version is not flushed before that is acknowledged
  kSettledNotWhole,       // what is published over is settled without a look at its checksum
  kAlwaysFlips,           // a new version makes the one before it the old one, settled or not
  kLateCommitLost,        // the commit of a version that is not the newest changes nothing
  kTakesBackToOld,        // from an unfinished version straight to the old one, past whole ones in between
  kTakesBackPastWriters,  // past versions that are still being written, too
  kReportEndsWriters,     // a report takes a version back though its writer is at work
  kCommitAfterDelete,     // a delete does not mark what is in flight
  kNoTombstone,           // a delete frees the entry at once
  kTombstoneNotFlushed,   // a tombstone is published before it is flushed
  kFreeNotFlushed,        // a freed entry is not flushed before the tombstone's place is used anew
  kCrcWithoutPlace,       // the checksums leave out the address
  kVersionsStartAnew,     // a server begins with version 1 again
  kCommitsPastDamage,     // a version is committed over one whose header is damaged, and may be newer
  kMarksInFlight,         // the mark of a segment moves past what is in flight
  kRegionSettledEarly,    // the region table calls a region settled that has puts in flight
  kLeftNotMarked,         // a version does not say that its entry has left it
  kDelegatedNotFlushed,   // a delegated put is published before its object is flushed
  kChunkNotFlushed,       // a chunk is not persistent before something else is appended behind it
  kMarksChunks,           // the mark of a segment moves past chunks that are being filled
  kChunkNotHeld,          // a region is emptied though a client may fill a chunk in it
  kPutsInTakenBack,       // puts go on in a chunk that was taken back
  kConditionNotAwaited,   // a condition is judged by what is settled, whatever is being written
  kConditionNotJudged,    // a put does what it was told, whatever its condition says
  kJudgesUnpublished,     // a condition is judged without the puts of the batch that are not published
  kPublishedUnfenced,     // entries are stored before what they lead to is fenced
  kSlotTakenTwice,        // puts that share fences do not look which slots the others take
  kMarksUnpublished,      // the mark of a segment moves past what is not published
  kEndsUnfenced,          // a session ends though its client is in the middle of a Write
  // Cleaning
  kMovesUnsettled,     // a version is moved that is not settled
  kCopiesUnverified,   // what is copied gets a good checksum, whole or not
  kCopyNotFlushed,     // an entry names a copy that is not persistent
  kMovesUnchecked,     // a move is applied though the entry has changed since
  kFreesHeld,          // a region is emptied though a writer may still write there
  kEmptiedNotFenced,   // a region is emptied before the entries are persistent
  kCountedNotFlushed,  // entries that an earlier server stored are trusted before they are flushed
  kSlotTooEarly,       // a slot gets another region before the one it had is zeroes
  kNotZeroed,          // a region is free though what it held is still there
  kSameGeneration,     // generations are counted by each region for itself
  kExpiryIgnored,      // what has expired is there for conditions, increments and deletes
  kExpiresNewer,       // an entry is freed though it names a newer version than the one that has expired
  kTimeNotStored,      // the shard judges by a time that it has not told its clients
  kTimeNotNoted,       // the shard tells its clients a time that the pool does not keep
  kExpiresInFlight,    // what was in flight when a version was freed that has expired, counts still
  kFlipNotUndone,      // a flipped bit of an index entry stays
  // Growing
  kSplitNotFlushed,    // a block counts before it is flushed
  kSplitUnfenced,      // entries leave a block before the number of blocks is persistent
  kSplitCountedFirst,  // a block counts before what belongs there stands there
  kSplitLeavesOld,     // entries stay in the block that they went from, too
  kRunNotFlushed,      // a block is put into a region that the region table does not say is the index's
  kReachNotFlushed,    // an entry is beyond its window of before, though the record of the larger one is not flushed
  kReachToldLate,      // the control block tells of a larger window only when there is an even larger one
  // Recovery
  kKeepsLeftOver,         // of a split
  kReachForgotten,        // recovery looks at 64 slots, however large the window is
  kSuperblockNotFlushed,  // the superblock that counts is not flushed before the other copy is written
  kTrustsNewest,          // the newest version is taken for whole
  kFoundNotFlushed,       // what was found is built upon before it is flushed
  kKeepsBothCopies,       // of an entry that was being moved
  kTailTooEarly,          // the log goes on at the last object, not behind it
  kTrustsChunks,          // a walk goes on where the headers in a chunk say
  // The client
  kReturnsUnsettled,   // a get returns a kPersisted version that nobody has made persistent yet
  kSkipsChain,         // a get goes from the newest version to the old one, past those in between
  kNoChecksum,         // a get takes a value as it comes
  kDamageIsOlder,      // a get goes from a damaged version to an older one
  kMissNotConfirmed,   // a key is absent though entries were being moved
  kSplitNotSeen,       // a key is absent though its block was split
  kReachNotSeen,       // a key is absent though its window has grown
  kReadsInOrder,       // Reads of one batch count as taken in the order posted, whatever the fabric says
  kSlotNotConfirmed,   // a version is damaged though its slot may have changed
  kTrustsLocation,     // a get that knows where a version was does not look whether its entry has left it
  kKnowsForEver,       // what a client knows of locations outlives the server
  kAcknowledgesEarly,  // a reserved put is done when its space is reserved
  kNoReadBehindWrite,  // a put is done when its Write completes
  kReturnsExpired,     // a get returns what it finds, expired or not
  kExpiresBehindRead,  // a value has expired if its deadline has passed when the get is over
  kTrustsOwnClock,     // a value lives as long as the client's own clock says so
  // Its scans
  kBlockNotConfirmed,    // a block counts though entries were being moved
  kBlockSplitNotSeen,    // a block counts for what belonged there before it was split
  kScanSkipsUnverified,  // an entry whose newest version is not there yet is nobody's
  kScanForgetsChanged,   // so is one that has changed before its key was known
  kCount
};

inline constexpr const char* kFlawNames[] = {
    "none",
    "inline-not-flushed",
    "header-not-flushed",
    "meta-not-flushed",
    "commit-not-flushed",
    "commit-unfenced",
    "settled-not-flushed",
    "entry-not-flushed",
    "settled-not-whole",
    "always-flips",
    "late-commit-lost",
    "takes-back-to-old",
    "takes-back-past-writers",
    "report-ends-writers",
    "commit-after-delete",
    "no-tombstone",
    "tombstone-not-flushed",
    "free-not-flushed",
    "crc-without-place",
    "versions-start-anew",
    "commits-past-damage",
    "marks-in-flight",
    "region-settled-early",
    "left-not-marked",
    "delegated-not-flushed",
    "chunk-not-flushed",
    "marks-chunks",
    "chunk-not-held",
    "puts-in-taken-back",
    "condition-not-awaited",
    "condition-not-judged",
    "judges-unpublished",
    "published-unfenced",
    "slot-taken-twice",
    "marks-unpublished",
    "ends-unfenced",
    "moves-unsettled",
    "copies-unverified",
    "copy-not-flushed",
    "moves-unchecked",
    "frees-held",
    "emptied-not-fenced",
    "counted-not-flushed",
    "slot-too-early",
    "not-zeroed",
    "same-generation",
    "expiry-ignored",
    "expires-newer",
    "time-not-stored",
    "time-not-noted",
    "expires-in-flight",
    "flip-not-undone",
    "split-not-flushed",
    "split-unfenced",
    "split-counted-first",
    "split-leaves-old",
    "run-not-flushed",
    "reach-not-flushed",
    "reach-told-late",
    "keeps-left-over",
    "reach-forgotten",
    "superblock-not-flushed",
    "trusts-newest",
    "found-not-flushed",
    "keeps-both-copies",
    "tail-too-early",
    "trusts-chunks",
    "returns-unsettled",
    "skips-chain",
    "no-checksum",
    "damage-is-older",
    "miss-not-confirmed",
    "split-not-seen",
    "reach-not-seen",
    "reads-in-order",
    "slot-not-confirmed",
    "trusts-location",
    "knows-for-ever",
    "acknowledges-early",
    "no-read-behind-write",
    "returns-expired",
    "expires-behind-read",
    "trusts-own-clock",
    "block-not-confirmed",
    "block-split-not-seen",
    "scan-skips-unverified",
    "scan-forgets-changed",
};
static_assert(sizeof(kFlawNames) / sizeof(kFlawNames[0]) == static_cast<size_t>(Flaw::kCount));

#ifdef ERDA_PLANTED
inline Flaw planted_flaw = Flaw::kNone;
inline bool IsPlanted(Flaw flaw) { return planted_flaw == flaw; }
// (Not std::is_constant_evaluated: the initializer of a const bool would be a constant, and the defect not there.)
constexpr bool Planted(Flaw flaw) { return flaw != Flaw::kNone && IsPlanted(flaw); }
#else
constexpr bool Planted(Flaw /*flaw*/) { return false; }
#endif

}  // namespace erda
