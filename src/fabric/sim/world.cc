#include "fabric/sim/world.h"

#include <algorithm>

namespace erda::fabric {

SimEvents::Id SimEvents::At(Nanoseconds time, std::function<void()> action) {
  const Id id{std::max(time, now_), ++arranged_};
  events_.emplace(id, std::move(action));
  return id;
}

bool SimEvents::Step() {
  if (events_.empty()) return false;
  auto next = events_.extract(events_.begin());
  now_ = next.key().first;
  next.mapped()();
  return true;
}

void SimEvents::RunUntil(Nanoseconds time) {
  while (!events_.empty() && events_.begin()->first.first <= time) Step();
  now_ = std::max(now_, time);
}

Nanoseconds SimWorld::Delay() {
  const bool is_long = random.Chance(options.long_delay_chance);
  const Nanoseconds low = is_long ? options.delay_max : options.delay_min;
  const Nanoseconds high = std::max(low, is_long ? options.long_delay_max : options.delay_max);
  return low + Nanoseconds(random.Uniform(static_cast<uint64_t>((high - low).count()) + 1));
}

void SimWorld::Note(std::string_view what, uint64_t link, uint64_t side, uint64_t number, uint64_t detail,
                    uint64_t content) {
  const auto now = static_cast<uint64_t>(events.now().count());
  for (const char c : what) history = Random::Mix(history ^ static_cast<unsigned char>(c));
  for (const uint64_t n : {now, link, side, number, detail, content}) history = Random::Mix(history + 1) ^ n;
  if (!options.trace) return;
  options.trace(std::to_string(now) + " ns, link " + std::to_string(link) + " side " + std::to_string(side) + ": " +
                std::string(what) + " " + std::to_string(number) + " " + std::to_string(detail));
}

}  // namespace erda::fabric
