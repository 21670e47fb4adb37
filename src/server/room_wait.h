// Puts that wait for room, and what is known to be hopeless for the next ones. The shard's thread calls it.
#pragma once

#include <cstdint>

namespace erda::server {

// What a put lacks.
enum class Room : uint8_t {
  kRegion,   // a free region
  kHeadSlot  // a free slot in its head, which is crowded: only regions of crowded heads gain one
};

class RoomWait {
 public:
  [[nodiscard]] bool any() const { return region_.waits || head_slot_.waits; }
  [[nodiscard]] bool Waits(Room room) const { return Of(room).waits; }
  // Cleaning has given up on this, and nothing has changed since in the log.
  [[nodiscard]] bool IsHopeless(Room room, uint64_t changes) const {
    return Of(room).hopeless && Of(room).changes == changes;
  }
  // Grows when room was made, or when it is clear that none can be made.
  [[nodiscard]] uint64_t rooms() const { return rooms_; }

  // A put waits.
  void Begin(Room room);
  // There is room: every put that waits tries again.
  void EndAll();
  // Nothing is left to try for this. changes: of the log until now.
  void GiveUp(Room room, uint64_t changes);

  // Regions that were merged since puts wait, or since something else made room or may have.
  [[nodiscard]] uint32_t merges() const { return merges_; }
  void CountMerge() { ++merges_; }
  void ForgetMerges() { merges_ = 0; }

 private:
  struct Want {
    bool waits = false;
    bool hopeless = false;
    uint64_t changes = 0;  // of the log, when it became hopeless
  };
  [[nodiscard]] const Want& Of(Room room) const { return room == Room::kRegion ? region_ : head_slot_; }
  [[nodiscard]] Want& Of(Room room) { return room == Room::kRegion ? region_ : head_slot_; }

  Want region_;
  Want head_slot_;
  uint64_t rooms_ = 0;
  uint32_t merges_ = 0;
};

}  // namespace erda::server
