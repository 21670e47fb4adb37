// Pages of a mapped pool that are made before anybody stores there.
//
// The first store into a page costs a fault: some microseconds in which the kernel finds memory for it and fills it
// with zeroes. Each process has such a fault. A thread that is not in a hurry can take that time instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace erda::nvm {

// Makes the pages of this range, writable and one by one. Changes no byte. Returns false if the kernel made not all of
// them; errno then has the reason.
bool MakePages(std::span<std::byte> range);

// Makes large pages of this range as far as it holds whole ones, and single pages of the rest and where the kernel
// refuses. Changes no byte. For memory that is on no disk: memfds and tmpfs. Every mapping that begins at a multiple of
// a large page (base/map_shared.h) then has one fault for 512 pages. Returns what MakePages returns.
bool MakeLargePages(std::span<std::byte> range);

// For a file on a disk: the first store into a large page of the range will make all of it. `fd` is the file, and the
// range begins at its byte `offset`. Parts that are mostly not in memory lose their clean pages: one small page would
// keep a large one away. Changes no byte. Linux makes large pages of ext4 since 6.16, and of XFS since 5.18.
// REQUIRES: the range begins and ends at large pages.
void EnlargePages(std::span<std::byte> range, int fd, uint64_t offset);

// Makes the pages of a range that EnlargePages got, writable. Changes no byte. Where the pages are small all the same,
// this makes two of each 512. The others would cost this thread as much as those that store.
void MakeEnlargedPages(std::span<std::byte> range);

// Returns true if EnlargePages works for files in this folder. Tries it with a file that has no name.
[[nodiscard]] bool KernelEnlarges(const std::string& folder);

// Returns the bytes of memory that programs can still take. Those of the page cache count, since the kernel gives them
// up. Returns UINT64_MAX if the kernel does not say.
[[nodiscard]] uint64_t AvailableMemory();

// Returns true if the bytes are at most half of the machine's memory.
[[nodiscard]] bool MemoryHasRoomFor(uint64_t bytes);

}  // namespace erda::nvm
