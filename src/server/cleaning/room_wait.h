// Knows whether puts wait for room, and for which kind of room a wait is hopeless. The shard's thread calls it.
#pragma once

#include <cstdint>

namespace erda::server {

// The kind of room that a put lacks.
enum class Room : uint8_t {
  kRegion,   // a free region
  kHeadSlot  // a free slot in its head, which is crowded: only regions of crowded heads gain one
};

class RoomWait {
 public:
  [[nodiscard]] bool any() const { return region_.waits || head_slot_.waits; }
  [[nodiscard]] bool Waits(Room room) const { return Of(room).waits; }
  // Returns true if cleaning has given up on this kind of room, and the log has not changed since.
  [[nodiscard]] bool IsHopeless(Room room, uint64_t changes) const {
    return Of(room).hopeless && Of(room).changes == changes;
  }
  // Returns a number that grows when there is new room, or when it is clear that no room can be made.
  [[nodiscard]] uint64_t rooms() const { return rooms_; }

  // Notes that a put waits.
  void Begin(Room room);
  // Notes that there is room: every put that waits tries again.
  void EndAll();
  // Notes that nothing is left to try for this kind of room. changes: the log's changes() now.
  void GiveUp(Room room, uint64_t changes);

  // Returns how many regions were merged since puts began to wait, or since there may have been new room.
  [[nodiscard]] uint32_t merges() const { return merges_; }
  void CountMerge() { ++merges_; }
  void ForgetMerges() { merges_ = 0; }

 private:
  struct Want {
    bool waits = false;
    bool hopeless = false;
    uint64_t changes = 0;  // the log's changes() when the wait became hopeless
  };
  [[nodiscard]] const Want& Of(Room room) const { return room == Room::kRegion ? region_ : head_slot_; }
  [[nodiscard]] Want& Of(Room room) { return room == Room::kRegion ? region_ : head_slot_; }

  Want region_;
  Want head_slot_;
  uint64_t rooms_ = 0;
  uint32_t merges_ = 0;
};

}  // namespace erda::server
