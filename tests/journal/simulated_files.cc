#include "journal/simulated_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/unique_fd.h"
#include "journal/entry.h"
#include "journal/record.h"

namespace erda::journal {

namespace {

std::atomic<SimulatedFiles*> present = nullptr;

std::filesystem::path NewFolder() {
  std::string name = "/dev/shm/erda-test.XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  return name;
}

// The kernel's calls, past the simulation. A file in memory does all of them.
void ReadAt(int fd, uint64_t offset, std::span<std::byte> to) {
  const auto count = ::syscall(SYS_pread64, fd, to.data(), to.size(), offset);
  if (count < 0) std::abort();
  std::fill(to.begin() + count, to.end(), std::byte{});  // After the end of the file.
}

void WriteAt(int fd, uint64_t offset, std::span<const std::byte> from) {
  if (!std::cmp_equal(::syscall(SYS_pwrite64, fd, from.data(), from.size(), offset), from.size())) std::abort();
}

uint64_t SizeOf(int fd) { return static_cast<uint64_t>(::lseek(fd, 0, SEEK_END)); }

UniqueFd OpenFile(const std::string& path) { return UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC)); }

std::vector<std::byte> ReadAll(const std::string& path) {
  const UniqueFd fd = OpenFile(path);
  if (!fd) return {};
  std::vector<std::byte> bytes(SizeOf(fd.get()));
  ReadAt(fd.get(), 0, bytes);
  return bytes;
}

void Replace(const std::string& path, std::span<const std::byte> bytes) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes.size())) != 0) std::abort();
  WriteAt(fd.get(), 0, bytes);
}

int Error() {
  errno = EIO;
  return -1;
}

}  // namespace

SimulatedFiles* PresentFiles() { return present.load(std::memory_order_acquire); }

SimulatedFiles::SimulatedFiles(uint64_t seed)
    : folder_(NewFolder()),
      random_(seed),
      pool_{.path = folder_ / "pool", .is_mapped = true},
      journal_{.path = folder_ / "journal", .is_mapped = false} {
  EXPECT_EQ(present.exchange(this), nullptr) << "one at a time";
}

