// The simulated fabric: one process, one thread, virtual time. A seed repeats a run bit for bit.
//
// What it makes of the contract (fabric/fabric.h), where that leaves a choice: each operation waits a random time. A
// Write is cut into pieces between aligned words, which are placed at different times in random order; its completion
// may come first. A Read is taken in pieces likewise. A Read begins while earlier Reads of its channel are under way,
// unless the options say otherwise; else the next operation begins only when all before it are placed whole. A message
// may be delivered after later operations of its channel were placed, and before its sender's own completion or after.
// A channel that breaks stops at one instant on the wire; each piece not placed then is lost, or placed later, and the
// two ends learn of it at different times. No piece is placed once the target's Channel is destroyed, or its node
// killed.
//
// Nothing moves but in Step and RunUntil; CompletionQueue::Wait, WaitAny and Listener::Wait return at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "fabric/fabric.h"

namespace erda::fabric {

struct SimOptions {
  // How long anything takes, and with what probability it takes longer, up to long_delay_max.
  Nanoseconds delay_min{200};
  Nanoseconds delay_max{3'000};
  double long_delay_chance = 0.01;
  Nanoseconds long_delay_max{1'000'000};
  // For each operation, that its channel breaks while it is on the wire.
  double drop_chance = 0;
  uint32_t pieces_max = 8;
  // A Write that completed and was not placed yet can be lost with its channel, as the contract says. Without, only
  // what did not complete can, as on an RNIC that acknowledges what it can no longer lose.
  bool lose_completed = true;
  bool memory_windows = false;
  bool nic_writes = false;      // as the capability says; nothing is placed otherwise
  bool reads_in_order = false;  // as over shm; without, Reads in flight together take their bytes in any order
  // Gets a line for each event, if set.
  std::function<void(const std::string&)> trace;
};

// What went wrong on the way so far.
struct SimCounts {
  uint64_t dropped_channels = 0;
  uint64_t torn_writes = 0;  // placed in more than one piece
  uint64_t torn_reads = 0;   // taken in more than one piece: each from another instant
  uint64_t late_pieces = 0;  // of Writes, placed after these had completed
  uint64_t lost_pieces = 0;  // of Writes: never placed, since their channel broke or an end died
  uint64_t unfenced = 0;     // channels that were destroyed though Fence had said that it would be none
};

struct SimWorld;

// Outlives everything made from it.
class SimNetwork final : public Clock {
 public:
  explicit SimNetwork(uint64_t seed, SimOptions options = {});
  ~SimNetwork() override;
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  // The fabric as a process of that name has it. Its addresses are "sim:name"; any name may be listened at.
  // placed: called for bytes of the process that another one's Write has just changed. user: whose process it is; two
  // that are not the same user's are others to each other.
  using Placed = std::function<void(std::span<const std::byte>)>;
  std::shared_ptr<Fabric> CreateFabric(std::string_view node, Placed placed = nullptr, uint32_t user = 0);

  [[nodiscard]] Nanoseconds Now() const override;
  // Goes on to the next event and runs it. False if there is none.
  bool Step();
  // Runs what happens until then; afterwards it is then.
  void RunUntil(Nanoseconds time);

  // From now on no channel breaks by itself.
  void CalmDown();
  // Breaks a channel of this network, or any that is connected; false if none is.
  void DropChannel(const Channel& channel);
  bool DropChannel();
  // The process ends between two steps. Its objects stay for the caller to destroy and do nothing any more; its memory
  // may go. A new fabric of that name is a new process.
  void KillNode(std::string_view node);

  // Of all that has happened, the bytes that moved included: equal for two runs that were the same.
  [[nodiscard]] uint64_t history_hash() const;
  [[nodiscard]] const SimCounts& counts() const;

 private:
  std::unique_ptr<SimWorld> world_;
};

}  // namespace erda::fabric
