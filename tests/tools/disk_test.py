"""The disk of the lab keeps what was flushed, and a power cut takes the rest of its cache."""

import socket
import struct
import tempfile
import threading
import unittest
from pathlib import Path

from lab.common import LabError
from lab.disk import SECTOR, Disk

MIB = 1 << 20
READ, WRITE, DISCONNECT, FLUSH, TRIM = 0, 1, 2, 3, 4
FUA = 1


class Client:
    """The machine's part of NBD, up to the end of the power."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.connection.settimeout(20)
        assert self.take(16) == b"NBDMAGICIHAVEOPT"
        (self.server_flags,) = struct.unpack(">H", self.take(2))
        connection.sendall(struct.pack(">I", 3))
        self.cookie = 0

    def take(self, size: int) -> bytes:
        taken = b""
        while len(taken) < size:
            more = self.connection.recv(size - len(taken))
            if not more:
                raise ConnectionResetError
            taken += more
        return taken

    def option(self, option: int, data: bytes = b"") -> tuple[int, bytes]:
        """Returns the kind and the data of the first reply."""
        self.connection.sendall(b"IHAVEOPT" + struct.pack(">II", option, len(data)) + data)
        return self.reply(option)

    def reply(self, option: int) -> tuple[int, bytes]:
        magic, replied, kind, size = struct.unpack(">QIII", self.take(20))
        assert (magic, replied) == (0x3E889045565A9, option)
        return kind, self.take(size)

    def go(self) -> bytes:
        kind, export = self.option(7, struct.pack(">I", 0) + struct.pack(">H", 0))
        assert kind == 3
        while kind == 3:
            kind, _ = self.reply(7)
        assert kind == 1
        return export

    def ask(self, kind: int, offset: int = 0, size: int = 0, data: bytes = b"", flags: int = 0) -> None:
        self.cookie += 1
        self.connection.sendall(struct.pack(">IHHQQI", 0x25609513, flags, kind, self.cookie, offset, size or len(data)) + data)

    def call(self, kind: int, offset: int = 0, size: int = 0, data: bytes = b"", flags: int = 0) -> tuple[int, bytes]:
        """Returns the error and the bytes read."""
        self.ask(kind, offset, size, data, flags)
        magic, error, cookie = struct.unpack(">IIQ", self.take(16))
        assert (magic, cookie) == (0x67446698, self.cookie)
        return error, self.take(size) if kind == READ and not error else b""


class DiskTest(unittest.TestCase):
    def setUp(self):
        self.disk = Disk(MIB, seed=1)

    def connect(self) -> Client:
        client = Client(self.disk.connect())
        self.addCleanup(client.connection.close)
        client.go()
        return client

    def cut(self, client: Client) -> str:
        client.connection.close()
        return self.disk.cut_power()

    def test_handshake_names_the_size_and_what_the_disk_can(self):
        client = Client(self.disk.connect())
        self.addCleanup(client.connection.close)
        self.assertEqual(client.server_flags, 3)
        self.assertEqual(client.option(8), (1 << 31 | 1, b""))  # structured replies
        export = client.go()
        self.assertEqual(struct.unpack(">HQH", export), (0, MIB, 1 | 4 | 8))
        self.assertEqual(client.call(READ, MIB - SECTOR, SECTOR), (0, bytes(SECTOR)))

    def test_older_handshake_works_too(self):
        client = Client(self.disk.connect())
        self.addCleanup(client.connection.close)
        client.connection.sendall(b"IHAVEOPT" + struct.pack(">II", 1, 0))
        self.assertEqual(struct.unpack(">QH", client.take(10)), (MIB, 1 | 4 | 8))
        self.assertEqual(client.call(READ, 0, SECTOR), (0, bytes(SECTOR)))

    def test_requests_outside_of_the_disk_and_unknown_ones_are_refused(self):
        client = self.connect()
        self.assertEqual(client.call(READ, MIB, SECTOR)[0], 22)
        self.assertEqual(client.call(WRITE, MIB - SECTOR, data=b"x" * 2 * SECTOR)[0], 22)
        self.assertEqual(client.call(WRITE, 1, data=b"x" * SECTOR)[0], 22)
        self.assertEqual(client.call(TRIM, 0, SECTOR)[0], 22)
        self.assertEqual(client.call(READ, 0, MIB), (0, bytes(MIB)))

    def test_power_cut_takes_only_what_was_not_flushed(self):
        for kind, flags in ((FLUSH, 0), (WRITE, FUA)):
            for _ in range(20):
                client = self.connect()
                client.call(WRITE, 0, data=b"old" + bytes(SECTOR - 3))
                client.call(WRITE, 8 * SECTOR, data=b"f" * SECTOR)
                client.call(kind, SECTOR if kind == WRITE else 0, data=b"g" * SECTOR if kind == WRITE else b"", flags=flags)
                self.assertEqual(self.disk.unflushed, set())
                client.call(WRITE, 0, data=b"new" + bytes(SECTOR - 3))
                self.assertEqual(client.call(READ, 0, SECTOR)[1][:3], b"new", "the machine reads what it has written")
                self.cut(client)
                client = self.connect()
                self.assertIn(client.call(READ, 0, SECTOR)[1][:3], (b"old", b"new"))
                self.assertEqual(client.call(READ, 8 * SECTOR, SECTOR)[1], b"f" * SECTOR)
                self.cut(client)

    def test_power_cuts_keep_none_some_and_lose_most(self):
        kept = []
        for _ in range(40):
            client = self.connect()
            client.call(WRITE, 0, data=bytes(100 * SECTOR))
            client.call(FLUSH)
            client.call(WRITE, 0, data=b"x" * 100 * SECTOR)
            told = self.cut(client)
            found = self.disk.read(0, 100 * SECTOR)
            sectors = [found[at : at + SECTOR] for at in range(0, len(found), SECTOR)]
            self.assertTrue(all(sector in (bytes(SECTOR), b"x" * SECTOR) for sector in sectors))
            kept.append(sum(sector == b"x" * SECTOR for sector in sectors))
            self.assertIn(f"it lost {100 - kept[-1]} of 100 sectors", told)
            self.assertIn("had got 200 sectors and 1 flushes", told)
        self.assertGreater(kept.count(0), 5)
        self.assertGreater(len(set(kept)), 5)

    def test_cut_comes_before_a_request_which_gets_no_answer(self):
        held = set()
        for _ in range(20):
            client = self.connect()
            waiting = threading.Thread(target=self.disk.await_cut, args=(20,))
            waiting.start()
            answered = threading.Event()

            def write(client=client, answered=answered):
                with self.assertRaises(ConnectionError):
                    while True:
                        client.call(WRITE, 0, data=b"x" * SECTOR)
                        client.call(FLUSH)
                answered.set()

            writer = threading.Thread(target=write)
            writer.start()
            waiting.join()
            self.assertFalse(answered.is_set())
            held.add(len(self.disk.unflushed))
            self.disk.cut_power()
            writer.join()
        self.assertEqual(held, {0, 1}, "before a write, and before a flush")

    def test_disk_that_lies_loses_what_it_says_it_has_flushed(self):
        client = self.connect()
        client.call(WRITE, 0, data=b"a" * SECTOR)
        client.call(FLUSH)
        self.disk.lies = True
        client.call(WRITE, 0, data=b"b" * SECTOR)
        self.assertEqual(client.call(FLUSH), (0, b""))
        self.assertTrue(self.cut(client).endswith(", and lied"))
        client = self.connect()
        self.assertEqual(client.call(READ, 0, SECTOR)[1], b"a" * SECTOR)
        client.call(WRITE, 0, data=b"c" * SECTOR)
        client.call(FLUSH)
        self.cut(client)
        self.assertEqual(self.disk.read(0, SECTOR), b"c" * SECTOR, "it is honest again")

    def test_file_has_what_was_flushed(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "disk")
            self.disk = Disk(MIB, seed=1, file=file)
            client = self.connect()
            client.call(WRITE, 0, data=b"a" * SECTOR)
            client.call(FLUSH)
            client.call(WRITE, 0, data=b"b" * SECTOR)
            self.assertEqual(file.read_bytes(), b"a" * SECTOR + bytes(MIB - SECTOR))
            self.assertEqual(Disk(MIB, seed=1, file=file).read(0, SECTOR), b"a" * SECTOR)
            with self.assertRaises(LabError):
                Disk(2 * MIB, seed=1, file=file)
        for size in (MIB + 1, 512):
            with self.assertRaises(LabError):
                Disk(size, seed=1)


if __name__ == "__main__":
    unittest.main()
