"""The server's part of NBD, the network block device: as much of it as qemu needs for a disk.

https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md
"""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import Protocol

# The handshake.
GREETING = b"NBDMAGIC"
OPTION = b"IHAVEOPT"
FIXED_NEWSTYLE, NO_ZEROES = 1, 2
OPT_EXPORT_NAME, OPT_ABORT, OPT_INFO, OPT_GO = 1, 2, 6, 7
REPLY = 0x3E889045565A9
REP_ACK, REP_INFO, REP_UNSUPPORTED = 1, 3, 1 << 31 | 1
INFO_EXPORT, INFO_BLOCK_SIZE = 0, 3

# Then requests.
HAS_FLAGS, SEND_FLUSH, SEND_FUA = 1, 4, 8
REQUEST, SIMPLE_REPLY = 0x25609513, 0x67446698
READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3
FUA = 1
INVALID = 22
BYTES_MAX = 32 << 20


class Device(Protocol):
    size: int

    def read(self, offset: int, size: int) -> bytes: ...

    def write(self, offset: int, data: bytes) -> None: ...

    def flush(self) -> None: ...


class _Gone(Exception):
    """The other end has closed the connection, or does not speak NBD."""


def serve(connection: socket.socket, device: Device, block: int) -> None:
    """Serves the device, one request after the other, until the other end has closed the connection."""
    with connection, contextlib.suppress(_Gone, ConnectionError):
        if _greet(connection, device, block):
            while _answer(connection, device, block):
                pass


def _take(connection: socket.socket, size: int) -> bytes:
    taken = bytearray()
    while len(taken) < size:
        if not (more := connection.recv(size - len(taken))):
            raise _Gone
        taken += more
    return bytes(taken)


def _greet(connection: socket.socket, device: Device, block: int) -> bool:
    """Returns whether requests follow."""
    export = struct.pack(">QH", device.size, HAS_FLAGS | SEND_FLUSH | SEND_FUA)
    connection.sendall(GREETING + OPTION + struct.pack(">H", FIXED_NEWSTYLE | NO_ZEROES))
    (flags,) = struct.unpack(">I", _take(connection, 4))
    while True:
        magic, option, size = struct.unpack(">8sII", _take(connection, 16))
        if magic != OPTION or size > 1 << 16:
            raise _Gone
        _take(connection, size)  # There is one export, whatever its name.

        def reply(kind: int, data: bytes = b"", option: int = option) -> None:
            connection.sendall(struct.pack(">QIII", REPLY, option, kind, len(data)) + data)

        if option == OPT_EXPORT_NAME:
            connection.sendall(export + (b"" if flags & NO_ZEROES else bytes(124)))
            return True
        if option in (OPT_INFO, OPT_GO):
            reply(REP_INFO, struct.pack(">H", INFO_EXPORT) + export)
            reply(REP_INFO, struct.pack(">HIII", INFO_BLOCK_SIZE, block, 4096, BYTES_MAX))
            reply(REP_ACK)
            if option == OPT_GO:
                return True
        elif option == OPT_ABORT:
            reply(REP_ACK)
            return False
        else:
            reply(REP_UNSUPPORTED)


def _answer(connection: socket.socket, device: Device, block: int) -> bool:
    """Returns whether more requests follow."""
    magic, flags, kind, cookie, offset, size = struct.unpack(">IHHQQI", _take(connection, 28))
    if magic != REQUEST or kind == DISCONNECT or size > BYTES_MAX:
        return False
    data = _take(connection, size) if kind == WRITE else b""
    error = 0
    if kind == FLUSH:
        device.flush()
    elif kind not in (READ, WRITE) or offset % block or size % block or offset + size > device.size:
        error = INVALID
    elif kind == WRITE:
        device.write(offset, data)
        if flags & FUA:
            device.flush()
    answer = device.read(offset, size) if kind == READ and not error else b""
    connection.sendall(struct.pack(">IIQ", SIMPLE_REPLY, error, cookie) + answer)
    return True
