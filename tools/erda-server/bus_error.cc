#include "tools/erda-server/bus_error.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <climits>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace erda::tools {

namespace {

// The handler may neither allocate nor lock, so all that it uses exists before the signal.
constexpr size_t kLineBytes = 512 + PATH_MAX;
std::array<char, 64> program_name{};
// Two, so that the handler never reads a changing name: the next file's name goes into the other one. Its release pairs
// with the acquire in the handler.
std::array<std::array<char, PATH_MAX>, 2> log_paths{};
std::atomic<const char*> log_path = log_paths[0].data();
std::atomic_flag tells_bus_error;
std::array<char, kLineBytes> map_line;
std::array<char, 2 * kLineBytes> bus_message;

void Keep(std::string_view text, char* where, size_t size) {
  const size_t kept = std::min(text.size(), size - 1);
  std::memcpy(where, text.data(), kept);
  where[kept] = '\0';
}

class BusMessage {
 public:
  BusMessage& operator<<(std::string_view text) {
    const size_t kept = std::min(text.size(), bus_message.size() - size_);
    std::memcpy(bus_message.data() + size_, text.data(), kept);
    size_ += kept;
    return *this;
  }
  BusMessage& operator<<(uint64_t number) {
    std::array<char, 20> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return *this << std::string_view(digits.data(), static_cast<size_t>(end - digits.data()));
  }
  void WriteTo(int fd) const {
    for (size_t at = 0; at < size_;) {
      const ssize_t written = ::write(fd, bus_message.data() + at, size_ - at);
      if (written <= 0) return;
      at += static_cast<size_t>(written);
    }
  }

 private:
  size_t size_ = 0;
};

struct Place {
  std::string_view file;  // Empty: unknown.
  uint64_t offset = 0;
};

// Parses a line of /proc/self/maps: low-high rights offset device inode   path
bool Contains(std::string_view line, uint64_t address, Place* place) {
  uint64_t low = 0;
  uint64_t high = 0;
  const char* const end = line.data() + line.size();
  const char* at = std::from_chars(line.data(), end, low, 16).ptr;
  if (at == end || *at != '-') return false;
  at = std::from_chars(at + 1, end, high, 16).ptr;
  if (address < low || address >= high || end - at < 6) return false;
  uint64_t offset = 0;
  std::from_chars(at + 6, end, offset, 16);  // after " rw-s "
  place->offset = offset + (address - low);
  if (const size_t path = line.find('/'); path != std::string_view::npos) place->file = line.substr(path);
  return true;
}

Place PlaceOf(uint64_t address) {
  Place place;
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  size_t size = 0;
  char c = 0;
  // Reads byte by byte: this runs once, and no line is cut in two.
  while (::read(maps, &c, 1) == 1) {
    if (c != '\n') {
      if (size < map_line.size()) map_line[size++] = c;
      continue;
    }
    if (Contains({map_line.data(), size}, address, &place)) break;
    size = 0;
  }
  ::close(maps);
  return place;
}

void OnBusError(int signal, siginfo_t* info, void* /*context*/) {
  // Several threads may touch such pages at once. One of them reports, and the others wait until the process ends: if
  // they returned, they would fault again.
  while (tells_bus_error.test_and_set(std::memory_order_relaxed)) ::pause();
  BusMessage text;
  text << program_name.data() << ": ";
  if (info->si_code <= 0) {
    text << "ended by a SIGBUS that a process sent\n";
  } else {
    const Place place = PlaceOf(reinterpret_cast<uintptr_t>(info->si_addr));
    text << "byte " << place.offset << " of " << (place.file.empty() ? "a file without a name" : place.file)
         << " cannot be had any more: the file was made shorter, or its disk failed or is full. The server ends here, "
            "as if it was killed. Look at the file's size and at the kernel's log, then start the server again.\n";
  }
  text.WriteTo(STDERR_FILENO);
  if (const char* const path = log_path.load(std::memory_order_acquire); path[0] != '\0') {
    if (const int log = ::open(path, O_WRONLY | O_APPEND | O_CLOEXEC); log >= 0) text.WriteTo(log);
  }
  // By its default the signal ends the process. It is blocked until this function returns; then it comes. (SA_RESETHAND
  // would restore the default before the line is written. A fault of another thread would then end the process without
  // the line.)
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

void TellBusErrorsIn(const std::string& log_file) {
  const bool has_first = log_path.load(std::memory_order_relaxed) == log_paths[0].data();
  auto& next = log_paths[has_first ? 1 : 0];
  Keep(log_file, next.data(), next.size());
  log_path.store(next.data(), std::memory_order_release);
}

void TellBusErrors(const std::string& program, const std::string& log_file) {
  Keep(program, program_name.data(), program_name.size());
  TellBusErrorsIn(log_file);
  struct sigaction action {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace erda::tools
