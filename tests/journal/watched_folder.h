// A folder whose files' calls are listed, and can fail. The program of these tests has its own pwrite, fdatasync, fsync
// and rename (simulated_calls.cc), which ask the WatchedFolder that there is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace erda::journal {

// One at a time. Any thread may use the files.
class WatchedFolder {
 public:
  explicit WatchedFolder(const std::filesystem::path& path);
  WatchedFolder(const WatchedFolder&) = delete;
  WatchedFolder& operator=(const WatchedFolder&) = delete;
  ~WatchedFolder();

  // All calls so far, such as "write a", "sync a", "rename a b", and "sync ." for the folder.
  [[nodiscard]] std::vector<std::string> calls() const;
  // This call fails, counted from the next one as 0, and later ones do not.
  void FailAt(uint64_t call);
  // While it is true, the disk has no room for any write.
  void SetFull(bool is_full);

  // --- The calls. They return the number of an error, or 0 if the kernel shall answer.

  int Write(int fd);
  int Sync(int fd);
  int Rename(const char* from, const char* to);

 private:
  [[nodiscard]] std::optional<std::string> NameOf(int fd) const;
  int Call(const std::string& call);

  const std::filesystem::path path_;
  mutable std::mutex mutex_;
  std::vector<std::string> calls_;
  uint64_t fail_at_ = UINT64_MAX;
  bool is_full_ = false;
};

// The one that there is, or null.
[[nodiscard]] WatchedFolder* PresentFolder();

}  // namespace erda::journal
