#include "client/put_op.h"

namespace erda::client {

void PutOp::Tell(const Status& status) {
  if (auto* plain = std::get_if<Client::DoneCallback>(&done)) {
    (*plain)(status);
  } else if (auto* put = std::get_if<Client::PutCallback>(&done)) {
    (*put)(status.ok() ? Result<uint64_t>(number) : Result<uint64_t>(status));
  } else {
    const auto& increment = std::get<Client::IncrementCallback>(done);
    increment(status.ok() ? Result<int64_t>(static_cast<int64_t>(number)) : Result<int64_t>(status));
  }
}

// A reply proves that the request has arrived. But the memory must stay until the device has completed the request. If
// an acknowledgement was lost, the device sends the request again.
fabric::WorkRequest PutOp::RequestWork(uint64_t bytes) {
  fabric::WorkRequest work;
  work.kind = fabric::OpKind::kWriteImm;
  work.signaled = sends_own_memory();
  if (work.signaled) ++sending;
  work.id = index;
  work.imm = slot;
  work.local = message().first(bytes);
  work.remote = {format::kRequestRegion, link->slots.OffsetOf(slot)};
  return work;
}

}  // namespace erda::client
