// The server's side of a measurement, in a separate process: the engine's server, and for floors the raw responder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/floors/child.h"
#include "bench/floors/raw.h"
#include "bench/floors/settings.h"
#include "bench/floors/temporary_folder.h"
#include "erda/status.h"

namespace erda::floors {

// The hidden subcommand by which this program starts itself.
inline constexpr const char* kServeCommand = "serve";

struct ServeSettings {
  std::string address;
  // Empty: there is only the engine's server. It waits like any server, and runs on any processor.
  std::string raw_address;
  std::string pool;
  uint64_t pool_size = 0;
  uint64_t raw_bytes = 0;
  uint64_t index_entries = 0;  // Of a new pool; 0: by its size.
  uint32_t slot_bytes = 0;     // Of a request; 0: the default.
  uint32_t max_clients = 0;    // 0: the default.
  // The file of a journal, its size if it is new, and the folder of its memory. Empty: the pool has no journal.
  std::string journal;
  uint64_t journal_size = 0;
  std::string journal_memory;
  bool keep = false;          // Keeps the file of a new pool.
  bool least_rights = false;  // If true, clients may write only into their chunks, or nowhere. If false, anywhere.
  bool beside_raw = false;    // Of an engine's server alone: it waits and runs like one with a raw address.
};
CLI::App* AddServe(CLI::App& app, ServeSettings& settings);
// Serves until stdin ends. Prints one line on stdout when it is ready or if it fails, and one at the end.
int Serve(const ServeSettings& settings);

// Keeps this thread, and threads that it starts, on one of its processors: the first for the measuring side, the last
// for the server's side. So raw and engine operations have the same distance. Does nothing with only one processor.
enum class Side : uint8_t { kMeasuring, kServing };
void StayOnOneProcessor(Side side);

// Returns the address of a benchmark's server: `address`, or a socket in the folder if `address` is empty.
[[nodiscard]] Result<std::string> OwnAddress(const std::string& address, const TemporaryFolder& folder);

// Returns the settings of a benchmark's server that listens in the folder, with a pool in DRAM for a small load.
[[nodiscard]] Result<ServeSettings> ServeInDram(const TemporaryFolder& folder);

class ServerProcess {
 public:
  struct Ready {
    std::string address;
    std::string raw_address;
    std::string durability;
    RawArea area;  // With a raw address.
    int pid = 0;
  };

  // `program` is this program, or another copy of it. Requires: the address of `settings` is not empty.
  static Result<std::unique_ptr<ServerProcess>> Start(const std::string& program, const ServeSettings& settings);
  // Starts the server on all processors but the first. The first is for this thread from now on, so that the measuring
  // thread does not compete with the server.
  static Result<std::unique_ptr<ServerProcess>> StartBeside(const std::string& program, const ServeSettings& settings);
  [[nodiscard]] const Ready& ready() const { return ready_; }
  // Ends it. Returns an error if it did not end well.
  Status Stop();

 private:
  explicit ServerProcess(std::unique_ptr<Child> child) : child_(std::move(child)) {}

  std::unique_ptr<Child> child_;
  Ready ready_;
};

}  // namespace erda::floors
