"""The guests' kernel, from Debian's package, and the initrd that leads a guest to its root."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import io
import lzma
import os
import pathlib
import re
import shlex
import shutil
import stat
import struct
import subprocess
import tempfile
from collections.abc import Iterator

from lab.common import LAB, LabError, say

# Modules that the guest loads before it has its root, and after that.
BOOT_MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
REST_MODULES = (
    "virtio_console virtio_net veth crc32_generic rdma_rxe rdma_ucm ib_uverbs nfit nd_pmem device_dax dax_pmem "
    "crc32c_generic ext4 virtio_blk"
).split()
# The kernel's drivers that are kept, so that a user can try more in a guest with modprobe.
KEPT_DRIVERS = {"acpi", "block", "char", "dax", "infiniband", "net", "nvdimm", "nvme", "virtio"}


@dataclasses.dataclass(frozen=True)
class Kernel:
    version: str
    directory: pathlib.Path

    @property
    def image(self) -> pathlib.Path:
        return self.directory / "vmlinux"

    @property
    def modules(self) -> pathlib.Path:
        return self.directory / "lib/modules"


def cache_directory() -> pathlib.Path:
    default = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "erda-lab"
    return pathlib.Path(os.environ.get("ERDA_LAB_CACHE") or default).absolute()


@contextlib.contextmanager
def locked(file: pathlib.Path, how: int) -> Iterator[None]:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)


def command_output(*command: str, cwd: pathlib.Path | None = None) -> str:
    """Returns the command's output. Shows its error output only if it fails."""
    try:
        done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as error:
        raise LabError(f"cannot run {command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        raise LabError(f"{shlex.join(command)} failed:\n{done.stderr.strip()}")
    return done.stdout


def kernel_package() -> str:
    """Returns the name of the package with Debian's kernel, such as linux-image-6.1.0-1-amd64."""
    depends = command_output("apt-cache", "depends", "--important", "linux-image-amd64")
    if found := re.search(r"Depends: (linux-image-\S+)", depends):
        return found[1]
    raise LabError("apt does not know the package linux-image-amd64: run apt-get update")


def update_package_lists() -> None:
    as_root = [] if os.geteuid() == 0 else ["sudo"]
    command_output(*as_root, "apt-get", "-qq", "update")


def uncompressed_kernel(image: bytes) -> bytes:
    """Returns the ELF kernel inside of a bzImage. The emulator starts it without a slow decompression in the guest."""
    setup_sectors = image[0x1F1]
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    try:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(image[start : start + length])
    except lzma.LZMAError:
        return image  # Compressed in another way: it boots a little later.


def remove_unused_modules(modules: pathlib.Path) -> None:
    drivers = modules / "kernel/drivers"
    shutil.rmtree(modules / "kernel/sound", ignore_errors=True)
    for directory in drivers.iterdir():
        if directory.name not in KEPT_DRIVERS:
            shutil.rmtree(directory)
    for directory in (drivers / "net").iterdir():
        if directory.is_dir():
            shutil.rmtree(directory)


def make_kernel(cache: pathlib.Path) -> None:
    say("fetching Debian's kernel, once")
    try:
        package = kernel_package()
    except LabError:
        update_package_lists()
        package = kernel_package()
    with tempfile.TemporaryDirectory(dir=cache, prefix="new-") as name:
        work = pathlib.Path(name)
        download = ("apt-get", "-qq", "-o", "APT::Sandbox::User=", "download", package)
        try:
            command_output(*download, cwd=work)
        except LabError:
            update_package_lists()
            command_output(*download, cwd=work)
        (archive,) = work.glob("*.deb")
        command_output("dpkg-deb", "-x", str(archive), str(work / "unpacked"))
        version = package.removeprefix("linux-image-")
        made = work / "made"
        (made / "lib").mkdir(parents=True)
        (work / "unpacked/lib/modules").rename(made / "lib/modules")
        remove_unused_modules(made / "lib/modules" / version)
        command_output("depmod", "-b", str(made), version)
        image = (work / f"unpacked/boot/vmlinuz-{version}").read_bytes()
        (made / "vmlinux").write_bytes(uncompressed_kernel(image))
        os.sync()
        target = cache / f"kernel-{version}"
        if target.exists():  # It lacks drivers that the lab had no use for when it was made.
            target.rename(work / "old")
        made.rename(target)


def find_kernel(cache: pathlib.Path) -> Kernel | None:
    """Returns the newest kernel in the cache that has all drivers of the lab."""

    def age(directory: pathlib.Path) -> list[int]:
        return [int(number) for number in re.findall(r"\d+", directory.name)]

    kernels = [Kernel(found.name.removeprefix("kernel-"), found) for found in sorted(cache.glob("kernel-*"), key=age)]
    whole = [one for one in kernels if KEPT_DRIVERS <= set(os.listdir(one.modules / one.version / "kernel/drivers"))]
    return whole[-1] if whole else None


def module_order(kernel: Kernel, names: tuple[str, ...] | list[str], known: set[str]) -> list[str]:
    """Returns the files of these modules and of modules that they need, without the known ones, in an order for
    loading."""
    modules = kernel.modules / kernel.version
    needs: dict[str, list[str]] = {}
    files: dict[str, str] = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        file, _, needed = line.partition(":")
        needs[file] = needed.split()
        files[pathlib.PurePath(file).name.split(".")[0].replace("-", "_")] = file
    order: list[str] = []

    def add(file: str) -> None:
        if file in known:
            return
        known.add(file)
        for needed in needs[file]:
            add(needed)
        order.append(file)

    built_in = (modules / "modules.builtin").read_text()
    for name in names:
        if name in files:
            add(files[name])
        elif not re.search(rf"/{name.replace('_', '[-_]')}\.ko", built_in):
            raise LabError(f"the kernel {kernel.version} has no module {name}")
    return order


def cpio(files: dict[str, tuple[int, bytes]]) -> bytes:
    """Returns an archive in the format that the kernel unpacks: the files' modes and contents."""
    archive = io.BytesIO()

    def add(name: str, mode: int, content: bytes, inode: int) -> None:
        encoded = name.encode() + b"\0"
        fields = (inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
        archive.write(b"070701" + b"".join(b"%08X" % field for field in fields) + encoded)
        archive.write(b"\0" * (-archive.tell() % 4) + content)
        archive.write(b"\0" * (-archive.tell() % 4))

    directories = {str(parent) for name in files for parent in pathlib.PurePath(name).parents} - {"."}
    entries = {name: (stat.S_IFDIR | 0o755, b"") for name in sorted(directories)}
    entries |= {name: (stat.S_IFREG | mode, content) for name, (mode, content) in files.items()}
    for inode, (name, (mode, content)) in enumerate(entries.items(), 1):
        add(name, mode, content, inode)
    add("TRAILER!!!", 0, b"", 0)
    return archive.getvalue()


def initrd_content(kernel: Kernel) -> bytes:
    known: set[str] = set()
    boot = module_order(kernel, BOOT_MODULES, known)
    rest = module_order(kernel, REST_MODULES, known)
    files = {"init": (0o755, (LAB / "init").read_bytes())}
    for name in ("dev", "proc", "sys"):
        files[f"{name}/.keep"] = (0o644, b"")
    busybox = shutil.which("busybox")
    if not busybox:
        raise LabError("busybox is missing")
    files["bin/busybox"] = (0o755, pathlib.Path(busybox).read_bytes())
    for file in boot + rest:
        content = (kernel.modules / kernel.version / file).read_bytes()
        files[f"modules/{pathlib.PurePath(file).name}"] = (0o644, content)
    for name, order in (("boot", boot), ("rest", rest)):
        names = "".join(pathlib.PurePath(file).name + "\n" for file in order)
        files[f"modules/{name}"] = (0o644, names.encode())
    return cpio(files)


def prepare_kernel() -> Kernel:
    """Returns the newest kernel in the cache. Fetches one if the cache is empty."""
    cache = cache_directory()
    if kernel := find_kernel(cache):
        return kernel
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / "make.lock", fcntl.LOCK_EX):
        for left in cache.glob("new-*"):  # Left by a process that was killed. Its children may still write there.
            shutil.rmtree(left, ignore_errors=True)
        if not find_kernel(cache):
            make_kernel(cache)
        kernel = find_kernel(cache)
        assert kernel
        return kernel


def clean() -> int:
    cache = cache_directory()
    if cache.exists():
        with locked(cache / "make.lock", fcntl.LOCK_EX):
            for made in (*cache.glob("kernel-*"), *cache.glob("new-*")):
                shutil.rmtree(made)
            (cache / "make.lock").unlink()
        with contextlib.suppress(OSError):
            cache.rmdir()
    return 0
