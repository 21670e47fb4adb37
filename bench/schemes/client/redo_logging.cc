#include "bench/schemes/client/redo_logging.h"

namespace erda::schemes {

void RedoLogging::StartPut(Operation& op) {
  const uint32_t crc = PairCrc(hello().seed, op.sizes, op.pair());
  SendRequest(op, crc, sizeof(Request) + op.sizes.pair());
}

void RedoLogging::OnPutAnswered(Operation& op, const Reply& /*reply*/) { Finish(op, Status()); }

}  // namespace erda::schemes
