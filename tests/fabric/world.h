// The fabrics on which the conformance suite runs.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"

namespace erda::fabric {

// One fabric under test. Both ends of its channels are in this process and this thread, and are polled in turn.
class World {
 public:
  virtual ~World() = default;
  virtual Fabric& server() = 0;
  virtual Fabric& client() = 0;
  // Returns an address at which no one has listened.
  virtual std::string NewAddress() = 0;
  // Lets something happen. Returns false if nothing can happen any more, unless an end does something.
  virtual bool Advance() = 0;
  // Returns true if aligned words are whole even in a transfer that begins in the middle of one. The contract does not
  // promise that.
  [[nodiscard]] virtual bool whole_in_any_transfer() const { return true; }
  // The number of calls of Advance after which a test gives up waiting, and after which it believes that nothing more
  // comes.
  [[nodiscard]] virtual size_t patience() const = 0;
  [[nodiscard]] virtual size_t quiet() const = 0;
};

struct WorldKind {
  std::string name;
  std::function<std::unique_ptr<World>()> make;
};

// Returns every fabric, and the simulated one with several seeds and delays.
std::vector<WorldKind> AllWorlds();
// Returns the fabrics whose ends can be in different threads and processes: shm, and verbs if ERDA_TEST_VERBS names a
// host with a usable device. (Its ports begin at ERDA_TEST_VERBS_PORT, or 18515.)
std::vector<WorldKind> RealWorlds();

}  // namespace erda::fabric
