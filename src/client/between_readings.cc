#include "client/between_readings.h"

#include <cstddef>

#include "base/bytes.h"
#include "client/link.h"
#include "format/control_block.h"
#include "format/index_layout.h"

namespace erda::client {

namespace {

constexpr fabric::RemoteAddress kCounter{format::kControlRegion, offsetof(format::ControlBlock, displacements)};

}  // namespace

// If the fabric takes Reads in order, the client posts all three together. Otherwise it posts each one when the one
// before it has arrived. The reading before is then one that this client knows already, from any Read. The words only
// grow, so if the reading after is equal, the shard moved nothing between the two. The client Reads the first one only
// if the known one is odd, or of another block.
void BetweenReadings::Begin(IndexOperation& op, Step step, std::span<std::byte> to, fabric::RemoteAddress from) {
  const auto before = op.readings().first(sizeof(Reading));
  if (ReadsInOrder()) {
    op.look = Look::kAll;
    op.step = step;
    const fabric::WorkRequest works[] = {
        posting_.ReadWork(op, before, kCounter, false),
        posting_.ReadWork(op, to, from, false),
        posting_.ReadWork(op, op.readings().last(sizeof(Reading)), kCounter, true),
    };
    posting_.Post(*op.link, works);
    return;
  }
  op.before = op.link->known.reading();
  if (op.before.displacements % 2 == 0 && IsOfBlock(op, op.before)) {
    op.look = Look::kAt;
    return posting_.PostRead(op, step, to, from);
  }
  op.look = Look::kBefore;
  posting_.PostRead(op, step, before, kCounter);
}

void BetweenReadings::ReadBehind(IndexOperation& op) {
  op.look = Look::kBehind;
  posting_.PostRead(op, op.step, op.readings().last(sizeof(Reading)), kCounter);
}

Reading BetweenReadings::TakeReading(IndexOperation& op) {
  const auto reading = LoadAs<Reading>(op.readings().last(sizeof(Reading)));
  op.link->known.Learn(reading);
  return reading;
}

bool BetweenReadings::IsOfBlock(const IndexOperation& op, const Reading& reading) {
  return reading.blocks != 0 && reading.blocks <= op.link->geometry().blocks_max() &&
         format::IndexLayout::BlockOf(op.key_hash, reading.blocks) == op.block;
}

}  // namespace erda::client
