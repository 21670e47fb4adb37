#include "client/put_op.h"

#include "base/planted.h"

namespace erda::client {

void PutOp::TellNumber(Status status) {
  if (done.version) {
    done.version(status.ok() ? Result<uint64_t>(number) : Result<uint64_t>(std::move(status)));
  } else {
    done.sum(status.ok() ? Result<int64_t>(static_cast<int64_t>(number)) : Result<int64_t>(std::move(status)));
  }
}

// Without a lost chunk, and if it fits, the put goes inline, too (put_path.h): `before` did.
bool Operation::MayFollow(const Operation& before) const {
  if (Planted(Flaw::kFollowsAny)) return true;
  if (type != OpType::kPut || before.type != OpType::kPut || before.step != Step::kReply) return false;
  const auto& put = static_cast<const PutOp&>(*this);
  const auto& sent = static_cast<const PutOp&>(before);
  const bool is_first_plain = !sent.if_version || Planted(Flaw::kFollowsCondition);
  const bool are_plain = put.kind == PutKind::kPut && !put.if_version && is_first_plain;
  const bool went_inline = sent.way == PutWay::kInline && !sent.places.lost_chunk;
  return are_plain && went_inline && put.FitsInline(*before.link);
}

}  // namespace erda::client
