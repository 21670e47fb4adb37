// The server's side of a measurement, in a process of its own: the engine's server, and for floors the raw responder.
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

// The hidden subcommand that this program calls itself with.
inline constexpr const char* kServeCommand = "serve";

struct ServeSettings {
  std::string address;
  std::string raw_address;  // empty: an engine's server alone, which waits as servers do, on any processor
  std::string pool;
  uint64_t pool_size = 0;
  uint64_t raw_bytes = 0;
  uint64_t index_entries = 0;  // of a new pool; 0: by its size
  uint32_t slot_bytes = 0;     // of a request; 0: the default
  uint32_t max_clients = 0;    // 0: the default
  bool keep = false;           // a new pool's file stays
  bool least_rights = false;   // clients write where they must: into their chunks, or nowhere. Else anywhere
  bool beside_raw = false;     // of one alone: it waits, and runs, as one with a raw address does
};
CLI::App* AddServe(CLI::App& app, ServeSettings& settings);
// Serves until stdin ends. Says one line on stdout when it is ready or if it cannot be, and one at the end.
int Serve(const ServeSettings& settings);

// Keeps this thread, and those that it starts, on one processor of those that it may use: the first for the measuring
// side, the last for the server's. So raw and engine operations meet the same distances. Nothing where there is but
// one.
enum class Side : uint8_t { kMeasuring, kServing };
void StayOnOneProcessor(Side side);

// Where a benchmark's own server listens: at that address, or without one at a socket in the folder.
[[nodiscard]] Result<std::string> OwnAddress(const std::string& address, const TemporaryFolder& folder);

class ServerProcess {
 public:
  struct Ready {
    std::string address;
    std::string raw_address;
    std::string durability;
    RawArea area;  // with a raw address
    int pid = 0;
  };

  // `program`: this program, or another copy of it. The address of `settings` is not empty.
  static Result<std::unique_ptr<ServerProcess>> Start(const std::string& program, const ServeSettings& settings);
  // On all processors but the first, which is for this thread from here on: who measures does not compete with it.
  static Result<std::unique_ptr<ServerProcess>> StartBeside(const std::string& program, const ServeSettings& settings);
  [[nodiscard]] const Ready& ready() const { return ready_; }
  // Ends it. An error if it did not end well.
  Status Stop();

 private:
  explicit ServerProcess(std::unique_ptr<Child> child) : child_(std::move(child)) {}

  std::unique_ptr<Child> child_;
  Ready ready_;
};

}  // namespace erda::floors
