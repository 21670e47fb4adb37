// A pool with a journal over many lives of its server, on simulated files. It has an account of all that the shards
// flushed, and compares at each start.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/temporary_folder.h"
#include "journal/journaled_pool.h"
#include "journal/simulated_files.h"
#include "server/pool/formatted_pool.h"

namespace erda::journal {

class PoolLives {
 public:
  static constexpr uint32_t kShards = 2;

  explicit PoolLives(SimulatedFiles& files) : files_(files) {}
  ~PoolLives() { Reboot(); }
  PoolLives(const PoolLives&) = delete;
  PoolLives& operator=(const PoolLives&) = delete;

  // All later lives have this front.
  void SetFront(const std::string& path) { front_ = path; }
  // Makes pool and journal.
  Status Make();
  // Removes both.
  void Remove();

  // The account of what a power cut may have left.
  struct Account {
    struct Flush {
      Place end;  // The place after it.
      uint64_t offset;
      std::vector<std::byte> bytes;
    };
    struct Shard {
      std::deque<Flush> flushes;  // Since `begin`.
      Place begin = 0;
      Place held = 0;  // Acknowledged.
    };
    std::array<Shard, kShards> shards;
    std::vector<std::byte> pool;  // The bytes at `begin` of both shards.
    enum class Mark : uint8_t { kUnknown, kInUse, kClosed };
    Mark mark = Mark::kUnknown;  // Of the superblock.
  };
  [[nodiscard]] const Account& account() const { return account_; }
  // The files are those of another time, so the archive begins again.
  void SetAccount(const Account& account) {
    account_ = account;
    EmptyArchive();
  }

  // Opens the pool as a server does, with an archive, which must get no gap. The disk must have all that was held. And
  // the pool must be as after all flushes before the places where the streams go on, and have nothing else. Returns
  // false if the disk ended the start.
  bool Start();
  // Puts, checkpoints, and a clean close. Ends early after an error of the disk.
  void Work();
  // Puts more than the streams have room for, until an error of the disk.
  void WorkWithoutWaiting();
  // Goes nearly round the ring of the first shard.
  void GoRound();
  // Leaves records that the pool file lacks.
  void LeaveRecords();
  // Puts something, and waits until it is held.
  void WorkALittle();
  // The process ends.
  void End();
  // A reboot takes the image.
  void Reboot();

  // The first promise that was broken. Empty: none.
  [[nodiscard]] const std::string& broken() const { return broken_; }
  [[nodiscard]] uint64_t applied() const { return applied_; }
  // How often the front held something at once.
  [[nodiscard]] uint64_t held_by_front() const { return held_by_front_; }

 private:
  void Break(const std::string& what);
  void EmptyArchive();
  void CheckBytes();
  void CheckMark();
  void Close();
  void Put(uint32_t shard, uint64_t number, size_t size);
  void PutZeroes(uint32_t shard, uint64_t number, size_t size);
  void Flush(uint32_t shard, uint64_t offset, std::vector<std::byte> bytes);
  void Hold(uint32_t shard);
  [[nodiscard]] bool Fails() const { return !pool_ || journaled_->failed(); }

  SimulatedFiles& files_;
  std::string front_;                          // Empty: the pool has no front.
  const TemporaryFolder archive_{"/dev/shm"};  // Not on the simulated disk: it keeps all that it got.
  Random random_{1};
  Account account_;
  format::Superblock superblock_{};
  JournaledPool* journaled_ = nullptr;
  std::unique_ptr<server::FormattedPool> pool_;
  std::string broken_;
  uint64_t applied_ = 0;  // Bytes of rings and fronts that the starts applied.
  uint64_t held_by_front_ = 0;
};

}  // namespace erda::journal
