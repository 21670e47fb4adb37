// The simulated fabric: one process, one thread, virtual time. A seed repeats a run bit for bit.
//
// The contract (fabric/fabric.h) leaves choices, and the simulator makes them at random. Each operation waits a random
// time. A Write is cut into pieces between aligned words, which are placed at different times in random order. Its
// completion may come first. A Read is taken in pieces likewise. A Read begins while earlier Reads of its channel are
// under way, unless the options forbid it. Any other operation begins only when all before it are placed whole. A
// message may be delivered after later operations of its channel were placed, and before or after its sender's
// completion. A channel that breaks stops at one instant on the wire. Each piece that is not placed then is lost, or
// placed later, and the two ends learn of it at different times. No piece is placed after the target's Channel is
// destroyed, or its node killed.
//
// Time passes only in Step and RunUntil. CompletionQueue::Wait, WaitAny and Listener::Wait return at once.
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
  // The time that any step takes, and the probability that it takes longer, up to long_delay_max.
  Nanoseconds delay_min{200};
  Nanoseconds delay_max{3'000};
  double long_delay_chance = 0.01;
  Nanoseconds long_delay_max{1'000'000};
  // The probability, for each operation, that its channel breaks while it is on the wire.
  double drop_chance = 0;
  uint32_t pieces_max = 8;
  // If true, a Write that completed and was not placed yet can be lost with its channel, as the contract allows. If
  // false, only Writes that have not completed can be lost. An RNIC behaves so if it acknowledges only Writes that it
  // can no longer lose.
  bool lose_completed = true;
  bool memory_windows = false;
  bool nic_writes = false;      // As Capabilities::nic_writes says. Nothing is placed in another way.
  bool reads_in_order = false;  // True: as over shm. False: Reads in flight together take their bytes in any order.
  // Receives a line for each event, if set.
  std::function<void(const std::string&)> trace;
};

// Faults that happened so far.
struct SimCounts {
  uint64_t dropped_channels = 0;
  uint64_t torn_writes = 0;  // Placed in more than one piece.
  uint64_t torn_reads = 0;   // Taken in more than one piece, each from another instant.
  uint64_t late_pieces = 0;  // Pieces of Writes that were placed after these had completed.
  uint64_t lost_pieces = 0;  // Pieces of Writes that were never placed, since their channel broke or an end died.
  uint64_t unfenced = 0;     // Channels that were destroyed although Fence had returned false.
};

struct SimWorld;

// Outlives everything made from it.
class SimNetwork final : public Clock {
 public:
  explicit SimNetwork(uint64_t seed, SimOptions options = {});
  ~SimNetwork() override;
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  // Makes the fabric of the process with that name. Its addresses are "sim:name"; it may listen at any name. `placed`
  // is called for bytes of the process that a Write of another process has just changed. `user` is the user of the
  // process: two fabrics with different users are others to each other.
  using Placed = std::function<void(std::span<const std::byte>)>;
  std::shared_ptr<Fabric> CreateFabric(std::string_view node, Placed placed = nullptr, uint32_t user = 0);

  [[nodiscard]] Nanoseconds Now() const override;
  // Advances to the next event and runs it. Returns false if there are no events.
  bool Step();
  // Runs all events up to `time`, and advances the time to it.
  void RunUntil(Nanoseconds time);

  // No channel breaks by chance from now on.
  void CalmDown();
  // Breaks the given channel of this network, or any connected one. Returns false if no channel is connected.
  void DropChannel(const Channel& channel);
  bool DropChannel();
  // Ends the process between two steps. Its objects do nothing any more, and the caller destroys them. Its memory may
  // be freed. A new fabric of that name is a new process.
  void KillNode(std::string_view node);

  // Returns a hash of all events, including the bytes that moved. Equal runs have equal hashes.
  [[nodiscard]] uint64_t history_hash() const;
  [[nodiscard]] const SimCounts& counts() const;

 private:
  std::unique_ptr<SimWorld> world_;
};

}  // namespace erda::fabric
