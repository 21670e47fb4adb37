#include "tools/erda-server/log.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/printable.h"
#include "base/unique_fd.h"

namespace erda::tools {

namespace {

constexpr size_t kLinesLate = 1024;

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

// Writes the priority as in sd-daemon(3).
class PriorityFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/, spdlog::memory_buf_t& to) override {
    switch (message.level) {
      case spdlog::level::debug:
        return to.push_back('7');
      case spdlog::level::info:
        return to.push_back('6');
      case spdlog::level::warn:
        return to.push_back('4');
      default:
        return to.push_back('3');
    }
  }
  [[nodiscard]] std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<PriorityFlag>();
  }
};

// A file that another program, such as logrotate, may rename or remove at any time: the next line then begins a new
// one.
class FileSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FileSink(std::string path) : path_(std::move(path)) { Open(); }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (!IsThere()) Open();
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (::write(file_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) Throw("cannot write to");
  }
  void flush_() override {}

 private:
  void Open() {
    file_ = UniqueFd(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640));
    if (!file_) Throw("cannot open");
  }
  [[nodiscard]] bool IsThere() const {
    struct stat ours {};
    struct stat there {};
    return ::fstat(file_.get(), &ours) == 0 && ::stat(path_.c_str(), &there) == 0 && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
  }
  [[noreturn]] void Throw(const char* what) const {
    throw spdlog::spdlog_ex(fmt::format("{} {}: {}", what, path_, std::strerror(errno)));
  }

  const std::string path_;
  UniqueFd file_;
};

// Returns true if systemd has connected stderr to its journal, without a program in between.
bool StderrIsTheJournal() {
  const char* stream = std::getenv("JOURNAL_STREAM");  // "device:inode".
  struct stat status {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &status) != 0) return false;
  return stream == fmt::format("{}:{}", status.st_dev, status.st_ino);
}

std::unique_ptr<spdlog::formatter> MakeFormatter(bool for_journal) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<PriorityFlag>('*');
  formatter->set_pattern(for_journal ? "<%*>%v" : "%Y-%m-%dT%H:%M:%S.%eZ %l: %v");
  return formatter;
}

}  // namespace

// The thread ends when all is written. The logger holds it weakly, and goes with its last user.
Log::~Log() { writer_.reset(); }

std::shared_ptr<spdlog::logger> Log::MakeLogger(const std::string& file, const Writer& writer) {
  spdlog::sink_ptr sink;
  if (!file.empty()) {
    sink = std::make_shared<FileSink>(file);
  } else {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  }
  auto logger = std::make_shared<spdlog::async_logger>("erda-server", std::move(sink), writer,
                                                       spdlog::async_overflow_policy::overrun_oldest);
  logger->set_level(spdlog::level::trace);  // Write has checked the level.
  logger->flush_on(spdlog::level::trace);   // Flushes each line at once.
  logger->set_formatter(MakeFormatter(file.empty() && StderrIsTheJournal()));
  // A line that cannot be written does not stop the server.
  logger->set_error_handler([](const std::string& what) { fmt::print(stderr, "erda-server: log: {}\n", what); });
  return logger;
}

std::string Log::Open(const std::string& file) try {
  writer_ = std::make_shared<spdlog::details::thread_pool>(kLinesLate, 1);
  logger_ = MakeLogger(file, writer_);
  file_ = file;
  return {};
} catch (const spdlog::spdlog_ex& error) {
  return error.what();
}

std::string Log::Change(LogLevel least, const std::string& file) try {
  if (file != file_) {
    auto writer = std::make_shared<spdlog::details::thread_pool>(kLinesLate, 1);
    auto logger = MakeLogger(file, writer);
    {
      const std::scoped_lock lock(mutex_);
      logger_.swap(logger);
      writer_.swap(writer);
    }
    file_ = file;
    writer.reset();  // The previous thread ends when all is written; its logger goes after it.
  }
  least_.store(least, std::memory_order_relaxed);
  return {};
} catch (const spdlog::spdlog_ex& error) {
  return error.what();
}

void Log::Write(LogLevel level, std::string_view text) {
  if (level < least_.load(std::memory_order_relaxed)) return;
  std::shared_ptr<spdlog::logger> logger;
  {
    const std::scoped_lock lock(mutex_);
    logger = logger_;
  }
  logger->log(ToSpdlog(level), "{}", Printable(text));
}

}  // namespace erda::tools
