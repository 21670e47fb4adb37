// A peer in a separate process: this program, started again. A fork alone would not do, since some open objects of a
// fabric do not survive it (a verbs context).
#pragma once

#include <sys/types.h>

#include <string>

namespace erda::fabric {

class Child {
 public:
  // The roles. A child plays its role until it is killed.
  static constexpr const char* kClient = "client";  // Connects to the address, and sends as much as it may.
  static constexpr const char* kWriter =
      "writer";  // Connects, sends one message, and fills the offered memory again and again.
  static constexpr const char* kServer = "server";  // Listens at the address, accepts everyone and answers nothing.

  Child(const char* role, const std::string& address);
  ~Child() { Kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  // Stops the child where it is, until it is killed.
  void Stop() const;
  void Kill();

  // For main. Returns true if this process was started as a child. It has then played its role, and ends with
  // *exit_code.
  static bool Run(int argc, char** argv, int* exit_code);

 private:
  pid_t pid_;
};

}  // namespace erda::fabric
