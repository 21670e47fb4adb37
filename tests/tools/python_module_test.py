"""src/python/erda: the Python module, against a server of its own."""

import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

BUILD = pathlib.Path(os.environ["ERDA_BUILD_DIR"])
os.environ["ERDA_CLIENT_LIBRARY"] = str(BUILD / "lib" / "liberda-client.so.0")
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "src" / "python"))

import erda  # noqa: E402


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


if __name__ == "__main__":
    unittest.main()
