// The paper's 8-byte word. One atomic store of it publishes a version, settles it, or takes it back.
//
//   bit 63    62                  32 31                   1 0
//   +--------+----------------------+----------------------+---------+
//   | newtag | first address (31)   | second address (31)  | settled |
//   +--------+----------------------+----------------------+---------+
//
// newtag: with 1 the first address is the new address, and the second the old address. With 0 it is the other way
// round. settled: the shard verified the new version whole, and the version is persistent. The old address names the
// newest settled version before the new one, or nothing (I1). If the new version is settled, no reader follows the old
// address. It may then lead to space that the log has used again. A word of all zero bits is an empty entry.
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

  // Returns the old address, if a reader or the shard may go back to it.
  [[nodiscard]] constexpr LogAddress needed_old() const { return settled() ? kNoAddress : old_address(); }
  // Returns whether a settled version that the entry needs stands at the address. The cleaner must keep that version,
  // and may move it.
  [[nodiscard]] constexpr bool NamesSettled(LogAddress address) const {
    return !empty() && !address.none() && (settled() ? new_address() == address : old_address() == address);
  }
  // Replaces the address of a version by that of its copy. REQUIRES: NamesSettled(from), and the same version stands at
  // `to`.
  [[nodiscard]] constexpr EntryWord Moved(LogAddress from, LogAddress to) const {
    return new_address() == from ? Make(new_tag(), to, old_address(), settled()) : WithOld(to);
  }

  // Publishes a newer version. If the current version is settled, the tag flips, and the current one becomes the old
  // one. If not, its writer is still at work or gone. The newer version replaces it, and the old one stays, so the last
  // whole version is never lost. (In the paper the tag always flips, and two puts in flight lose that version.)
  [[nodiscard]] constexpr EntryWord Published(LogAddress address) const {
    if (empty()) return Make(true, address, kNoAddress, false);
    return settled() ? Make(!new_tag(), address, new_address(), false) : Make(new_tag(), address, old_address(), false);
  }
  // Settles the new version. REQUIRES: it is verified whole, and persistent.
  [[nodiscard]] constexpr EntryWord Settled() const { return EntryWord(raw_ | 1); }
  [[nodiscard]] constexpr EntryWord Unsettled() const { return EntryWord(raw_ & ~uint64_t{1}); }
  // Makes a settled version that is older than the new one the old one. It became whole late.
  [[nodiscard]] constexpr EntryWord WithOld(LogAddress address) const {
    return Make(new_tag(), new_address(), address, settled());
  }
  // Takes back the new version, which will never be whole. An earlier version takes its place, which is not older than
  // the old one.
  [[nodiscard]] constexpr EntryWord TakenBackTo(LogAddress address, bool settled) const {
    return Make(new_tag(), address, old_address(), settled);
  }
  // Takes back the new version, if no version between it and the old one is whole. The old version is new again. It is
  // settled by (I1). The entry is empty if no old version exists.
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