SimulatedFiles::~SimulatedFiles() {
  present = nullptr;
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string SimulatedFiles::NameOf(int fd) const {
  std::array<char, 4096> name{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = ::readlink(link.c_str(), name.data(), name.size());
  return size < 0 ? std::string() : std::string(name.data(), static_cast<size_t>(size));
}

SimulatedFiles::File* SimulatedFiles::Find(const std::string& path) {
  if (path == pool_.path) return &pool_;
  return path == journal_.path ? &journal_ : nullptr;
}

SimulatedFiles::Fate SimulatedFiles::NextCall() {
  const uint64_t call = calls_++;
  if (call == cut_at_) GoOff();
  if (off_) return Fate::kPowerCut;
  if (call != fail_at_) return Fate::kWorks;
  failed_ = true;
  return Fate::kFails;
}

// No disk will ever have the bytes that the server stores from now on.
void SimulatedFiles::GoOff() {
  off_ = true;
  for (File* file : {&pool_, &journal_}) {
    if (file->is_mapped) file->at_cut = ReadAll(file->path);
  }
}

// --- Writes

std::optional<ssize_t> SimulatedFiles::Write(int fd, std::span<const iovec> pieces, uint64_t offset) {
  const std::lock_guard lock(mutex_);
  File* const file = Find(NameOf(fd));
  if (file == nullptr) return {};
  const bool was_off = off_;
  const Fate fate = NextCall();
  if (was_off) return Error();
  std::vector<std::byte> bytes;
  for (const iovec& piece : pieces) {
    const auto* const begin = static_cast<const std::byte*>(piece.iov_base);
    bytes.insert(bytes.end(), begin, begin + piece.iov_len);
  }
  WriteSectors(*file, fd, offset, bytes, fate == Fate::kFails);
  if (flaw_ == FileFlaw::kWritesPoolEarly && file == &journal_) WritePoolEarly(bytes);
  return fate == Fate::kWorks ? static_cast<ssize_t>(bytes.size()) : Error();
}

void SimulatedFiles::WriteSectors(File& file, int fd, uint64_t offset, std::span<const std::byte> bytes, bool fails) {
  while (!bytes.empty()) {
    const uint64_t until_next = AlignDown(offset, kSector) + kSector - offset;
    const uint64_t size = fails ? std::min<uint64_t>(bytes.size(), until_next) : bytes.size();
    if (!fails || random_.Chance(0.5)) {
      WriteAt(fd, offset, bytes.first(size));
      const uint64_t begin = AlignDown(offset, kSector);
      std::vector<std::byte> sectors(AlignUp(offset + size, kSector) - begin);
      ReadAt(fd, begin, sectors);
      file.cached.push_back({begin, std::move(sectors)});
      file.forgotten.erase(file.forgotten.lower_bound(begin), file.forgotten.lower_bound(offset + size));
    }
    offset += size;
    bytes = bytes.subspan(size);
  }
}

void SimulatedFiles::WritePoolEarly(std::span<const std::byte> record) {
  const auto header = LoadAs<RecordHeader>(record);
  if (header.magic != kRecordMagic) return;
  const UniqueFd fd = OpenFile(pool_.path);
  const auto stream = record.subspan(sizeof(header), header.bytes);
  EXPECT_TRUE(ForEachEntry(stream, SizeOf(fd.get()), [&](const Entry& entry) {
    const std::vector<std::byte> zeroes(entry.kind == EntryKind::kZeroes ? entry.size : 0);
    WriteSectors(pool_, fd.get(), entry.offset, zeroes.empty() ? entry.bytes : zeroes, false);
  }));
}

// --- Syncs

bool SimulatedFiles::IsDropped(const File& file) const {
  return (flaw_ == FileFlaw::kPoolNotSynced && &file == &pool_) ||
         (flaw_ == FileFlaw::kRecordsNotSynced && &file == &journal_);
}

std::optional<int> SimulatedFiles::Sync(int fd) {
  const std::lock_guard lock(mutex_);
  const std::string name = NameOf(fd);
  if (File* const file = Find(name)) {
    const std::optional<int> told = std::exchange(file->told, {});
    const int result = SyncRange(*file, 0, UINT64_MAX);
    return told && *told != fd ? Error() : result;
  }
  if (name != folder_) return {};
  if (NextCall() != Fate::kWorks) return Error();
  for (File* file : {&pool_, &journal_}) file->is_named = std::filesystem::exists(file->path);
  return 0;
}

// The kernel tells an error once to each opening of a file. Here each descriptor is one. No flush follows, so a call
// without an error makes nothing durable.
std::optional<int> SimulatedFiles::StartWriteback(int fd) {
  const std::lock_guard lock(mutex_);
  File* const file = Find(NameOf(fd));
  if (file == nullptr) return {};
  ++writebacks_;
  const Fate fate = NextCall();
  if (fate == Fate::kWorks) return 0;
  if (fate == Fate::kFails) {
    file->told = fd;
    ToDisk(*file, 0, UINT64_MAX, true);
  }
  return Error();
}

std::optional<int> SimulatedFiles::SyncMapping(const void* begin, size_t size) {
  const std::lock_guard lock(mutex_);
  // A line: 7f0000000000-7f0000001000 rw-s 00000000 00:19 1234 /dev/shm/...
  std::ifstream maps("/proc/self/maps");
  const auto address = reinterpret_cast<uintptr_t>(begin);
  for (std::string line; std::getline(maps, line);) {
    char* end = nullptr;
    const uintptr_t from = std::strtoull(line.c_str(), &end, 16);
    const uintptr_t to = std::strtoull(end + 1, &end, 16);
    if (address < from || address >= to) continue;
    const size_t slash = line.find('/');
    File* const file = slash == std::string::npos ? nullptr : Find(line.substr(slash));
    if (file == nullptr) return {};
    const uint64_t offset = std::strtoull(end + 6, nullptr, 16) + address - from;
    return SyncRange(*file, offset, offset + size);
  }
  return {};
}

int SimulatedFiles::SyncRange(File& file, uint64_t begin, uint64_t end) {
  const Fate fate = NextCall();
  if (fate == Fate::kPowerCut) return Error();
  const bool fails = fate == Fate::kFails;
  ToDisk(file, begin, end, fails);
  return fails && flaw_ != FileFlaw::kIgnoresErrors ? Error() : 0;
}

void SimulatedFiles::ToDisk(File& file, uint64_t begin, uint64_t end, bool fails) {
  const UniqueFd fd = OpenFile(file.path);
  if (!fd || IsDropped(file)) return;
  if (!file.durable) file.durable.emplace();
  file.durable->resize(SizeOf(fd.get()));
  if (file.is_mapped) {
    const auto seen = ReadAll(file.path);
    SyncSectors(file, begin, std::span(seen).subspan(begin, std::min(end, seen.size()) - begin), fails);
    std::erase_if(file.cached, [&](const Written& written) {
      return begin <= written.offset && written.offset + written.bytes.size() <= end;
    });
  } else {
    for (const Written& written : file.cached) SyncSectors(file, written.offset, written.bytes, fails);
    file.cached.clear();
  }
}

void SimulatedFiles::SyncSectors(File& file, uint64_t begin, std::span<const std::byte> bytes, bool fails) {
  for (uint64_t at = 0; at < bytes.size(); at += kSector) {
    const auto sector = bytes.subspan(at, std::min(kSector, bytes.size() - at));
    const auto durable = std::span(*file.durable).subspan(begin + at, sector.size());
    if (std::memcmp(sector.data(), durable.data(), sector.size()) == 0 || file.forgotten.contains(begin + at)) continue;
    if (fails && random_.Chance(0.5)) {
      file.forgotten.insert(begin + at);
    } else {
      std::ranges::copy(sector, durable.begin());
    }
  }
}

// --- Names and reads

std::optional<int> SimulatedFiles::Unlink(const char* path) {
  const std::lock_guard lock(mutex_);
  File* const file = Find(path);
  if (file == nullptr) return {};
  if (NextCall() != Fate::kWorks) return Error();
  *file = {.path = file->path, .is_mapped = file->is_mapped};
  return static_cast<int>(::syscall(SYS_unlink, path));
}

void SimulatedFiles::HasRead(int fd, std::span<std::byte> bytes, uint64_t offset) {
  if (flaw_ != FileFlaw::kTakesTornRecords || offset % Disk::kBlock != 0) return;
  const std::lock_guard lock(mutex_);
  if (Find(NameOf(fd)) != &journal_) return;
  for (auto at = bytes; at.size() > sizeof(RecordHeader); at = at.subspan(std::min(Disk::kBlock, at.size()))) {
    auto header = LoadAs<RecordHeader>(at);
    if (header.magic != kRecordMagic || header.bytes > at.size() - sizeof(header)) continue;
    header.crc = 0;
    header.crc = Crc32c(Crc32c(0, BytesOf(header)), at.subspan(sizeof(header), header.bytes));
    std::memcpy(at.data(), &header, sizeof(header));
  }
}

// --- What is left

void SimulatedFiles::PowerCut() {
  const std::lock_guard lock(mutex_);
  if (!off_) GoOff();
  // Many cuts keep all of the cache, nothing, or almost all.
  constexpr double kChances[] = {0, 0.1, 0.5, 0.9, 1};
  const double kept = kChances[random_.Uniform(std::size(kChances))];
  for (File* file : {&pool_, &journal_}) CutFile(*file, kept);
  off_ = failed_ = false;
  cut_at_ = fail_at_ = UINT64_MAX;
}

void SimulatedFiles::CutFile(File& file, double kept) {
  const UniqueFd fd = OpenFile(file.path);
  const bool stays = file.is_named || (fd && random_.Chance(0.5));
  if (!stays) {
    ::syscall(SYS_unlink, file.path.c_str());
    file = {.path = file.path, .is_mapped = file.is_mapped};
    return;
  }
  std::vector<std::byte> disk = file.durable.value_or(std::vector<std::byte>());
  // Of a new file the length may be lost, too.
  if (!file.durable && random_.Chance(0.7)) disk.resize(SizeOf(fd.get()));
  // Stores without a call come last.
  if (file.is_mapped) file.cached.push_back({0, std::move(file.at_cut)});
  const bool is_old = file.durable.has_value() && !file.is_mapped;
  const auto put_back = [&](uint64_t at) { WriteAt(fd.get(), at, std::span(disk).subspan(at, kSector)); };
  for (const auto& [offset, bytes] : file.cached) {
    for (uint64_t at = 0; at < bytes.size() && offset + at + kSector <= disk.size(); at += kSector) {
      if (random_.Chance(kept) && !file.forgotten.contains(offset + at))
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), kSector,
                    disk.begin() + static_cast<std::ptrdiff_t>(offset + at));
      if (is_old) put_back(offset + at);
    }
  }
  if (is_old) std::ranges::for_each(file.forgotten, put_back);
  if (!is_old) Replace(file.path, disk);
  file = {.path = file.path, .durable = std::move(disk), .is_named = true};
}

