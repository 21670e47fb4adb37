// The paper's 8-byte word: the one thing about a key that changes, and it changes by one atomic store.
//
//   bit 63    62                  32 31                   1 0
//   +--------+----------------------+----------------------+---------+
//   | newtag | first address (31)   | second address (31)  | settled |
//   +--------+----------------------+----------------------+---------+
//
// newtag 1: the first address is the new one and the second the old one; newtag 0: the other way round.
// settled: the new version was verified whole, and is persistent (design: "Settled").
// The old address names the newest settled version before the new one, or nothing. (I1) Beside a settled new version
// nobody follows it, and it may lead to what is no more.
// A word of all zero bits is an empty entry.
//
// Transitions are pure: each returns the next word. The parts of server/versions/versions.h decide which one, and store
// it.
#pragma once

#include <cstdint>

#include "format/log_address.h"

namespace erda::format {

class EntryWord {
 public:
  constexpr EntryWord() = default;
  explicit constexpr EntryWord(uint64_t raw) : raw_(raw) {}
  static constexpr EntryWord Make(bool new_tag, LogAddress new_address, LogAddress old_address, bool settled) {
    const LogAddress first = new_tag ? new_address : old_address;
    const LogAddress second = new_tag ? old_address : new_address;
    return EntryWord((uint64_t{new_tag} << kTagShift) | (uint64_t{first.raw()} << kFirstShift) |
                     (uint64_t{second.raw()} << kSecondShift) | uint64_t{settled});
  }

  [[nodiscard]] constexpr uint64_t raw() const { return raw_; }
  [[nodiscard]] constexpr bool empty() const { return raw_ == 0; }
  [[nodiscard]] constexpr bool new_tag() const { return (raw_ >> kTagShift) != 0; }
  [[nodiscard]] constexpr bool settled() const { return (raw_ & 1) != 0; }
  [[nodiscard]] constexpr LogAddress new_address() const { return new_tag() ? first() : second(); }
  [[nodiscard]] constexpr LogAddress old_address() const { return new_tag() ? second() : first(); }

  // The old address, if anybody may go back to it.
  [[nodiscard]] constexpr LogAddress needed_old() const { return settled() ? kNoAddress : old_address(); }
  // Whether the cleaner must keep what stands there, and may move it: it is settled.
  [[nodiscard]] constexpr bool NamesSettled(LogAddress address) const {
    return !empty() && !address.none() && (settled() ? new_address() == address : old_address() == address);
  }
  // REQUIRES: NamesSettled(from). The same version stands there, too.
  [[nodiscard]] constexpr EntryWord Moved(LogAddress from, LogAddress to) const {
    return new_address() == from ? Make(new_tag(), to, old_address(), settled()) : WithOld(to);
  }

  // Publishes a newer version. If the current one is settled the tag flips, and the current one becomes the old one. If
  // not, its writer is still at work or gone. The newer version replaces it, and the old one stays, so the last whole
  // version is never lost. (The paper always flips: two puts in flight then lose it.)
  [[nodiscard]] constexpr EntryWord Published(LogAddress address) const {
    if (empty()) return Make(true, address, kNoAddress, false);
    return settled() ? Make(!new_tag(), address, new_address(), false) : Make(new_tag(), address, old_address(), false);
  }
  // The new version was found whole and is persistent.
  [[nodiscard]] constexpr EntryWord Settled() const { return EntryWord(raw_ | 1); }
  [[nodiscard]] constexpr EntryWord Unsettled() const { return EntryWord(raw_ & ~uint64_t{1}); }
  // A settled version older than the new one turned up late.
  [[nodiscard]] constexpr EntryWord WithOld(LogAddress address) const {
    return Make(new_tag(), new_address(), address, settled());
  }
  // The new version will never be whole: an earlier one, not older than the old one, takes its place.
  [[nodiscard]] constexpr EntryWord TakenBackTo(LogAddress address, bool settled) const {
    return Make(new_tag(), address, old_address(), settled);
  }
  // The new version will never be whole, and nothing between it and the old one is: the old one is new again, settled
  // by (I1). Empty without an old one.
  [[nodiscard]] constexpr EntryWord TakenBackToOld() const {
    return old_address().none() ? EntryWord() : Make(!new_tag(), old_address(), kNoAddress, true);
  }

  constexpr bool operator==(const EntryWord&) const = default;

 private:
  static constexpr int kTagShift = 63;
  static constexpr int kFirstShift = 32;
  static constexpr int kSecondShift = 1;

  [[nodiscard]] constexpr LogAddress first() const { return LogAddress(static_cast<uint32_t>(raw_ >> kFirstShift)); }
  [[nodiscard]] constexpr LogAddress second() const { return LogAddress(static_cast<uint32_t>(raw_ >> kSecondShift)); }

  uint64_t raw_ = 0;
};

}  // namespace erda::format
