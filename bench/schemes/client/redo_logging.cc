// The paper: "a client sends a write request to the redo log region of the server using RDMA send, and then the server
// verifies the integrity of the message in the redo log and applies the write request asynchronously". Here this is one
// request with key, value and the CRC checksum of both. The answer says that the server has it in its log,
// persistently. (The paper does not say when the client takes a put for done. Before that answer, the put could be
// lost.)
#include "bench/schemes/client/schemes.h"

namespace erda::schemes {

void RedoLogging::StartPut(Operation& op) {
  const uint32_t crc = PairCrc(hello().seed, op.sizes, op.pair());
  SendRequest(op, crc, sizeof(Request) + op.sizes.pair());
}

void RedoLogging::OnPutAnswered(Operation& op, const Reply& /*reply*/) { Finish(op, Status()); }

}  // namespace erda::schemes
