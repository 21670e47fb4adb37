// The machine of the server: the server's process, the pool and journal on its disk, and its memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "programs/process.h"

namespace erda::crash {

// The limit of waits for events that must come, also on a slow machine.
constexpr std::chrono::minutes kPatience{3};

// The harness cannot go on. That is no loss of data.
struct Trouble : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct MachineSettings {
  std::string server;  // The program erda-server. If empty, the server runs elsewhere.
  std::string address;
  std::string pool;
  // The journal's file, or nothing. `memory` is then a folder in a tmpfs for the image of the pool. It must exist, and
  // all that it has may be removed.
  std::string journal;
  std::string memory;
  std::string front;  // With a journal: a file that is its front, or nothing.
  std::string sync;   // the server's --sync, or nothing
};

// Each function throws Trouble if it fails.
class Machine {
 public:
  struct Counts {
    uint64_t kills = 0;
    uint64_t clean_stops = 0;
    uint64_t recoveries = 0;
    uint64_t pools = 0;
    uint64_t lost_images = 0;
  };

  // Machine uses `random`, and calls `note` for each event, until it ends.
  Machine(MachineSettings settings, Random& random, std::function<void(const char*)> note)
      : settings_(std::move(settings)), random_(random), note_(std::move(note)) {}

  // Removes the pool, its journal and its image. The next server makes new ones.
  void NewPool();
  // Waits until the server is ready.
  void Start();
  // Starts a server on the existing pool. Kills some of the servers while they recover it.
  void Restart();
  // Like Restart, after the machine has lost its memory. The disk has all that the server wrote there: no kill of a
  // process takes the kernel's cache of the disk. A front has all that was stored there. Some of the kills meanwhile
  // take the memory again. Returns false if nothing was lost, since the last server had stopped cleanly. REQUIRES: no
  // server runs, and no client has the lost memory mapped.
  bool RestartWithoutMemory();
  // Ends the server by a signal, SIGKILL or SIGTERM.
  void End(int signal);

  [[nodiscard]] bool runs() const { return server_ != nullptr; }
  [[nodiscard]] bool has_journal() const { return !settings_.journal.empty(); }
  [[nodiscard]] const Counts& counts() const { return counts_; }
  // Returns the lines that the servers have printed about their recoveries since the last call.
  [[nodiscard]] std::vector<std::string> TakeReports() { return std::exchange(reports_, {}); }

 private:
  void StartProcess();
  void KillSome(bool with_memory);
  bool LoseMemory();

  const MachineSettings settings_;
  Random& random_;
  const std::function<void(const char*)> note_;
  std::unique_ptr<Process> server_;
  Counts counts_;
  std::vector<std::string> reports_;
};

}  // namespace erda::crash
