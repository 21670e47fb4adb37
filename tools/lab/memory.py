"""Memory of the host that guests have as NVM: an NVDIMM, the persistent memory region of an NVMe disk."""

from __future__ import annotations

import fcntl
import os
import pathlib

from lab.common import LabError


def memory_file(content: bytes) -> int:
    """Makes a nameless file, which ends with its last user."""
    descriptor = os.memfd_create("lab", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    return descriptor


class Nvdimm:
    """The memory of a guest's NVDIMM: a file, or nameless memory that ends with this process."""

    FORMATS = {b"NVDIMM_DAX_INFO\0": "devdax", b"NVDIMM_PFN_INFO\0": "fsdax"}
    ALIGNMENT = 2 << 20

    def __init__(self, file: pathlib.Path | None, size: int | None) -> None:
        if file:
            self.name = str(file)
            self.descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise LabError(f"another lab uses {file}: end that lab, or name another file") from error
        else:
            self.name = "the NVDIMM"
            self.descriptor = os.memfd_create("nvdimm", os.MFD_CLOEXEC)
        present = os.fstat(self.descriptor).st_size
        if present and size and present != size:
            raise LabError(f"{file} has {present} bytes, not {size}: leave out --nvdimm, or name another file")
        self.size = present or size or 512 << 20
        if self.size % self.ALIGNMENT or self.size < 8 * self.ALIGNMENT:
            raise LabError(f"the size of an NVDIMM must be a multiple of 2 MiB, at least 16 MiB; not {self.size} bytes")
        if not present:
            os.ftruncate(self.descriptor, self.size)

    def format(self) -> str:
        """Returns devdax, fsdax, or an empty string."""
        head = os.pread(self.descriptor, self.ALIGNMENT, 0)
        if found := self.FORMATS.get(head[4096:4112]):
            return found
        if head.strip(b"\0"):
            raise LabError(f"{self.name} has contents that are not of a lab's NVDIMM; name another file")
        return "empty"


def persistent_region(size: int) -> int:
    """Makes the memory of an NVMe disk's persistent memory region, which ends with this process."""
    if size & (size - 1) or not 4096 <= size <= 1 << 30:
        raise LabError(f"the size of a persistent memory region must be a power of two from 4K to 1G; not {size} bytes")
    descriptor = os.memfd_create("pmr", os.MFD_CLOEXEC)
    os.ftruncate(descriptor, size)
    return descriptor
