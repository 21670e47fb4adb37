#include "client/posting.h"

namespace erda::client {

using fabric::WorkRequest;

bool Posting::Gather(Link& link, std::span<const WorkRequest> batch) {
  if (link.connection().gathered() == 0) to_flush_.push_back(&link);
  has_pending_ = true;
  link.connection().Gather(batch);
  return true;
}

bool Posting::Close(Link& link) {
  connections_.CloseSince(link, ": the connection failed");
  return false;
}

void Posting::Flush() {
  for (size_t i = 0; i < to_flush_.size(); ++i) {
    Link& link = *to_flush_[i];
    if (link.connection().gathered() > 0 && !link.connection().Flush().ok()) Close(link);
  }
  Clear();
}

WorkRequest Posting::ReadWork(const Operation& op, std::span<std::byte> to, fabric::RemoteAddress from, bool last) {
  ++stats_.reads;
  stats_.read_bytes += to.size();
  WorkRequest work;
  work.kind = fabric::OpKind::kRead;
  work.id = op.index | (last ? kLastBit : 0);
  work.local = to;
  work.remote = from;
  return work;
}

void Posting::PostRead(Operation& op, Step step, std::span<std::byte> to, fabric::RemoteAddress from) {
  op.step = step;
  const WorkRequest work = ReadWork(op, to, from, true);
  Post(*op.link, {&work, 1});
}

}  // namespace erda::client
