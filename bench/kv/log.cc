#include "bench/kv/log.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/bytes.h"

namespace erda::kv {

namespace {

// A part writes to the disk at once if this much waits, and otherwise after some time.
constexpr uint64_t kWriteAtOnce = 32 << 10;
constexpr std::chrono::milliseconds kRest{1};

}  // namespace

bool DiskLog::Write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), buffer_.bytes().size()));
    std::ranges::copy(piece, buffer_.bytes().begin());
    const uint64_t whole = AlignUp(piece.size(), pmr_bench::DurableFile::kBlock);
    if (next_ + whole > size_) next_ = 0;
    if (!file_.Write(begin_ + next_, buffer_.bytes().first(whole)).ok()) return false;
    next_ += whole;
    bytes = bytes.subspan(piece.size());
  }
  return true;
}

SyncLog::SyncLog(const pmr_bench::DurableFile& file, uint64_t clients) {
  for (uint64_t client = 0; client < clients; ++client) {
    disks_.push_back(std::make_unique<DiskLog>(file, client * pmr_bench::kFileBytes, pmr_bench::kFileBytes));
  }
}

bool SyncLog::Append(uint64_t client, std::span<const std::byte> record) { return disks_[client]->Write(record); }

// The first client that finds the disk idle writes for all that wait.
bool GroupLog::Append(uint64_t /*client*/, std::span<const std::byte> record) {
  std::unique_lock lock(mutex_);
  waiting_.insert(waiting_.end(), record.begin(), record.end());
  appended_ += record.size();
  const uint64_t mine = appended_;
  while (durable_ < mine && !failed_) {
    if (writing_) {
      done_.wait(lock);
      continue;
    }
    writing_ = true;
    const auto batch = std::exchange(waiting_, {});
    const uint64_t end = appended_;
    lock.unlock();
    const bool written = disk_.Write(batch);
    lock.lock();
    writing_ = false;
    written ? durable_ = end : failed_ = true;
    done_.notify_all();
  }
  return durable_ >= mine;
}

FrontLog::Part::Part(nvm::Pool& pool, uint64_t number, uint64_t bytes, const pmr_bench::DurableFile& file)
    : writer(pool),
      front(journal::FrontPart::Format(writer, number * bytes, bytes, {{}, {}, static_cast<uint32_t>(number)}, 1, 0)),
      disk(file, number * pmr_bench::kFileBytes, pmr_bench::kFileBytes) {}

FrontLog::FrontLog(nvm::Pool& front, const pmr_bench::DurableFile& file, uint64_t clients) {
  const uint64_t bytes = AlignDown(front.size() / clients, kCacheLine);
  for (uint64_t client = 0; client < clients; ++client) {
    parts_.push_back(std::make_unique<Part>(front, client, bytes, file));
  }
  thread_ = std::thread([this] { Run(); });
}

FrontLog::~FrontLog() {
  stop_.store(true, std::memory_order_release);  // Pairs with the acquire in Run.
  thread_.join();
}

bool FrontLog::Append(uint64_t client, std::span<const std::byte> record) {
  Part& part = *parts_[client];
  for (;;) {
    if (failed_.load(std::memory_order_acquire)) return false;
    part.front.Release(part.on_disk.load(std::memory_order_acquire));
    if (part.front.Append(part.front.end(), {&record, 1})) break;
    std::this_thread::yield();  // The front is full: the client waits for the disk.
  }
  if (part.writer.failed()) return false;
  const std::lock_guard lock(part.mutex);
  part.waiting.insert(part.waiting.end(), record.begin(), record.end());
  part.end = part.front.end();
  return true;
}

void FrontLog::Run() {
  while (!stop_.load(std::memory_order_acquire)) {
    bool much = false;
    for (const auto& part : parts_) {
      {
        const std::lock_guard lock(part->mutex);
        much = much || part->waiting.size() >= kWriteAtOnce;
      }
      if (!WriteOut(*part)) {
        failed_.store(true, std::memory_order_release);
        return;
      }
    }
    if (!much) std::this_thread::sleep_for(kRest);
  }
}

bool FrontLog::WriteOut(Part& part) {
  std::vector<std::byte> bytes;
  journal::Place end = 0;
  {
    const std::lock_guard lock(part.mutex);
    bytes.swap(part.waiting);
    end = part.end;
  }
  if (bytes.empty()) return true;
  if (!part.disk.Write(bytes)) return false;
  part.on_disk.store(end, std::memory_order_release);  // Pairs with the acquire in Append.
  return true;
}

}  // namespace erda::kv
