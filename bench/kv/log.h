// The logs in front of a store: four ways to have a put for good before it is acknowledged.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "bench/pmr/targets.h"
#include "journal/aligned_buffer.h"
#include "journal/front_part.h"
#include "nvm/pool.h"
#include "nvm/writer.h"

namespace erda::kv {

class Log {
 public:
  Log() = default;
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  virtual ~Log() = default;
  // Returns when the record is durable. Returns false if it never will be. One thread at a time calls it for a client.
  virtual bool Append(uint64_t client, std::span<const std::byte> record) = 0;
};

// A part of the disk's file, written one block after the other, and then from its start again. It has no restart.
class DiskLog {
 public:
  DiskLog(const pmr_bench::DurableFile& file, uint64_t begin, uint64_t size)
      : file_(file), begin_(begin), size_(size), buffer_(pmr_bench::kBytesMax) {}
  // Returns when the disk has the bytes for good, or false if it failed. The last block of a write is filled up.
  bool Write(std::span<const std::byte> bytes);

 private:
  const pmr_bench::DurableFile& file_;
  const uint64_t begin_;
  const uint64_t size_;
  uint64_t next_ = 0;
  const journal::AlignedBuffer buffer_;
};

// The paper's SyncAccess: each record is a write to the disk.
class SyncLog final : public Log {
 public:
  // REQUIRES: the file has room for kFileBytes for each client.
  SyncLog(const pmr_bench::DurableFile& file, uint64_t clients);
  bool Append(uint64_t client, std::span<const std::byte> record) override;

 private:
  std::vector<std::unique_ptr<DiskLog>> disks_;
};

// The paper's GroupAccess: records that come while the disk is busy go to it together.
class GroupLog final : public Log {
 public:
  explicit GroupLog(const pmr_bench::DurableFile& file) : disk_(file, 0, pmr_bench::kFileBytes) {}
  bool Append(uint64_t client, std::span<const std::byte> record) override;

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  std::vector<std::byte> waiting_;
  uint64_t appended_ = 0;  // Bytes, also those that wait.
  uint64_t durable_ = 0;
  bool writing_ = false;
  bool failed_ = false;
  DiskLog disk_;
};

// The paper's PMRAccess, and with NVM its PMEMAccess: a record is durable when it is in the front. A thread writes to
// the disk what the front has, and frees the space. Each client has a part of the front.
class FrontLog final : public Log {
 public:
  FrontLog(nvm::Pool& front, const pmr_bench::DurableFile& file, uint64_t clients);
  ~FrontLog() override;
  bool Append(uint64_t client, std::span<const std::byte> record) override;

 private:
  struct Part {
    Part(nvm::Pool& front, uint64_t number, uint64_t bytes, const pmr_bench::DurableFile& file);
    nvm::Writer writer;
    journal::FrontPart front;
    DiskLog disk;
    std::atomic<journal::Place> on_disk = 0;
    std::mutex mutex;  // Of these two.
    std::vector<std::byte> waiting;
    journal::Place end = 0;
  };
  void Run();
  // Writes the records of the part that wait. Returns false if the disk failed.
  bool WriteOut(Part& part);

  std::vector<std::unique_ptr<Part>> parts_;
  std::atomic<bool> failed_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace erda::kv
