#include "journal/watched_folder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>

namespace erda::journal {

namespace {

std::atomic<WatchedFolder*> present_folder = nullptr;

}  // namespace

WatchedFolder* PresentFolder() { return present_folder.load(std::memory_order_acquire); }

WatchedFolder::WatchedFolder(const std::filesystem::path& path) : path_(std::filesystem::canonical(path)) {
  EXPECT_EQ(present_folder.exchange(this), nullptr) << "one at a time";
}

WatchedFolder::~WatchedFolder() { present_folder = nullptr; }

std::vector<std::string> WatchedFolder::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

void WatchedFolder::FailAt(uint64_t call) {
  const std::lock_guard lock(mutex_);
  fail_at_ = calls_.size() + call;
}

void WatchedFolder::SetFull(bool is_full) {
  const std::lock_guard lock(mutex_);
  is_full_ = is_full;
}

std::optional<std::string> WatchedFolder::NameOf(int fd) const {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error);
  if (error) return {};
  if (path == path_) return ".";
  if (path.parent_path() != path_) return {};
  return path.filename().string();
}

int WatchedFolder::Call(const std::string& call) {
  const std::lock_guard lock(mutex_);
  const bool fails = calls_.size() == fail_at_;
  calls_.push_back(call);
  if (fails) return EIO;
  return is_full_ && call.starts_with("write ") ? ENOSPC : 0;
}

int WatchedFolder::Write(int fd) {
  const auto name = NameOf(fd);
  return name ? Call("write " + *name) : 0;
}

int WatchedFolder::Sync(int fd) {
  const auto name = NameOf(fd);
  return name ? Call("sync " + *name) : 0;
}

int WatchedFolder::Rename(const char* from, const char* to) {
  const std::filesystem::path path(from);
  if (path.parent_path() != path_) return 0;
  return Call("rename " + path.filename().string() + " " + std::filesystem::path(to).filename().string());
}

}  // namespace erda::journal
