// A client of a crash test, in a process of its own.
#pragma once

#include <cstdint>
#include <string>

#include "erda/client.h"

namespace erda::crash {

// The keys: some that all clients share, then for each place of a client some that nobody else writes.
constexpr uint32_t kSharedKeys = 16;
constexpr uint32_t kOwnKeys = 20;
constexpr uint32_t KeysOf(uint32_t clients) { return kSharedKeys + clients * kOwnKeys; }

struct WorkerSettings {
  std::string address;
  std::string records;  // the file; it must not be there
  uint32_t number = 1;  // of this process; no two of a run have the same
  uint32_t place = 0;
  uint32_t clients = 1;
  uint64_t seed = 1;
  uint64_t operations = 5000;
  std::string life;  // the server_id. It ends when this server is gone, and does nothing with the next one; empty: any
};

// Which life of the server this is; empty if it does not say.
std::string ServerId(Client& client);

// Puts, deletes and gets, until SIGTERM or the last operation. Ack level, path and depth follow from the seed.
int Work(const WorkerSettings& settings);
// Reads each key once, as soon as there is a server.
int ReadAll(const WorkerSettings& settings);

}  // namespace erda::crash
