// Files on a disk with a volatile cache, with power cuts and errors at chosen calls.
//
// The program of these tests has its own pwrite, pwritev, fallocate, pread, fdatasync, fsync, sync_file_range, msync
// and unlink (simulated_calls.cc). They ask the SimulatedFiles that there are, and leave all other files to the kernel.
// So a test runs the code of the server as it is, and the server knows nothing of the simulation.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"

namespace erda::journal {

// A defect of the server, played by its files.
enum class FileFlaw : uint8_t {
  kNone,
  kPoolNotSynced,     // The checkpoint is durable before the pool file is (J4).
  kRecordsNotSynced,  // A record counts as held before the disk has it.
  kIgnoresErrors,     // After a sync that failed, all goes on.
  kTakesTornRecords,  // The checksum of a record is not verified (J3).
  kWritesPoolEarly,   // The pool file gets the bytes of a record that is not held (J6).
};

// Two files in one folder: the pool file and the journal. They lie in memory. Any thread may use the files. One thread
// calls the functions of this class; those of the first part only while nobody uses the files.
class SimulatedFiles {
 public:
  explicit SimulatedFiles(uint64_t seed);
  SimulatedFiles(const SimulatedFiles&) = delete;
  SimulatedFiles& operator=(const SimulatedFiles&) = delete;
  ~SimulatedFiles();

  [[nodiscard]] std::string pool() const { return pool_.path; }
  [[nodiscard]] std::string journal() const { return journal_.path; }

  // The power goes off in this call, counted from the next one as 0. It and all later calls fail, until PowerCut ends
  // the time without power. Writes, syncs, and the removal of a name are calls.
  void CutAt(uint64_t call) { cut_at_ = calls_ + call; }
  [[nodiscard]] bool off() const { return off_; }
  // This call fails, and later ones do not. After an error of sync_file_range, the next sync through another descriptor
  // fails, too. A write that fails is done in part. A sync that fails keeps some sectors
  // and forgets others, as the kernel does. Reads still return the new bytes of a forgotten sector. But no sync writes
  // it, and Reopen or PowerCut takes it.
  void FailAt(uint64_t call) { fail_at_ = calls_ + call; }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] uint64_t calls() const { return calls_; }
  [[nodiscard]] uint64_t writebacks() const { return writebacks_; }
  void Plant(FileFlaw flaw) { flaw_ = flaw; }

  // The power goes off and comes back. Each sector that no sync covers has the bytes of any of its writes, or those of
  // before. A new file whose name no sync of the folder covers may be gone.
  void PowerCut();
  // A process ends and the next one begins. The cache stays, but for forgotten sectors.
  void Reopen();

  // The bytes that the disk has after a PowerCut.
  struct Contents {
    std::optional<std::vector<std::byte>> pool;
    std::optional<std::vector<std::byte>> journal;
  };
  [[nodiscard]] Contents Save() const { return {pool_.durable, journal_.durable}; }
  void Restore(const Contents& disk, uint64_t seed);

  // --- The calls of the C library. They return nothing if the file is none of these.

  std::optional<ssize_t> Write(int fd, std::span<const iovec> pieces, uint64_t offset);
  std::optional<int> Sync(int fd);
  std::optional<int> StartWriteback(int fd);
  std::optional<int> SyncMapping(const void* begin, size_t size);
  std::optional<int> Unlink(const char* path);
  // A read has returned these bytes, which the files may change.
  void HasRead(int fd, std::span<std::byte> bytes, uint64_t offset);

 private:
  static constexpr uint64_t kSector = 512;

  // Whole sectors, as they were after a write.
  struct Written {
    uint64_t offset;
    std::vector<std::byte> bytes;
  };
  struct File {
    std::string path;
    bool is_mapped = false;  // The server that makes the pool file stores into it without a call.
    // A power cut keeps these bytes in any case. None: no sync has covered the file.
    std::optional<std::vector<std::byte>> durable{};
    bool is_named = false;            // A power cut keeps the name.
    std::vector<Written> cached{};    // The writes since the last sync.
    std::set<uint64_t> forgotten{};   // The offsets of sectors.
    std::optional<int> told{};        // The descriptor that alone was told of the last error.
    std::vector<std::byte> at_cut{};  // Of a mapped file: its bytes when the power went off.
  };
  enum class Fate : uint8_t { kWorks, kFails, kPowerCut };

  [[nodiscard]] std::string NameOf(int fd) const;
  [[nodiscard]] File* Find(const std::string& path);
  Fate NextCall();
  void GoOff();
  int SyncRange(File& file, uint64_t begin, uint64_t end);
  void ToDisk(File& file, uint64_t begin, uint64_t end, bool fails);
  void SyncSectors(File& file, uint64_t begin, std::span<const std::byte> bytes, bool fails);
  void WriteSectors(File& file, int fd, uint64_t offset, std::span<const std::byte> bytes, bool fails);
  void WritePoolEarly(std::span<const std::byte> record);
  void CutFile(File& file, double kept);
  [[nodiscard]] bool IsDropped(const File& file) const;

  const std::filesystem::path folder_;
  std::mutex mutex_;
  Random random_;
  File pool_;
  File journal_;
  FileFlaw flaw_ = FileFlaw::kNone;
  uint64_t calls_ = 0;
  uint64_t writebacks_ = 0;
  uint64_t cut_at_ = UINT64_MAX;
  uint64_t fail_at_ = UINT64_MAX;
  bool off_ = false;
  bool failed_ = false;
};

// The one that there is, or null.
[[nodiscard]] SimulatedFiles* PresentFiles();

}  // namespace erda::journal
