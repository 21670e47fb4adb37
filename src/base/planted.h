// Defects for the simulator, which must find each of them (docs/simulation.md). Only the program erda-sim contains
// them. In every other program Planted() is false at compile time, and the compiler removes the defects.
#pragma once

#include <cstddef>
#include <cstdint>

namespace erda {

enum class Flaw : uint8_t {
  kNone,
  // The server.
  kInlineNotFlushed,   // An inline put is published before its object is flushed.
  kHeaderNotFlushed,   // A reserved version is published before its header and key are flushed.
  kMetaNotFlushed,     // A new entry's word is stored before its meta is flushed.
  kCommitNotFlushed,   // A commit is acknowledged before the value is flushed.
  kCommitUnfenced,     // A commit is acknowledged before the fence that follows the flush of its value.
  kSettledNotFlushed,  // A version that was found whole is settled without a flush.
  kEntryNotFlushed,    // A new version is acknowledged before the entry that names it is flushed.
  kSettledNotWhole,    // A version is settled without a look at its checksum when the next one is published over it.
  kAlwaysFlips,        // A new version makes its predecessor the old one, settled or not.
  kLateCommitLost,     // The commit of a version that is not the newest changes nothing.
  // Taking back goes from an unfinished version straight to the old one, past whole versions in between.
  kTakesBackToOld,
  kTakesBackPastWriters,  // Taking back goes past versions that are still being written.
  kReportEndsWriters,     // A report takes a version back although its writer is at work.
  kCommitAfterDelete,     // A delete does not mark the versions in flight.
  kNoTombstone,           // A delete frees the entry at once.
  kTombstoneNotFlushed,   // A tombstone is published before it is flushed.
  kFreeNotFlushed,        // A tombstone's place is used again before the freed entry is flushed.
  kCrcWithoutPlace,       // The checksums leave out the address.
  kVersionsStartAnew,     // A server begins with version 1 again.
  kCommitsPastDamage,     // A version is committed over one whose header is damaged, and which may be newer.
  kMarksInFlight,         // The mark of a segment moves past versions in flight.
  kRegionSettledEarly,    // The region table calls a region settled that has puts in flight.
  kLeftNotMarked,         // A version does not say that its entry has left it.
  kDelegatedNotFlushed,   // A delegated put is published before its object is flushed.
  kChunkNotFlushed,       // The log appends after a chunk before the chunk is persistent.
  kMarksChunks,           // The mark of a segment moves past chunks that clients still fill.
  kChunkNotHeld,          // A region is emptied although a client may fill a chunk in it.
  kPutsInRevoked,         // Puts go on in a chunk that was revoked.
  kConditionNotAwaited,   // A condition is judged by the settled version, although a newer one is being written.
  kConditionNotJudged,    // A put ignores its condition.
  kJudgesUnpublished,     // A condition is judged without the unpublished puts of the batch.
  kPublishedUnfenced,     // Entries are stored before the objects that they name are fenced.
  kSlotTakenTwice,        // Puts that share fences ignore the index slots that the others take.
  kMarksUnpublished,      // The mark of a segment moves past unpublished versions.
  kEndsUnfenced,          // A session ends although its client is in the middle of a Write.
  // Cleaning.
  kMovesUnsettled,     // The cleaner moves a version that is not settled.
  kCopiesUnverified,   // The cleaner gives a copy a good checksum, whole or not.
  kCopyNotFlushed,     // An entry names a copy that is not persistent.
  kMovesUnchecked,     // A move is applied although the entry has changed since.
  kFreesHeld,          // A region is emptied although a writer may still write there.
  kEmptiedAfterMerge,  // A region is emptied when its merge ends, although a client may still write there.
  kReplicateSkipped,   // A merged region is emptied without a look at what settled there since.
  kEmptiedNotFenced,   // A region is emptied before the entries are persistent.
  kCountedNotFlushed,  // Entries that an earlier server stored are trusted before they are flushed.
  kSlotTooEarly,       // A head slot gets another region before its previous region is zeroes.
  kNotZeroed,          // A region is free although its old contents are still there.
  kSameGeneration,     // Each region counts its generations separately.
  kExpiryIgnored,      // Conditions, increments and deletes see expired values.
  kExpiresNewer,       // The shard frees an entry although it names a newer version than the expired one.
  kTimeNotStored,      // The shard judges by a time that it has not told its clients.
  kTimeNotNoted,       // The shard tells its clients a time that the pool does not keep.
  kExpiresInFlight,    // A version still counts although it was in flight when an expired version of its key was freed.
  kFlipNotUndone,      // A flipped bit of an index entry stays.
  kRestNotMended,      // A bit of an index entry stays that flipped while no server ran.
  // A pool with a journal.
  kSettledBeforeHeld,   // A version is settled before the medium holds it.
  kAnsweredBeforeHeld,  // A request is answered before the medium holds what the answer tells.
  kFreedBeforeHeld,     // A delete frees the entry before the medium holds the tombstone.
  kPassesADelete,       // A version of a key is published over a tombstone that the medium does not hold.
  kSlotBeforeHeld,      // A tombstone overwrites another one that the medium does not hold.
  kCopyNotTaken,        // An entry names a copy that is not in the stream.
  kZeroesNotTaken,      // A region is free although its zeroes are not in the stream.
  kAppliesUnfenced,     // A mirror stores without the fences of the primary.
  kCopyUnfenced,        // The stream of a mirrored pool has no fence between a copy and the entry that names it.
  kZeroesUnfenced,      // The stream of a mirrored pool has no fence between a region's zeroes and its word.
  // Growing.
  kSplitNotFlushed,    // A block counts before it is flushed.
  kSplitUnfenced,      // Entries leave a block before the number of blocks is persistent.
  kSplitCountedFirst,  // A block counts before the entries that belong there stand there.
  kSplitLeavesOld,     // Entries also stay in the block that they left.
  kRunNotFlushed,      // A block is put into a region that is not yet the index's in the region table.
  // An entry stands beyond its earlier window, although the record of the larger window is not flushed.
  kReachNotFlushed,
  kReachToldLate,  // The control block announces a larger window only when there is an even larger one.
  // Recovery.
  kKeepsLeftOver,         // Recovery keeps leftover entries of a split.
  kReachForgotten,        // Recovery looks at 64 index slots, however large the window is.
  kSuperblockNotFlushed,  // The other superblock is written before the one that counts is flushed.
  kTrustsNewest,          // Recovery takes the newest version for whole.
  kFoundNotFlushed,       // Recovery builds upon its findings before they are flushed.
  kKeepsBothCopies,       // Recovery keeps both copies of an entry that was being moved.
  kTailTooEarly,          // The log continues at the last object, and not after it.
  kTrustsChunks,          // A walk continues where the headers in a chunk say.
  // The client.
  kReturnsUnsettled,   // A get returns a kPersisted version that is not persistent yet.
  kSkipsChain,         // A get goes from the newest version to the old one, past the versions in between.
  kNoChecksum,         // A get takes a value without a look at its checksum.
  kDamageIsOlder,      // A get goes from a damaged version to an older one.
  kMissNotConfirmed,   // A get finds the key absent although entries were being moved.
  kSplitNotSeen,       // A get finds the key absent although its block was split.
  kReachNotSeen,       // A get finds the key absent although its window has grown.
  kReadsInOrder,       // Reads of one batch count as taken in the order posted, whatever the fabric promises.
  kSlotNotConfirmed,   // A get finds a version damaged although its head slot may have changed.
  kTrustsLocation,     // A get by a known location does not check whether the entry has left the version.
  kKnowsForEver,       // Known locations outlive the server.
  kAcknowledgesEarly,  // A reserved put is done when its space is reserved.
  kNoReadBehindWrite,  // A put is done when its Write completes.
  kReturnsExpired,     // A get returns a value although it has expired.
  kExpiresBehindRead,  // A get judges expiry by the time at its end, and not by the time of its Read.
  kTrustsOwnClock,     // A client judges expiry by its own clock.
  kFollowsAny,         // An operation begins although earlier ones of the client on its key are under way.
  kFollowsCondition,   // A put follows one with a condition, which may wait at the shard.
  // Scans of the client.
  kBlockNotConfirmed,    // A block counts although entries were being moved.
  kBlockSplitNotSeen,    // A block counts for the keys that belonged there before it was split.
  kScanSkipsUnverified,  // A scan skips an entry whose newest version has not arrived.
  kScanForgetsChanged,   // A scan skips an entry that changed before the scan knew its key.
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
    "puts-in-revoked",
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
    "emptied-after-merge",
    "replicate-skipped",
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
    "rest-not-mended",
    "settled-before-held",
    "answered-before-held",
    "freed-before-held",
    "passes-a-delete",
    "slot-before-held",
    "copy-not-taken",
    "zeroes-not-taken",
    "applies-unfenced",
    "copy-unfenced",
    "zeroes-unfenced",
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
    "follows-any",
    "follows-condition",
    "block-not-confirmed",
    "block-split-not-seen",
    "scan-skips-unverified",
    "scan-forgets-changed",
};
static_assert(sizeof(kFlawNames) / sizeof(kFlawNames[0]) == static_cast<size_t>(Flaw::kCount));

#ifdef ERDA_PLANTED
inline Flaw planted_flaw = Flaw::kNone;
inline bool IsPlanted(Flaw flaw) { return planted_flaw == flaw; }
// Not std::is_constant_evaluated: the initializer of a const bool would be a constant, and would lose the defect.
constexpr bool Planted(Flaw flaw) { return flaw != Flaw::kNone && IsPlanted(flaw); }
#else
constexpr bool Planted(Flaw /*flaw*/) { return false; }
#endif

}  // namespace erda
