// A client of a crash test, in a separate process.
#pragma once

#include <cstdint>
#include <string>

#include "erda/client.h"

namespace erda::crash {

// All clients share the first keys. After them, each place of a client has keys that no other client writes.
constexpr uint32_t kSharedKeys = 16;
constexpr uint32_t kOwnKeys = 20;
constexpr uint32_t KeysOf(uint32_t clients) { return kSharedKeys + clients * kOwnKeys; }

struct WorkerSettings {
  std::string address;
  std::string records;  // the file, which must not exist
  uint32_t number = 1;  // the number of this process, unique in a run
  uint32_t place = 0;
  uint32_t clients = 1;
  uint64_t seed = 1;
  uint64_t operations = 5000;
  // The server_id of the server to work with. The worker ends when that server is gone, and does nothing with the next
  // one. If empty, any server will do.
  std::string life;
};

// Returns the server_id, which differs for each life of a server. Returns nothing if the server does not answer.
std::string ServerId(Client& client);

// Puts, deletes and gets until SIGTERM or until the last operation. The seed decides ack level, path and depth.
int Work(const WorkerSettings& settings);
// Reads each key once, as soon as a server runs.
int ReadAll(const WorkerSettings& settings);

}  // namespace erda::crash
