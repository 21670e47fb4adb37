// Gets (docs/protocol.md, "Get"), step by step:
//
//   located        with a known location: read the version alone (located.h). If that does not count:
//   search         find the key's entry (search.h)
//   version        read the version that the entry names, verify it, decide (read_table.h)
//   older          along `previous`: read with the old version's header, and go there unless it is newer than that
//   second look    if it does not verify: has the entry changed since?
//
// A scan gets the key of an entry that it found, too. It is a get without a key at first:
//
//   entry          read the version that the entry names as new: its header says which key it is. From then on it is a
//                  get of that key, which has its version already
//   older          if that does not verify: the old version says the key as well; then a get of the key
//   second look    if none does: has the entry changed since?
//
// Owns the operations of this kind, and the list of those that begin together. Requires a link that is up when an
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

  // A get of the key; null if none can begin now (Operations::Refusal).
  GetOp* Take(std::string_view key);
  // A get of the key that an entry names. REQUIRES: there is room for an operation.
  GetOp& TakeEntry(const FoundEntry& found, bool with_value);
  // The link is up.
  void Start(GetOp& op);
  // Begins the gets that wait for each other, before what is gathered is posted. ForgetToStart: all connections end.
  void StartTogether();
  void ForgetToStart() { to_start_.clear(); }
  // OnRead: the Read that the operation posted has ended. OnHeads: the control block has arrived that it waited for.
  void OnRead(GetOp& op);
  void OnHeads(GetOp& op);
  // The operation was deferred, and fails by its result.
  void Deliver(GetOp& op) { ending_.End(op, std::move(op.result)); }

 private:
  bool StartLocated(GetOp& op);
  void OnLocatedRead(GetOp& op);
  void StartSearch(GetOp& op);
  // (Not inlined: other steps would pay for their frames.)
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
  void GoTo(GetOp& op, format::LogAddress address);
  // Ends with the version that counts, or looks again if its deadline has passed meanwhile.
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