void SimulatedFiles::Reopen() {
  const std::lock_guard lock(mutex_);
  for (File* file : {&pool_, &journal_}) {
    const UniqueFd fd = OpenFile(file->path);
    for (const uint64_t at : file->forgotten) {
      WriteAt(fd.get(), at, std::span(*file->durable).subspan(at, kSector));
    }
    file->forgotten.clear();
  }
  failed_ = false;
  cut_at_ = fail_at_ = UINT64_MAX;
}

void SimulatedFiles::Restore(const Contents& disk, uint64_t seed) {
  const std::lock_guard lock(mutex_);
  random_ = Random(seed);
  const auto restore = [this](File& file, const std::optional<std::vector<std::byte>>& saved) {
    if (!saved) {
      ::syscall(SYS_unlink, file.path.c_str());
    } else if (!file.durable || file.durable->size() != saved->size()) {
      Replace(file.path, *saved);
    } else {
      // Only what differs. After a PowerCut the file is what the disk has.
      const UniqueFd fd = OpenFile(file.path);
      for (uint64_t at = 0; at < saved->size(); at += Disk::kBlock) {
        const uint64_t size = std::min<uint64_t>(Disk::kBlock, saved->size() - at);
        if (std::memcmp(file.durable->data() + at, saved->data() + at, size) == 0) continue;
        WriteAt(fd.get(), at, std::span(*saved).subspan(at, size));
      }
    }
    const bool is_mapped = !saved && &file == &pool_;
    file = {.path = file.path, .is_mapped = is_mapped, .durable = saved, .is_named = saved.has_value()};
  };
  restore(pool_, disk.pool);
  restore(journal_, disk.journal);
}

}  // namespace erda::journal
