// A word in shared memory that says whether the server's process is alive, also if that is killed: then the kernel puts
// it out, before it lets go of the process's files.
//
// A one-sided Read of shm succeeds whatever became of the server, since the memory stays mapped. Without the beacon a
// client that slept through a restart would read what the old server left behind. Looking at it costs one load.
#pragma once

#include <linux/futex.h>

#include <memory>
#include <thread>

#include "base/shared_memory.h"
#include "base/unique_fd.h"
#include "erda/status.h"

namespace erda::fabric::shm {

// The server's: lit as long as it exists.
class Beacon {
 public:
  static Result<std::shared_ptr<Beacon>> Light();
  Beacon(const Beacon&) = delete;
  Beacon& operator=(const Beacon&) = delete;
  ~Beacon();

  // For clients to map.
  [[nodiscard]] int fd() const { return memory_.view().fd_read_only; }
  static constexpr size_t kBytes = 4096;
  static bool IsLit(const std::byte* memory);

 private:
  Beacon(SharedMemory memory, UniqueFd put_out) : memory_(std::move(memory)), put_out_(std::move(put_out)) {}
  void Run(std::atomic<bool>* lit);

  SharedMemory memory_;
  UniqueFd put_out_;  // an eventfd that ends the thread
  // What the kernel walks when the thread dies: a list of one lock that the thread holds, the beacon's word.
  robust_list_head locks_{};
  robust_list lock_{};
  std::thread thread_;
};

}  // namespace erda::fabric::shm
