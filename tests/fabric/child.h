// A peer in a process of its own: this program, started anew. Not a fork alone: what a fabric has open does not survive
// that everywhere (a verbs context does not).
#pragma once

#include <sys/types.h>

#include <string>

namespace erda::fabric {

class Child {
 public:
  // What it does, until it is killed.
  static constexpr const char* kClient = "client";  // connects to the address, and sends as much as it may
  static constexpr const char* kWriter =
      "writer";  // connects, sends one message, and fills what it was offered again and again
  static constexpr const char* kServer = "server";  // listens at the address, accepts everyone and answers nothing

  Child(const char* role, const std::string& address);
  ~Child() { Kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  // It stays where it is, until it is killed.
  void Stop() const;
  void Kill();

  // For main: whether this process was started as a child. If so, it has been one, and ends with `*exit_code`.
  static bool Run(int argc, char** argv, int* exit_code);

 private:
  pid_t pid_;
};

}  // namespace erda::fabric
