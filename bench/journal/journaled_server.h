// The benchmark's server of a pool with a journal, over several lives of its process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/floors/server_process.h"
#include "bench/floors/temporary_folder.h"
#include "bench/journal/remover.h"
#include "bench/journal/report.h"
#include "erda/status.h"

namespace erda::journal_bench {

// Has separate folders for the pool and its journal, for the journal's memory, and for the socket. One thread uses it.
class JournaledServer {
 public:
  // `program` is this program, or another copy of it.
  JournaledServer(const Settings& settings, std::string program);

  // The first call makes the pool. Returns when the server is ready.
  Status Start();
  // Kills the server.
  void Kill() { process_.reset(); }
  // Stops the server, which makes its last checkpoint.
  Status Stop();
  // Takes all but the disk, as a power cut does: the image, and the pages of the pool in the page cache. REQUIRES: no
  // server runs.
  Status LoseMemory();

  // Returns the folder on the disk. Empty if it could not be made.
  [[nodiscard]] const std::string& folder() const { return disk_.path(); }
  [[nodiscard]] const std::string& address() const { return serve_.address; }
  [[nodiscard]] const std::string& durability() const { return process_->ready().durability; }

 private:
  const std::string program_;
  const floors::TemporaryFolder disk_;
  const floors::TemporaryFolder memory_;
  const floors::TemporaryFolder socket_;
  const Remover remover_;
  floors::ServeSettings serve_;
  std::unique_ptr<floors::ServerProcess> process_;
};

// Returns the bytes that all ended processes of this one's servers had the kernel write to disks.
uint64_t BytesWrittenByServers();

}  // namespace erda::journal_bench
