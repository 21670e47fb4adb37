"""src/python/erda: the Python module, its clients against its server, and its servers."""

import contextlib
import ctypes
import dataclasses
import gc
import inspect
import os
import pathlib
import pickle
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import typing
import unittest

BUILD = pathlib.Path(os.environ["ERDA_BUILD_DIR"])
os.environ["ERDA_CLIENT_LIBRARY"] = str(BUILD / "lib" / "liberda-client.so.0")
os.environ["ERDA_SERVER_LIBRARY"] = str(BUILD / "lib" / "liberda-server.so.0")
SOURCE = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(SOURCE / "src" / "python"))

import erda  # noqa: E402
from erda import _activity, _native, _native_server  # noqa: E402


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

    def in_child(self, body):
        """Returns the result of the body in a child of a fork, as text. The child ends as a Python program does."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(writing, str(body()).encode())
            except BaseException as error:  # noqa: BLE001: told to the parent
                os.write(writing, repr(error).encode())
            gc.collect()
            os._exit(0)
        os.close(writing)
        self.addCleanup(os.close, reading)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        return os.read(reading, 10_000).decode()

    def test_a_forked_child_is_refused_and_leaves_the_connection_alone(self):
        self.client.put("key", "value")

        def use():
            said = []
            for call in (lambda: self.client.get("key"), self.client.stats, lambda: self.client.put("key", "other")):
                try:
                    call()
                except erda.InvalidArgumentError as error:
                    said.append("before a fork" in str(error))
            self.client.close()
            with erda.Client(self.address) as own:
                return said, own.get("key")

        self.assertEqual(self.in_child(use), "([True, True, True], b'value')")
        # With the lock taken, as by a thread in a call.
        with self.client._lock:
            self.assertEqual(self.in_child(self.client.close), "None")
        self.assertEqual(self.client.get("key"), b"value")
        self.assertEqual(self.client.stats()["reconnects"], 0)
        self.assertEqual(self.client.stats()["failures"], 0)

    def test_a_program_that_forks_ends_without_harm(self):
        program = (f"import os, sys; sys.path.insert(0, {str(SOURCE / 'src' / 'python')!r})\n"
                   f"import erda; client = erda.Client({self.address!r}, timeout=2); client.put('key', 'value')\n"
                   f"server = erda.Server('dram:', 'shm:{self.folder.name}/forked', size=64 << 20); server.start()\n"
                   "child = os.fork()\n"
                   "if child == 0: sys.exit(0)\n"
                   "assert os.waitpid(child, 0)[1] == 0\n"
                   "assert client.get('key') == b'value' and client.stats()['reconnects'] == 0\n"
                   "assert server.stats()['clients'] == 0\n"
                   "server.close()\n")
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)

    def test_invalid_times_are_refused(self):
        for seconds in (float("inf"), float("nan"), 1e300, 2.0**60, -1, 0):
            with self.assertRaises(erda.InvalidArgumentError):
                erda.Client(self.address, timeout=seconds)
            with self.assertRaises(erda.InvalidArgumentError):
                self.client.put("key", "value", ttl=seconds)
        with self.assertRaisesRegex(erda.InvalidArgumentError, r"timeout \(in ms\) must be 1 to \d+, not \d+"):
            erda.Client(self.address, timeout=2.0**40)
        with self.assertRaisesRegex(erda.InvalidArgumentError, r"queue_depth must be 1 to 256, not 257"):
            erda.Client(self.address, queue_depth=257)

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

    def test_puts_many_at_once(self):
        client = self.client
        versions = client.multi_put({"a": "1", b"b": b"x" * 100_000})
        self.assertEqual(client.multi_get_versioned("ab"),
                         [erda.Versioned(b"1", versions[0], None), erda.Versioned(b"x" * 100_000, versions[1], None)])
        self.assertEqual(client.multi_put([]), [])
        versions = client.multi_put(("key", str(i)) for i in range(200))
        self.assertEqual(versions, sorted(set(versions)))
        self.assertEqual(client.get("key"), b"199")
        client.multi_put([("a", "2")], ttl=3600)
        self.assertAlmostEqual(client.ttl("a"), 3600, delta=60)
        with self.assertRaisesRegex(erda.InvalidArgumentError, "key"):
            client.multi_put([("first", "1"), ("", "2"), ("third", "3")])
        self.assertEqual(client.multi_get(["first", "third"]), [b"1", b"3"])
        self.assertRaises(erda.InvalidArgumentError, client.multi_put, [("a", "3")], ttl=0)
        self.assertRaises(TypeError, client.multi_put, [("a", 3)])
        self.assertEqual(client.get("a"), b"2")

    def test_puts_many_on_conditions(self):
        client = self.client
        old = client.put("old", "1")
        first, second, third, fourth = client.multi_put_if(
            [("new", "1", erda.ABSENT), ("new", "2", erda.ABSENT), ("old", "2", old), ("old", "3", old)], ttl=3600)
        self.assertIsNone(second)
        self.assertIsNone(fourth)
        self.assertEqual([(found.value, found.version) for found in client.multi_get_versioned(["new", "old"])],
                         [(b"1", first), (b"2", third)])
        self.assertAlmostEqual(client.ttl("new"), 3600, delta=60)
        self.assertEqual(client.multi_put_if([]), [])
        with self.assertRaisesRegex(TypeError, "b'old' has no version"):
            client.multi_put_if([("new", "4", erda.ABSENT), ("old", "4", None)])
        self.assertEqual(client.get("old"), b"2")
        self.assertRaises(erda.InvalidArgumentError, client.multi_put_if, [("new", "3", 1 << 64)])
        self.assertRaises(erda.InvalidArgumentError, client.multi_put_if, [("", "3", erda.ABSENT)])

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

    def test_scans_a_page_at_a_time(self):
        for i in range(50):
            self.client.put(f"key{i}", "v" * 100)
        keys, cursor, part = [], 0, 0.0
        while cursor is not None:
            page = self.client.scan_page(cursor, keys=1)
            self.assertEqual(page.damaged, 0)
            self.assertGreaterEqual(page.part, part)
            cursor, part = page.next, page.part
            keys += [found.key for found in page.keys]
            self.assertLess(len(page.keys), 50)
        self.assertEqual(part, 1.0)
        self.assertEqual(sorted(keys), sorted(b"key%d" % i for i in range(50)))
        for wrong in ({"cursor": -1}, {"keys": -1}, {"size": 1 << 64}):
            self.assertRaises(erda.InvalidArgumentError, self.client.scan_page, **wrong)

    def test_server_activity_counts_requests(self):
        earlier = self.client.server_activity()
        self.client.put("key", "v")
        self.client.delete("key")
        self.client.delete("key")
        now = self.client.server_activity()
        self.assertEqual(now["put_inline"].outcomes.ok, earlier["put_inline"].outcomes.ok + 1)
        self.assertEqual(now["put_inline"].count, earlier["put_inline"].count + 1)
        self.assertEqual(now["delete"].outcomes.not_found, earlier["delete"].outcomes.not_found + 1)
        self.assertEqual((now["put_inline"].time - earlier["put_inline"].time).count, 1)
        self.assertRaises(KeyError, lambda: now["get"])
        self.assertEqual([(fabric.scheme, fabric.device, fabric.violations) for fabric in now.fabrics], [("shm", "", 0)])
        self.assertEqual(now.fabrics[0].requests, earlier.fabrics[0].requests + 3)

    def test_client_tells_its_stats_and_the_servers_info(self):
        self.client.put("key", "v")
        self.assertGreaterEqual(self.client.stats()["puts"], 1)
        self.assertEqual(self.client.server_info()["durability"], "volatile")
        self.assertGreater(self.client.max_value_bytes(3), self.client.max_value_bytes(1000))
        self.client.clean()

    def test_each_kind_of_failure_has_its_class(self):
        with self.assertRaisesRegex(erda.UnavailableError, "no server listens") as raised:
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
            server.check_health()
            self.assertGreaterEqual(server.growth_limit, 16 * (64 << 20))
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

    def test_a_pool_that_was_not_closed_is_recovered(self):
        pool = str(self.folder / "pool")
        with erda.Server(pool, self.address, size=64 << 20) as server:
            self.assertEqual(server.durability, "process-safe")
            with erda.Client(self.address) as client:
                client.put("key", "value")
            shutil.copy(pool, pool + "2")  # As the server's death would leave it.
        with erda.Server(pool, self.address) as server:
            self.assertIsNone(server.recovery())
        server = erda.Server(pool + "2", self.address)  # Opened, and not started.
        self.assertGreater(server.recovery()["objects"], 0)
        server.start()
        with erda.Client(self.address) as client:
            self.assertEqual(client.get("key"), b"value")
        server.close()

    def test_the_server_uses_its_options(self):
        with self.assertRaisesRegex(erda.InvalidArgumentError, "size"):
            erda.Server("dram:", self.address)
        for wrong in ({"shards": -1}, {"shards": 1 << 32}, {"slot_bytes": 1}, {"flush": "perhaps"}, {"polling": 0},
                      {"shm_access": "all"}, {"pool_writes": "all"}, {"token_file": "a\0b"}, {"spin_us": -1},
                      {"nvm_write_latency_ns": -1}, {"spin_us": 1 << 63}):
            with self.assertRaises(erda.InvalidArgumentError):
                erda.Server("dram:", self.address, size=64 << 20, **wrong)
        with self.assertRaisesRegex(erda.ResourceExhaustedError, "populating it takes"):
            erda.Server("dram:", self.address, size=1 << 42, populate=True)
        (self.folder / "tokens").write_text("0123456789abcdef\n")
        (self.folder / "tokens").chmod(0o600)
        with erda.Server("dram:", self.address, size=64 << 20, segment_size=64 << 10, region_size=1 << 20,
                         token_file=str(self.folder / "tokens")):
            self.assertRaises(erda.PermissionDeniedError, erda.Client, self.address)
            with erda.Client(self.address, token="0123456789abcdef") as client:
                self.assertEqual(client.server_info()["segment_bytes"], str(64 << 10))

    def test_reload_changes_limits_and_the_token_file(self):
        tokens = [letter * 16 for letter in "ab"]
        for token in tokens:
            (self.folder / token).write_text(token + "\n")
            (self.folder / token).chmod(0o600)
        with erda.Server("dram:", self.address, size=64 << 20, token_file=str(self.folder / tokens[0])) as server:
            server.reload(token_file=str(self.folder / tokens[1]))
            self.assertRaises(erda.PermissionDeniedError, erda.Client, self.address, token=tokens[0])
            server.reload(clients_per_token=1)
            with erda.Client(self.address, token=tokens[1]):
                self.assertRaises(erda.ResourceExhaustedError, erda.Client, self.address, token=tokens[1])
                server.reload()
                erda.Client(self.address, token=tokens[1]).close()
            for wrong in ({"requests_per_second": 99}, {"connects_per_second": 1_000_001}, {"clients_per_token": -1}):
                self.assertRaises(erda.InvalidArgumentError, server.reload, **wrong)
            self.assertRaises(erda.InvalidArgumentError, server.reload, token_file=str(self.folder / "none"))
            for wrong in ({"connects_per_second": 1_000_000}, {"requests_per_second": 1_000_000_000}):
                server.reload(**wrong)
        self.assertRaises(ValueError, server.reload)

    def test_the_pool_of_another_is_unavailable(self):
        pool = str(self.folder / "pool")
        with erda.Server(pool, self.address, size=64 << 20):
            self.assertRaises(erda.UnavailableError, erda.Server, pool, self.address + "2")


    def test_server_tells_its_activity_and_fabrics(self):
        with erda.Server("dram:", self.address, size=64 << 20) as server, erda.Client(self.address) as client:
            client.put("key", "value")
            client.delete("key")  # The delete comes after the put, so the put's time is counted when the delete ends.
            self.assertEqual([(fabric.scheme, fabric.device, fabric.flush_method) for fabric in server.fabrics],
                             [("shm", "", "none")])
            activity = server.activity()
            self.assertEqual((activity["put_inline"].outcomes.ok, activity["put_inline"].time.count), (1, 1))
            self.assertEqual([operation.kind for operation in activity.operations],
                             [operation.kind for operation in client.server_activity().operations])
            for wrong in ("operations", "fabrics"):
                with self.assertRaises(dataclasses.FrozenInstanceError):
                    setattr(activity, wrong, ())
            self.assertEqual(pickle.loads(pickle.dumps(activity)), activity)
            self.assertEqual(len({activity, pickle.loads(pickle.dumps(activity))}), 1)
            server.stop()
            self.assertEqual(server.activity()["put_inline"].count, 1)

    def refuse(self):
        """Makes a client that a server with tokens refuses."""
        self.assertRaises(erda.PermissionDeniedError, erda.Client, self.address, token="f" * 16)

    def server_with_token(self, on_event):
        (self.folder / "tokens").write_text("0123456789abcdef\n")
        (self.folder / "tokens").chmod(0o600)
        return erda.Server(str(self.folder / "pool"), self.address, size=64 << 20, on_event=on_event,
                           token_file=str(self.folder / "tokens"))

    def test_tells_of_events_on_its_threads(self):
        told = queue.Queue()
        with self.server_with_token(lambda line: told.put((line, threading.get_ident()))):
            gc.collect()
            self.refuse()
            line, thread = told.get(timeout=60)
            self.assertIn("does not know this token", line)
            self.assertNotEqual(thread, threading.get_ident())

    def test_tells_of_damage(self):
        pool = self.folder / "pool"
        told = queue.Queue()
        with erda.Server(str(pool), self.address, size=64 << 20, scrub_rate=1 << 30, on_damage=told.put), \
                erda.Client(self.address) as client:
            client.put("the key", "a value that is nowhere else in the pool")
            with open(pool, "r+b") as file:
                at = file.read().index(b"a value that is nowhere else")
                file.seek(at)
                file.write(b"A")
            self.assertEqual(told.get(timeout=60), b"the key")
        told = queue.Queue()  # The same damage may have been found again.
        unknown = _native_server._OnDamage(_native_server._damage_teller(told.put))
        unknown(None, None, 0)  # A key that is unknown.
        self.assertIsNone(told.get(timeout=60))

    def test_an_exception_of_a_callback_does_not_end_the_server(self):
        raised = queue.Queue()
        hook, sys.unraisablehook = sys.unraisablehook, lambda unraisable: raised.put(unraisable.exc_type)
        self.addCleanup(setattr, sys, "unraisablehook", hook)

        def fail(line):
            raise (LookupError if raised.empty() else SystemExit)(line)

        with self.server_with_token(fail):
            self.refuse()
            self.assertIs(raised.get(timeout=60), LookupError)
            raised.put(None)
            self.refuse()
            self.assertEqual([raised.get(timeout=60), raised.get(timeout=60)], [None, SystemExit])
            with erda.Client(self.address, token="0123456789abcdef") as client:
                client.put("key", "value")
                self.assertEqual(client.get("key"), b"value")
        for wrong in ({"on_event": "line"}, {"on_damage": 1}):
            self.assertRaises(TypeError, erda.Server, "dram:", self.address, size=64 << 20, **wrong)

    def test_a_callback_may_ask_while_another_thread_stops(self):
        told = queue.Queue()
        begun = threading.Event()

        def ask(line):
            for call in (server.start, server.reload, server.stop, server.close):
                try:
                    call()
                except RuntimeError as error:
                    told.put(str(error))
            begun.set()
            while not server._lock.locked():  # Waits until the stopping thread has its turn.
                time.sleep(0.001)
            told.put(server.stats()["puts"])
            told.put(server.activity()["put_inline"].count)

        def come():  # A refused client waits for the callback.
            with contextlib.suppress(erda.Error):
                erda.Client(self.address, token="f" * 16)

        with self.server_with_token(ask) as server:
            client = threading.Thread(target=come)
            client.start()
            self.assertTrue(begun.wait(60))
            server.close()
        client.join()
        self.assertEqual(told.qsize(), 6)
        for _ in range(4):
            self.assertIn("callback", told.get())
        self.assertEqual((told.get(), told.get()), (0, 0))

    def wait_for_the_pool(self):
        """Opens the pool with a server, once no other has it."""
        for _ in range(600):
            try:
                return erda.Server(str(self.folder / "pool"), self.address)
            except erda.UnavailableError:
                time.sleep(0.05)
        raise AssertionError("the pool is still open")

    def test_a_callback_may_be_the_last_that_knows_the_server(self):
        knows = []
        dropped = threading.Event()

        def drop(_line):
            knows.clear()
            dropped.set()

        knows.append(self.server_with_token(drop))
        knows[0].start()
        self.refuse()
        self.assertTrue(dropped.wait(60))
        with self.wait_for_the_pool() as server:
            self.assertIsNone(server.recovery())

    def test_is_closed_when_the_interpreter_ends(self):
        # The variable of a daemon thread lives to the end of the process.
        program = f"""
