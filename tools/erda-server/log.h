// erda-server's log: a line for each event, on stderr or in a file.
//
//   2026-11-25T04:35:04.123Z warning: client 00000000000003e8 (...), shard 0: it broke the protocol: ...
//
// Where stderr is systemd's journal, which has the time, lines begin with their priority instead: <4>client ...
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace spdlog {
class logger;
namespace details {
class thread_pool;
}
}  // namespace spdlog

namespace erda::tools {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };

class Log {
 public:
  explicit Log(LogLevel least) : least_(least) {}  // less is not written
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log();  // writes what is left

  // Before anything is written. file: appended to; empty: stderr. What was wrong, or nothing.
  [[nodiscard]] std::string Open(const std::string& file);

  // Writes less or more from now on, and elsewhere. What was wrong, or nothing; then all stays as it was.
  [[nodiscard]] std::string Change(LogLevel least, const std::string& file);

  // From any thread. It does not wait: a thread of the log writes the lines, and if it is so late that there is no room
  // for more, the oldest are left out. Whatever the text holds, it is one printable line.
  void Write(LogLevel level, std::string_view text);
  // From the thread that opens and changes it.
  [[nodiscard]] bool to_file() const { return !file_.empty(); }

 private:
  using Writer = std::shared_ptr<spdlog::details::thread_pool>;
  [[nodiscard]] static std::shared_ptr<spdlog::logger> MakeLogger(const std::string& file, const Writer& writer);

  std::atomic<LogLevel> least_;  // relaxed: a line on its way may still go by the level of before
  std::string file_;
  Writer writer_;
  std::mutex mutex_;  // of writer_ and logger_, while they are copied or exchanged
  std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace erda::tools
