// Gets (docs/protocol.md, "Get"), step by step:
//
//   located        with a known location: read the version alone (located.h). If that does not count:
//   search         find the key's entry (search.h)
//   version        read the version that the entry names, verify it, decide (read_table.h)
//   older          along `previous`: read that version, and the header of the entry's old version. Go to the old one
//                  unless it is older than the version read
//   second look    if a version does not verify, or is a tombstone: has the entry changed since?
//
// A scan starts gets, too: it has found an entry, and wants its key. Such a get has no key at first:
//
//   entry          read the version that the entry names as new. Its header names the key. From then on it is a get
//                  of that key, which has read the version already
//   older          if that version does not verify: the old version names the key as well. Then get the key
//   second look    if neither version verifies: has the entry changed since?
//
// Owns the operations of this kind, and the list of the gets that begin together. Requires a link that is up when an
// operation starts. Only the client's thread calls it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "client/block.h"
#include "client/connections.h"
#include "client/get_end.h"
#include "client/get_op.h"
#include "client/located.h"
#include "client/operations.h"
#include "client/own_requests.h"
#include "client/posting.h"
#include "client/read_table.h"
#include "client/search.h"
#include "erda/client.h"
#include "format/object.h"

namespace erda::client {

class Gets {
 public:
  Gets(Operations& operations, Connections& connections, Posting& posting, KnownLocations& locations,
       OwnRequests& own_requests, bool reads_in_order, const Clock& clock, ClientStats& stats)
      : operations_(operations),
        connections_(connections),
        posting_(posting),
        locations_(locations),
        own_requests_(own_requests),
        stats_(stats),
        search_(connections, posting, reads_in_order, stats),
        ending_(operations, posting, own_requests, clock, stats) {}
  void Prepare() {
    operations_.AddKind(&ops_);
    to_start_.reserve(operations_.size());
  }

  // Takes an operation for a get of the key. Returns null if no operation can begin now (Operations::Refusal).
  GetOp* Take(std::string_view key);
  // Takes an operation for a get of the key that an entry names. REQUIRES: there is room for an operation.
  GetOp& TakeEntry(const FoundEntry& found, bool with_value);
  // Begins the operation's steps. REQUIRES: the link is up.
  void Start(GetOp& op);
  // Begins the gets that wait for each other, before the gathered requests are posted. ForgetToStart forgets these
  // gets, since all connections end.
  void StartTogether();
  void ForgetToStart() { to_start_.clear(); }
  // OnRead: the last Read that the operation posted has arrived. OnHeads: the control block has arrived that it waited
  // for.
  void OnRead(GetOp& op);
  void OnHeads(GetOp& op);
  // Ends an operation that was deferred, with its result.
  void Deliver(GetOp& op) { ending_.End(op, std::move(op.result)); }

 private:
  bool StartLocated(GetOp& op);
  void OnLocatedRead(GetOp& op);
  void StartSearch(GetOp& op);
  // These are not inlined: other steps would pay for their frames.
  [[gnu::noinline]] void StartEntry(GetOp& op);
  [[gnu::noinline]] void OnEntryRead(GetOp& op);
  [[gnu::noinline]] void OnMissConfirm(GetOp& op);
  void GoOn(GetOp& op, SearchStep step);
  void ReadNewest(GetOp& op);
  void ReadVersion(GetOp& op, uint64_t bytes);
  void OnVersionRead(GetOp& op);
  void LearnKey(GetOp& op, const format::ObjectView& view);
  void Decide(GetOp& op, format::ObjectView view, EntryLook look);
  void DecideNameless(GetOp& op, EntryLook look);
  void Return(GetOp& op, const format::ObjectView& view);
  [[nodiscard]] bool SlotHolds(GetOp& op);
  void LookAgain(GetOp& op);
  void OnSecondLook(GetOp& op);
  void GoOlder(GetOp& op, const format::ObjectView& view);
  void SkipToOld(GetOp& op);
  void GoTo(GetOp& op, format::LogAddress address);
  // Ends the get with the version that counts. Looks again if the version's deadline has passed meanwhile.
  void EndWith(GetOp& op, const format::ObjectView& view) {
    if (!ending_.EndWith(op, view)) StartSearch(op);
  }

  Operations& operations_;
  Connections& connections_;
  Posting& posting_;
  KnownLocations& locations_;
  OwnRequests& own_requests_;
  ClientStats& stats_;
  Search search_;
  GetEnding ending_;
  std::vector<GetOp> ops_;
  std::vector<OpIndex> to_start_;
};

}  // namespace erda::client
