#include "fabric/shm/beacon.h"

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/bytes.h"
#include "base/start_thread.h"

namespace erda::fabric::shm {

namespace {

std::atomic_ref<uint32_t> WordIn(const std::byte* memory) {
  return std::atomic_ref<uint32_t>(*reinterpret_cast<uint32_t*>(const_cast<std::byte*>(memory)));
}

}  // namespace

// The word is a robust futex (the kernel's Documentation/locking/robust-futexes.rst). It holds the id of the thread
// that owns it. If that thread dies, by any cause, the kernel marks the word. A separate thread owns the word, so that
// it lives as long as the process.
Result<std::shared_ptr<Beacon>> Beacon::Light() {
  auto memory = SharedMemory::Create("erda-beacon", kBytes, SharedMemory::Writers::kOwner);
  if (!memory.ok()) return memory.status();
  UniqueFd put_out(::eventfd(0, EFD_CLOEXEC));
  if (!put_out) return ErrnoStatus("cannot make the beacon, which tells clients that the server died");
  std::shared_ptr<Beacon> beacon(new Beacon(*std::move(memory), std::move(put_out)));
  std::atomic<bool> lit{false};
  const Status started = StartThread(
      "erda-beacon", [raw = beacon.get(), &lit] { raw->Run(&lit); }, &beacon->thread_);
  if (!started.ok()) return started;
  lit.wait(false, std::memory_order_acquire);
  if (!IsLit(beacon->memory_.bytes().data()))
    return Status(Code::kInternal, "the kernel does not mark the beacon, which tells clients that the server died");
  return beacon;
}

Beacon::~Beacon() {
  const uint64_t one = 1;
  while (::write(put_out_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
  }
  if (thread_.joinable()) thread_.join();
}

void Beacon::Run(std::atomic<bool>* lit) {
  const auto word = WordIn(memory_.bytes().data());
  locks_.list.next = &lock_;
  lock_.next = &locks_.list;
  locks_.futex_offset = reinterpret_cast<std::byte*>(memory_.bytes().data()) - reinterpret_cast<std::byte*>(&lock_);
  locks_.list_op_pending = nullptr;
  // Replaces the C library's list for this thread, which uses no locks of that kind.
  if (::syscall(SYS_set_robust_list, &locks_, sizeof(locks_)) == 0) {
    word.store(static_cast<uint32_t>(::syscall(SYS_gettid)), std::memory_order_release);
  }
  lit->store(true, std::memory_order_release);
  lit->notify_one();  // The last use of `lit`: the waiter may be gone after the store.
  uint64_t rings = 0;
  while (::read(put_out_.get(), &rings, sizeof(rings)) < 0 && errno == EINTR) {
  }
  // Pairs with the acquire in IsLit. The channels are closed already, and have announced that in their rings
  // (Ring::Leave).
  word.store(0, std::memory_order_release);
  locks_.list.next = &locks_.list;
}

bool Beacon::IsLit(const std::byte* memory) {
  const uint32_t word = WordIn(memory).load(std::memory_order_acquire);
  return word != 0 && (word & FUTEX_OWNER_DIED) == 0;
}

}  // namespace erda::fabric::shm