import sys, threading, time
sys.path.insert(0, {str(SOURCE / 'src' / 'python')!r})
import erda
server = erda.Server({str(self.folder / 'pool')!r}, {self.address!r}, size=64 << 20, on_event=print)
server.start()
threading.Thread(target=lambda kept: time.sleep(1000), args=[server], daemon=True).start()
"""
        subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        with self.wait_for_the_pool() as server:
            self.assertIsNone(server.recovery())


class Histograms(unittest.TestCase):
    def histogram(self, counts, total=0.0):
        bounds = [256e-9 * (1 << i) for i in range(len(counts) - 1)]
        return erda.LatencyHistogram(tuple(counts), (*bounds, float("inf")), total)

    def test_quantiles_are_those_of_the_library(self):
        quantile = _native._library.erda_client_quantile_ns
        quantile.argtypes = [ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t, ctypes.c_double]
        quantile.restype = ctypes.c_uint64
        for n in range(25):
            counts = [(1 + i * 7 % 5) if i < n else 0 for i in range(24)]
            histogram = self.histogram(counts)
            for share in (0, 0.001, 0.25, 0.5, 0.9, 0.999, 1):
                expected = quantile((ctypes.c_uint64 * 24)(*counts), 24, share)
                self.assertLess(abs(histogram.quantile(share) * 1e9 - expected), 1.5, (n, share))
        for share in (-0.1, 1.1, float("nan")):
            self.assertRaises(ValueError, histogram.quantile, share)

    def test_are_added_and_subtracted(self):
        a, b = self.histogram([1, 2, 3], 0.5), self.histogram([4, 5, 6], 0.25)
        self.assertEqual(a + b, self.histogram([5, 7, 9], 0.75))
        self.assertEqual(a + b - b, a)
        self.assertEqual((a + b).count, 21)
        self.assertRaises(ValueError, lambda: a + self.histogram([1, 2]))
        self.assertRaises(TypeError, lambda: a - 1)


class Names(unittest.TestCase):
    CLASSES = (erda.Client, erda.ScanPage, erda.ScannedKey, erda.Server, erda.ServerFabric, erda.Versioned)

    def test_classes_have_the_names_that_programs_use(self):
        for of in self.CLASSES:
            self.assertEqual(repr(of), f"<class 'erda.{of.__name__}'>")
            self.assertEqual(pickle.dumps(of, 0), f"cerda\n{of.__name__}\np0\n.".encode())
        page = erda.ScanPage([erda.ScannedKey(b"k", b"v", 1, 2.0)], None, 1.0, 0)
        for told in (page, erda.Versioned(b"v", 1, None), erda.ServerFabric("shm", "", "none", 0.5)):
            copy = pickle.loads(pickle.dumps(told))
            self.assertEqual((copy, type(copy)), (told, type(told)))

    def test_annotations_can_be_evaluated(self):
        hints = typing.get_type_hints(erda.ScanPage)
        self.assertEqual((hints["keys"], hints["next"]), (list[erda.ScannedKey], typing.Optional[int]))
        for of in self.CLASSES:
            typing.get_type_hints(of)
        self.assertEqual(typing.get_type_hints(erda.Client.get_versioned)["return"], typing.Optional[erda.Versioned])


class Structures(unittest.TestCase):
    HEADER = re.sub(r"//.*", "", (SOURCE / "include" / "erda" / "erda.h").read_text())

    def test_each_option_is_one(self):
        for structure, of, others in ((_native._ClientOptions, erda.Client, {"address"}),
                                      (_native_server._Options, erda.Server, set())):
            names = {"pool_size": "size", "timeout_ms": "timeout"}
            fields = {names.get(field[0], field[0]) for field in structure._fields_[1:]}
            # wait_for_room is for asynchronous calls, which the module does not have.
            fields -= {"listen_count", "on_damage_user", "on_event_user", "wait_for_room"}
            self.assertEqual(set(inspect.signature(of).parameters), fields | others)

    def test_each_function_is_called_or_left_out_on_purpose(self):
        functions = set(re.findall(r"\b(erda_(?:client|server)_\w+)\([^;]*\) ERDA_NOEXCEPT", self.HEADER))
        self.assertGreater(len(functions), 40)
        sources = "".join(path.read_text() for path in (SOURCE / "src" / "python" / "erda").glob("*.py"))
        called = set(re.findall(r"_library\.(erda_\w+)\(", sources))
        left_out = {name for name in functions
                    if re.search(r"_async$|_buffer|_client_(get|poll|drain|wait|arm|descriptor)$|_code_name$|_quantile_ns$", name)}
        self.assertEqual(called, functions - left_out)

    def test_the_outcomes_are_the_codes(self):
        name = _native._library.erda_client_code_name
        name.restype = ctypes.c_char_p
        names = [name(code).decode().replace(" ", "_") for code in range(len(erda.Outcomes._fields) + 1)]
        self.assertEqual(names, [*erda.Outcomes._fields, "unknown"])

    def test_are_those_of_the_header(self):
        structures = {
            "client_options": _native._ClientOptions, "put_options": _native._PutOptions,
            "delete_options": _native._DeleteOptions, "scan_options": _native._ScanOptions, "bytes": _native._Bytes,
            "result": _native._Result, "scanned_key": _native._ScannedKey, "scan_page": _native._ScanPage,
            "client_stats": _native._Stats, "server_info": _native._ServerInfo,
            "server_options": _native_server._Options, "server_limits": _native_server._Limits, "server_stats": _native_server._Stats,
            "recovery_report": _native_server._Report, "server_addresses": _native_server._Addresses,
            "server_fabric": _native_server._Fabric, "server_fabrics": _native_server._Fabrics,
            "latency_histogram": _activity.LatencyHistogramInC, "operation_stats": _activity.OperationStatsInC,
            "fabric_stats": _activity.FabricStatsInC, "activity": _activity.ActivityInC,
        }
        self.assertEqual(set(re.findall(r"typedef struct erda_(\w+) {", self.HEADER)), set(structures))
        for name, structure in structures.items():
            body = re.search(rf"typedef struct erda_{name} {{([^}}]*)}} erda_{name};", self.HEADER).group(1)
            fields = [re.split(r"[\s*]+", field.strip()) for field in body.split(";") if field.strip()]
            self.assertEqual([field[-1] for field in fields], [field[0] for field in structure._fields_], name)
            sizes = {"uint32_t": 4, "int": 4, "erda_code": 4, "erda_bytes": 16}
            for field in fields:
                kind = field[0] if field[0] != "const" else "pointer"
                self.assertEqual(getattr(structure, field[-1]).size, sizes.get(kind, 8), f"{name}.{field[-1]}")


if __name__ == "__main__":
    unittest.main()
