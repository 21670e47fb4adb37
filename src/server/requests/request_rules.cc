#include "server/requests/request_rules.h"

#include "erda/client.h"

namespace erda::server {

using format::Condition;
using format::Request;
using format::RequestOp;

bool MayWait(const Request& request) {
  switch (RequestOp{request.op}) {
    case RequestOp::kPutInline:
    case RequestOp::kPutStaged:
    case RequestOp::kReserve:
    case RequestOp::kDelete:
    case RequestOp::kClean:
    case RequestOp::kIncrement:
      return true;
    default:
      return false;
  }
}

Undone UndoneOf(const Request& request, Code code) {
  const bool is_placed = code == Code::kOk && Ack{request.ack} == Ack::kPlaced;
  switch (RequestOp{request.op}) {
    case RequestOp::kReserve:
      if (is_placed) return Undone::kPlaced;
      return code == Code::kConflict ? Undone::kNever : Undone::kMayBe;
    case RequestOp::kDelegate:
    case RequestOp::kGiveBack:
      return Undone::kMayBe;
    case RequestOp::kPutInline:
    case RequestOp::kPutStaged:
    case RequestOp::kPutDelegated:
      return is_placed ? Undone::kPlaced : Undone::kNever;
    default:
      return Undone::kNever;
  }
}

namespace {

bool ConditionIsSound(const Request& request) {
  if (request.condition == static_cast<uint8_t>(Condition::kNone)) return true;
  const RequestOp op{request.op};
  const bool may = op == RequestOp::kPutInline || op == RequestOp::kPutStaged || op == RequestOp::kReserve ||
                   op == RequestOp::kDelete;
  return may && request.condition == static_cast<uint8_t>(Condition::kVersion);
}

// Returns true if the request concerns a place in the pool that the client writes into, in a chunk or anywhere.
bool PlacesAnywhere(const Request& request) {
  return request.op == static_cast<uint8_t>(RequestOp::kReserve) ||
         request.op == static_cast<uint8_t>(RequestOp::kCommit);
}

bool PlacesInChunk(const Request& request) {
  switch (RequestOp{request.op}) {
    case RequestOp::kDelegate:
    case RequestOp::kPutDelegated:
    case RequestOp::kGiveBack:
      return true;
    default:
      return false;
  }
}

}  // namespace

Violation CheckRights(const Request& request, const Session& session) {
  if (!ConditionIsSound(request)) return Violation("an unknown condition, or one on an operation that takes none");
  const bool misplaced =
      !session.writable && (PlacesAnywhere(request) || (!session.windowed() && PlacesInChunk(request)));
  return misplaced ? Violation("a place in the pool, where it may not write") : Violation();
}

Violation CheckNumbers(const Request& request, size_t slot_bytes, const Session& session,
                       const format::Geometry& geometry) {
  static_assert(format::kKeyBytesMax == 1024, "the text names it");
  if (request.key_size == 0 || request.key_size > format::kKeyBytesMax) {
    return Violation("a key whose size is not 1 to 1024 bytes");
  }
  if (request.ack > static_cast<uint8_t>(Ack::kPersisted)) return Violation("an unknown ack");
  const bool fits_segment = request.value_size <= format::ValueBytesMax(geometry, request.key_size, request.ttl != 0);
  const bool fits_slot = format::InlineValueOffset(request.key_size) + request.value_size <= slot_bytes;
  const Violation unfit("a value that does not fit");
  const size_t staging_bytes = session.staging.bytes().size();  // 0: the session has no such buffer
  switch (RequestOp{request.op}) {
    case RequestOp::kPutInline:
      return fits_segment && fits_slot ? Violation() : unfit;
    case RequestOp::kIncrement:
      if (request.value_size == sizeof(int64_t) && fits_slot) return {};
      return Violation("an increment whose operand has not 8 bytes, or does not fit into its request slot");
    case RequestOp::kPutStaged:
      if (request.address >= staging_bytes || request.value_size > staging_bytes - request.address) {
        return Violation("a value outside of its staging buffer");
      }
      return fits_segment ? Violation() : unfit;
    case RequestOp::kReserve:
    case RequestOp::kPutDelegated:
      return fits_segment ? Violation() : unfit;
    case RequestOp::kDelete:
    case RequestOp::kReport:
    case RequestOp::kClean:
      return {};
    case RequestOp::kCommit:
    case RequestOp::kDelegate:
    case RequestOp::kGiveBack:
      break;
  }
  return Violation("an unknown operation");
}

}  // namespace erda::server
