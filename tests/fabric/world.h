// The fabrics that the conformance suite runs over.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.h"

namespace erda::fabric {

// One fabric under test. Both ends of its channels are in this process and this thread, and polled in turn.
class World {
 public:
  virtual ~World() = default;
  virtual Fabric& server() = 0;
  virtual Fabric& client() = 0;
  // An address that nobody has listened at.
  virtual std::string NewAddress() = 0;
  // Lets something happen. False if nothing can any more, unless an end does something.
  virtual bool Advance() = 0;
  // Whether aligned words are whole also in a transfer that begins in the middle of one: more than the contract has.
  [[nodiscard]] virtual bool whole_in_any_transfer() const { return true; }
  // After so many calls of Advance a test gives up waiting, or believes that nothing more comes.
  [[nodiscard]] virtual size_t patience() const = 0;
  [[nodiscard]] virtual size_t quiet() const = 0;
};

struct WorldKind {
  std::string name;
  std::function<std::unique_ptr<World>()> make;
};

// Every fabric; the simulated one under several seeds and delays.
std::vector<WorldKind> AllWorlds();
// Those whose ends can be in different threads and processes: shm, and verbs if ERDA_TEST_VERBS names a host whose
// device can be used. (Its ports begin at ERDA_TEST_VERBS_PORT, or 18515.)
std::vector<WorldKind> RealWorlds();

}  // namespace erda::fabric
