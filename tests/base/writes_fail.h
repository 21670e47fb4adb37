// A disk that fails, for tests.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

namespace erda {

// While it lives, writes of this process to a file fail if they reach beyond the first 4 KiB.
class WritesFail {
 public:
  WritesFail() : before_(std::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &limit_), 0);
    const rlimit low{4096, limit_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  }
  WritesFail(const WritesFail&) = delete;
  WritesFail& operator=(const WritesFail&) = delete;
  ~WritesFail() {
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit_), 0);
    (void)std::signal(SIGXFSZ, before_);
  }

 private:
  void (*before_)(int);
  rlimit limit_{};
};

}  // namespace erda
