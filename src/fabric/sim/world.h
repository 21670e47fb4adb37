// What all parts of one simulated network share: time and what is to come, chance, and who is there.
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

// What is going to happen, in the order of time, then of arrangement.
class SimEvents {
 public:
  using Id = std::pair<Nanoseconds, uint64_t>;  // no event has the id {}

  [[nodiscard]] Nanoseconds now() const { return now_; }
  Id At(Nanoseconds time, std::function<void()> action);
  // Harmless if it has happened, or for {}.
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

  // A random time that something takes.
  Nanoseconds Delay();
  // Records what happened in the history. The name is for people; the numbers and `content` make the hash.
  void Note(std::string_view what, uint64_t link, uint64_t side, uint64_t number, uint64_t detail = 0,
            uint64_t content = 0);

  SimOptions options;
  Random random;
  uint64_t history = 0;
  SimCounts counts;
  uint64_t links_made = 0;
  uint32_t windows_made = 0;
  std::map<uint64_t, SimLink*> links;  // by number, so that walking them is the same in every run
  std::map<std::string, SimListener*, std::less<>> listeners;
  std::vector<std::weak_ptr<SimNode>> nodes;
  SimEvents events;  // last: events own links, which leave `links` when they go
};

}  // namespace erda::fabric
