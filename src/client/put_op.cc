#include "client/put_op.h"

namespace erda::client {

void PutOp::TellNumber(Status status) {
  if (done.version) {
    done.version(status.ok() ? Result<uint64_t>(number) : Result<uint64_t>(std::move(status)));
  } else {
    done.sum(status.ok() ? Result<int64_t>(static_cast<int64_t>(number)) : Result<int64_t>(std::move(status)));
  }
}

}  // namespace erda::client
