// A word in shared memory that tells whether the server's process is alive. If the process is killed, the kernel puts
// the word out before it releases the process's files.
//
// A one-sided Read over shm succeeds even if the server has died, since the memory stays mapped. Without the beacon, a
// client that slept through a restart would read the old server's leftovers. A look at the beacon costs one load.
#pragma once

#include <linux/futex.h>

#include <memory>
#include <thread>

#include "base/shared_memory.h"
#include "base/unique_fd.h"
#include "erda/status.h"

namespace erda::fabric::shm {

// The server's side. The beacon is lit as long as this object exists.
class Beacon {
 public:
  static Result<std::shared_ptr<Beacon>> Light();
  Beacon(const Beacon&) = delete;
  Beacon& operator=(const Beacon&) = delete;
  ~Beacon();

  // Returns the descriptor that clients map.
  [[nodiscard]] int fd() const { return memory_.view().fd_read_only; }
  static constexpr size_t kBytes = 4096;
  static bool IsLit(const std::byte* memory);

 private:
  Beacon(SharedMemory memory, UniqueFd put_out) : memory_(std::move(memory)), put_out_(std::move(put_out)) {}
  void Run(std::atomic<bool>* lit);

  SharedMemory memory_;
  UniqueFd put_out_;  // An eventfd that ends the thread.
  // The list that the kernel walks when the thread dies. It has one lock that the thread holds: the beacon's word.
  robust_list_head locks_{};
  robust_list lock_{};
  std::thread thread_;
};

}  // namespace erda::fabric::shm
