#include "client/reply_status.h"

#include <cstring>
#include <utility>

namespace erda::client {

using format::Reason;

namespace {

// Returns the error number in a reply, which may have any bytes. Returns 0 for a number that no error can have.
int ErrorNumberOf(uint64_t number) { return std::in_range<int>(number) ? static_cast<int>(number) : 0; }

Status OfFailedJournal(Code code, const std::string& shard, int error) {
  const std::string cause = error == 0 ? "" : std::string(" (") + std::strerror(error) + ")";
  return {
      code,
      shard + " cannot write to the disk of its journal" + cause + ", and changes nothing; its server needs a restart",
      error};
}

}  // namespace

Status StatusOf(const Link& link, const format::Reply& reply) {
  const auto code = static_cast<Code>(reply.code);
  const std::string shard = link.address() + ": shard " + std::to_string(link.shard());
  if (code == Code::kConflict) {
    const uint64_t version = reply.header.version;
    return {code, version == 0 ? "the key is absent" : "the key has version " + std::to_string(version)};
  }
  switch (static_cast<Reason>(reply.reason)) {
    case Reason::kIndexFull:
      return {code, shard + " has no room in its index"};
    case Reason::kLogFull:
      return {code, shard + " has no room in its log"};
    case Reason::kTooManyReservations:
      return {code, shard + " lets a client have " + std::to_string(reply.number) + " puts in flight"};
    case Reason::kNotWhole:
      return {code, shard + " did not find the value whole that was written"};
    case Reason::kReadOnly:
      return {code, shard + " does not let this client write"};
    case Reason::kDamaged:
      return {code, shard + " found its data damaged"};
    case Reason::kNotANumber:
      return {code, "the value is not a number of 8 bytes"};
    case Reason::kOverflow:
      return {code, "the sum does not fit into 64 bits"};
    case Reason::kJournal:
      return OfFailedJournal(code, shard, ErrorNumberOf(reply.number));
    case Reason::kNoMirror:
      return {code, shard +
                        " has no mirror in sync, and takes no changes before it has one. A change that waited for the "
                        "mirror may still take effect"};
    case Reason::kNoChunk:  // the put went another way
    case Reason::kNone:
      break;
  }
  return Status(code);
}

}  // namespace erda::client
