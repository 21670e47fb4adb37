#include "bench/schemes/client/read_after_write.h"

#include <cstring>

#include "base/bytes.h"

namespace erda::schemes {

using fabric::OpKind;
using fabric::WorkRequest;

void ReadAfterWrite::StartPut(Operation& op) { SendRequest(op, 0, sizeof(Request) + op.sizes.key()); }

void ReadAfterWrite::OnPutAnswered(Operation& op, const Reply& reply) {
  // The entry's header takes the end of the request's, which has arrived already. So header, key and value are one
  // Write.
  const auto entry = op.message().subspan(sizeof(Request) - sizeof(EntryHeader), EntryBytes(op.sizes));
  const uint32_t pair_crc = PairCrc(hello().seed, op.sizes, op.pair());
  const EntryHeader header{reply.position, EntryCrc(pair_crc, reply.position), op.sizes.raw()};
  std::memcpy(entry.data(), &header, sizeof(header));
  CountNvmBytes(entry.size());

  const fabric::RemoteAddress at{kPoolRegion, hello().log_offset + reply.position % hello().log_bytes};
  WorkRequest works[2];
  works[0].kind = OpKind::kWrite;
  works[0].signaled = false;
  works[0].local = entry;
  works[0].remote = at;
  if (hello().flush_method == static_cast<uint8_t>(format::FlushMethod::kServerFlush)) {
    Request commit{};
    commit.op = static_cast<uint8_t>(RequestOp::kCommit);
    commit.position = reply.position;
    std::memcpy(op.commit().data(), &commit, sizeof(commit));
    works[1] = WriteImmWork(op, op.commit());
    op.step = Step::kCommitted;
  } else {
    works[1].kind = OpKind::kRead;
    works[1].id = op.index;
    works[1].local = op.word();
    works[1].remote = at;
    op.step = Step::kPlaced;
  }
  Post(works);
}

}  // namespace erda::schemes
