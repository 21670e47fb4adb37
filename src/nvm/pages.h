// Pages of a mapped pool that are made before anybody stores there.
//
// The first store into a page costs a fault: some microseconds in which the kernel finds memory for it and fills it
// with zeroes. Each process has such a fault. A thread that is not in a hurry can take that time instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace erda::nvm {

// Makes the pages of this range, writable and one by one. Changes no byte. Does nothing if the kernel cannot.
void MakePages(std::span<std::byte> range);

// Makes large pages of this range as far as it holds whole ones, and single pages of the rest and where the kernel
// refuses. Changes no byte. For memory that is on no disk: memfds and tmpfs. Every mapping that begins at a multiple of
// a large page (base/map_shared.h) then has one fault for 512 pages.
void MakeLargePages(std::span<std::byte> range);

}  // namespace erda::nvm
