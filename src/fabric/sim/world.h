// The state that all parts of one simulated network share: time, events, chance, and the participants.
// The one thread of the simulation uses it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "fabric/sim/network.h"

namespace erda::fabric {

class SimLink;
class SimListener;
struct SimNode;

// Future events, ordered by time, then by the order of scheduling.
class SimEvents {
 public:
  using Id = std::pair<Nanoseconds, uint64_t>;  // No event has the id {}.

  [[nodiscard]] Nanoseconds now() const { return now_; }
  Id At(Nanoseconds time, std::function<void()> action);
  // Does nothing if the event has happened, or for {}.
  void Cancel(Id id) { events_.erase(id); }
  bool Step();
  void RunUntil(Nanoseconds time);

 private:
  Nanoseconds now_{0};
  uint64_t arranged_ = 0;
  std::map<Id, std::function<void()>> events_;
};

struct SimWorld {
  SimWorld(uint64_t seed, SimOptions with) : options(std::move(with)), random(seed) {}

  // Returns a random time that a step takes.
  Nanoseconds Delay();
  // Records an event in the history. The name is for people. The numbers and `content` enter the hash.
  void Note(std::string_view what, uint64_t link, uint64_t side, uint64_t number, uint64_t detail = 0,
            uint64_t content = 0);

  SimOptions options;
  Random random;
  uint64_t history = 0;
  SimCounts counts;
  uint64_t links_made = 0;
  uint32_t windows_made = 0;
  std::map<uint64_t, SimLink*> links;  // By number, so that a walk through them is the same in every run.
  std::map<std::string, SimListener*, std::less<>> listeners;
  std::vector<std::weak_ptr<SimNode>> nodes;
  SimEvents events;  // Last, so destroyed first: events own links, which leave `links` when they are destroyed.
};

}  // namespace erda::fabric
