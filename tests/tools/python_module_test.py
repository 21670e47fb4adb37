"""src/python/erda: the Python module, its clients against a server of its own, and its servers."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

BUILD = pathlib.Path(os.environ["ERDA_BUILD_DIR"])
os.environ["ERDA_CLIENT_LIBRARY"] = str(BUILD / "lib" / "liberda-client.so.0")
os.environ["ERDA_SERVER_LIBRARY"] = str(BUILD / "lib" / "liberda-server.so.0")
SOURCE = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(SOURCE / "src" / "python"))

import erda  # noqa: E402
from erda import _native, _native_server  # noqa: E402


class Module(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.address = f"shm:{cls.folder.name}/socket"
        cls.server = subprocess.Popen([BUILD / "bin" / "erda-server", "--pool", "dram:", "--size", "64M", "--listen",
                                       cls.address], stdout=subprocess.DEVNULL)
        cls.addClassCleanup(cls.server.wait)
        cls.addClassCleanup(cls.server.terminate)
        for _ in range(600):
            try:
                erda.Client(cls.address).close()
                return
            except erda.UnavailableError:
                time.sleep(0.05)
        raise AssertionError("the server does not listen")

    def setUp(self):
        self.client = erda.Client(self.address)
        self.addCleanup(self.client.close)
        for key in list(self.client.scan(values=False)):
            self.client.delete(key.key)

    def test_puts_gets_and_deletes(self):
        client = self.client
        self.assertGreater(client.put("key", "ä"), 0)
        self.assertEqual(client.get(b"key"), "ä".encode())
        client.put(bytearray(b"\0k"), memoryview(b"\0v\0"))
        self.assertEqual(client.get(b"\0k"), b"\0v\0")
        client.put("empty", "")
        self.assertEqual(client.get("empty"), b"")
        self.assertIs(client.delete("key"), True)
        self.assertIs(client.delete("key"), False)
        self.assertIsNone(client.get("key"))
        self.assertIsNone(client.get_versioned("key"))
        for wrong in (1, None, 1.5, ["k"]):
            self.assertRaises(TypeError, client.get, wrong)
            self.assertRaises(TypeError, client.put, "key", wrong)

    def test_is_like_a_dict(self):
        client = self.client
        client["key"] = "value"
        self.assertEqual(client["key"], b"value")
        self.assertIn("key", client)
        del client["key"]
        self.assertNotIn("key", client)
        self.assertRaises(KeyError, lambda: client["key"])
        with self.assertRaises(KeyError):
            del client["key"]

    def test_gets_many_at_once(self):
        self.client.put("a", "1")
        self.client.put("b", b"x" * 100_000)
        self.assertEqual(self.client.multi_get(["b", "none", b"a"]), [b"x" * 100_000, None, b"1"])
        self.assertEqual(self.client.multi_get([]), [])
        self.assertEqual(self.client.multi_get(str(i) for i in range(200)), [None] * 200)
        self.assertRaises(erda.InvalidArgumentError, self.client.multi_get, ["a", ""])

    def test_puts_and_deletes_on_conditions(self):
        client = self.client
        first = client.put_if("key", "1", erda.ABSENT)
        with self.assertRaisesRegex(erda.ConflictError, "version"):
            client.put_if("key", "2", erda.ABSENT)
        second = client.put_if("key", "2", first)
        self.assertEqual(client.get_versioned("key"), erda.Versioned(b"2", second, None))
        self.assertRaises(erda.ConflictError, client.delete_if, "key", first)
        client.delete_if("key", second)
        self.assertRaises(erda.ConflictError, client.delete_if, "key", second)
        for version in (-1, 1 << 64):
            self.assertRaises(erda.InvalidArgumentError, client.put_if, "key", "3", version)

    def test_increments(self):
        self.assertEqual(self.client.incr("n"), 1)
        self.assertEqual(self.client.incr("n", -5), -4)
        self.assertEqual(self.client.get("n"), (-4).to_bytes(8, "little", signed=True))
        self.assertRaises(erda.InvalidArgumentError, self.client.incr, "n", 1 << 63)
        self.client.put("text", "text")
        self.assertRaises(ValueError, self.client.incr, "text")

    def test_values_expire(self):
        self.client.put("key", "v", ttl=3600)
        left = self.client.ttl("key")
        self.assertTrue(0 < left <= 3660, left)
        self.client.put("key", "v")
        self.assertIsNone(self.client.ttl("key"))
        self.assertRaises(KeyError, self.client.ttl, "none")
        self.client.put("key", "v", ttl=0.001)
        while self.client.get("key") is not None:
            pass
        for ttl in (0, -1):
            self.assertRaises(erda.InvalidArgumentError, self.client.put, "key", "v", ttl=ttl)

    def test_scans_all_pages(self):
        stored = {b"key%d" % i: b"v" * i for i in range(2500)}
        for key, value in stored.items():
            self.client.put(key, value)
        scan = list(self.client.scan())
        self.assertEqual({key.key: key.value for key in scan}, stored)
        self.assertEqual(len(scan), len(stored))
        self.assertTrue(all(key.version > 0 and key.expires is None for key in scan))
        self.assertEqual({key.value for key in self.client.scan(values=False)}, {b""})

    def test_tells_of_itself_and_of_the_server(self):
        self.client.put("key", "v")
        self.assertGreaterEqual(self.client.stats()["puts"], 1)
        self.assertEqual(self.client.server_info()["durability"], "volatile")
        self.assertGreater(self.client.max_value_bytes(3), self.client.max_value_bytes(1000))
        self.client.clean()

    def test_each_kind_of_failure_has_its_class(self):
        with self.assertRaisesRegex(erda.UnavailableError, "nobody listens") as raised:
            erda.Client(f"shm:{self.folder.name}/nobody", timeout=0.05)
        self.assertIsInstance(raised.exception, ConnectionError)
        self.assertTrue(issubclass(erda.TimeoutError, TimeoutError))
        for wrong in ({"ack": "perhaps"}, {"queue_depth": 0}, {"queue_depth": -1}, {"timeout": 0}, {"token": "a\0b"}):
            with self.assertRaises(erda.InvalidArgumentError):
                erda.Client(self.address, **wrong)
        with self.assertRaisesRegex(erda.InvalidArgumentError, "key"):
            self.client.get("k" * 1025)

    def test_a_closed_client_says_so(self):
        with erda.Client(self.address, ack="placed", put_path="inline", polling="sleep", cache_entries=0) as client:
            client.put("key", "v")
        client.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            client.get("key")

    def test_threads_take_turns(self):
        def add():
            for _ in range(200):
                self.client.incr("n")

        threads = [threading.Thread(target=add) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.client.incr("n", 0), 800)


class Servers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.address = f"shm:{self.folder}/socket"

    def test_serves_in_this_process(self):
        with erda.Server("dram:", self.address, size=64 << 20, shards=2) as server:
            self.assertEqual(server.addresses, [self.address])
            self.assertEqual(server.durability, "volatile")
            self.assertIsNone(server.recovery())
            with erda.Client(self.address) as client:
                client.put("key", "value")
                self.assertEqual(client.get("key"), b"value")
            stats = server.stats()
            self.assertEqual((stats["puts"], stats["keys"], stats["shards"]), (1, 1, 2))
            server.stop()
            self.assertEqual(server.stats()["puts"], 1)
            self.assertRaises(erda.InvalidArgumentError, server.start)
        server.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            server.stats()

    def test_several_addresses_and_servers(self):
        addresses = [f"shm:{self.folder}/{name}" for name in "abc"]
        with erda.Server("dram:", addresses[:2], size=64 << 20) as first, \
                erda.Server("dram:", addresses[2], size=64 << 20) as second:
            self.assertEqual(first.addresses + second.addresses, addresses)
            for number, address in enumerate(addresses):
                with erda.Client(address) as client:
                    client.put(str(number), "v")
            self.assertEqual((first.stats()["keys"], second.stats()["keys"]), (2, 1))

    def test_what_was_not_closed_is_recovered(self):
        pool = str(self.folder / "pool")
        with erda.Server(pool, self.address, size=64 << 20) as server:
            self.assertEqual(server.durability, "process-safe")
            with erda.Client(self.address) as client:
                client.put("key", "value")
            shutil.copy(pool, pool + "2")  # as its death would leave it
        with erda.Server(pool, self.address) as server:
            self.assertIsNone(server.recovery())
        server = erda.Server(pool + "2", self.address)  # opened, and not started
        self.assertGreater(server.recovery()["objects"], 0)
        server.start()
        with erda.Client(self.address) as client:
            self.assertEqual(client.get("key"), b"value")
        server.close()

    def test_options_count(self):
        with self.assertRaisesRegex(erda.InvalidArgumentError, "size"):
            erda.Server("dram:", self.address)
        for wrong in ({"shards": -1}, {"shards": 1 << 32}, {"slot_bytes": 1}, {"flush": "perhaps"}, {"polling": 0},
                      {"shm_access": "all"}, {"pool_writes": "all"}, {"token_file": "a\0b"}):
            with self.assertRaises(erda.InvalidArgumentError):
                erda.Server("dram:", self.address, size=64 << 20, **wrong)
        (self.folder / "tokens").write_text("0123456789abcdef\n")
        (self.folder / "tokens").chmod(0o600)
        with erda.Server("dram:", self.address, size=64 << 20, segment_size=64 << 10, region_size=1 << 20,
                         token_file=str(self.folder / "tokens")):
            self.assertRaises(erda.PermissionDeniedError, erda.Client, self.address)
            with erda.Client(self.address, token="0123456789abcdef") as client:
                self.assertEqual(client.server_info()["segment_bytes"], str(64 << 10))

    def test_the_pool_of_another_is_unavailable(self):
        pool = str(self.folder / "pool")
        with erda.Server(pool, self.address, size=64 << 20):
            self.assertRaises(erda.UnavailableError, erda.Server, pool, self.address + "2")


class Structures(unittest.TestCase):
    def test_are_those_of_the_header(self):
        header = re.sub(r"//.*", "", (SOURCE / "include" / "erda" / "erda.h").read_text())
        for name, structure in {
            "client_options": _native._ClientOptions, "put_options": _native._PutOptions,
            "delete_options": _native._DeleteOptions, "scan_options": _native._ScanOptions, "bytes": _native._Bytes,
            "result": _native._Result, "scanned_key": _native._ScannedKey, "scan_page": _native._ScanPage,
            "client_stats": _native._Stats, "server_info": _native._ServerInfo,
            "server_options": _native_server._Options, "server_stats": _native_server._Stats,
            "recovery_report": _native_server._Report, "server_addresses": _native_server._Addresses,
        }.items():
            body = re.search(rf"typedef struct erda_{name} {{([^}}]*)}} erda_{name};", header).group(1)
            fields = [re.split(r"[\s*]+", field.strip()) for field in body.split(";") if field.strip()]
            self.assertEqual([field[-1] for field in fields], [field[0] for field in structure._fields_], name)
            sizes = {"uint32_t": 4, "int": 4, "erda_code": 4, "erda_bytes": 16}
            for field in fields:
                kind = field[0] if field[0] != "const" else "pointer"
                self.assertEqual(getattr(structure, field[-1]).size, sizes.get(kind, 8), f"{name}.{field[-1]}")


if __name__ == "__main__":
    unittest.main()
