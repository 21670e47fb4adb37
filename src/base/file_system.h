// Questions about a file's place, and space for a file. They own nothing. Any thread may call them.
#pragma once

#include <cstdint>
#include <string>

namespace erda {

// Returns true if the file's pages are its only copy: the kernel writes them to no disk.
[[nodiscard]] bool IsInMemory(int fd);

// Allocates blocks for a range of the file, so that a full file system is an error here and not a SIGBUS later. Keeps
// the bytes in the range. Allocates nothing if the file system has too little room. Returns 0, or the number of the
// error.
[[nodiscard]] int AllocateRange(int fd, uint64_t begin, uint64_t end);

// Returns the folder in which a file with this path is, or would be.
[[nodiscard]] std::string FolderOf(const std::string& path);

}  // namespace erda
