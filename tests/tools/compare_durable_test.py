"""tools/compare --preset durable: its turns, its commands, and its output for made-up figures."""

import json
import pathlib
import re
import types
import unittest
from unittest import mock

import origins
from balance import unbalanced
from comparison import durable_measure, durable_output, stores, systems
from comparison.durable_measure import Disk, Measured, Plan, cells_of
from measuring.programs import ToolError

# Puts in a second of one client.
RATES = {"erda_journal": 8000, "redis_always": 2000, "rocksdb_synced": 5000, "lmdb_synced": 1000, "lmdb_writemap_synced": 1600}


def plan(clients=(1, 16), depths=(1, 16), rounds=3):
    return Plan(build=pathlib.Path("/b"), folder=pathlib.Path("/f"), stores=stores.DURABLE, size=1024, clients=clients, depths=depths,
                rounds=rounds, seconds=0.5, records=1000)


def figures(of: Plan, deep=1) -> durable_output.Figures:
    """The second round is the median. `deep` is how many times as fast the other stores are with several in flight."""
    measured = []
    for cell in cells_of(of):
        entry = Measured(cell, f"ycsb <{cell.store.name}>")
        rate = RATES[cell.store.name] * cell.clients
        if cell.depth > 1 and cell.store is not stores.ERDA_JOURNAL:
            rate *= deep
        for factor in (0.1, 1, 10):
            entry.runs.append({"operations": 1, "ops_per_second": rate * factor, "mean_us": 1e6 / rate, "p50_us": 1, "p99_us": 2})
        measured.append(entry)
    times = {"count": 1, "mean_us": 100, "median_us": 90, "p99_us": 200}
    return durable_output.Figures(of, measured, Disk([
        {"flushed": times, "durable": times, "sequential": times, "bytes_per_second": 128_000 * 1024 * factor} for factor in (3, 1, 0.1)
    ]))


def origin(file_system="ext4"):
    return origins.origin({"LMDB": "0.9 <&>"}, {"erda_journal": "erda-server"}, file_system)


class Runs(unittest.TestCase):
    def test_stores_take_turns_and_another_one_begins_each_round(self):
        measured = [Measured(cell) for cell in cells_of(plan())]
        for number in range(3):
            turns = [entry.cell for entry in durable_measure._turns(measured, number)]
            self.assertCountEqual(turns, cells_of(plan()))
            for place in range(0, len(turns), len(stores.DURABLE)):
                together = turns[place:place + len(stores.DURABLE)]
                self.assertEqual(len({(cell.clients, cell.depth) for cell in together}), 1)
                self.assertIs(together[0].store, stores.DURABLE[number])

    def test_command_has_the_clients_and_their_depth(self):
        cell = next(cell for cell in cells_of(plan()) if (cell.clients, cell.depth) == (16, 16))
        command = durable_measure.command_of(plan(), cell, "address", 1000)
        for name, value in (("--threads", "16"), ("--depth", "16"), ("--operations", "3000"), ("--seconds", "0.5"),
                            ("--workload", "update")):
            self.assertEqual(command[command.index(name) + 1], value)

    def test_every_store_says_that_it_survives_a_power_cut(self):
        for store in stores.DURABLE:
            self.assertIn("Survives a power cut", store.promise)
            self.assertNotIn("nosync", store.address)
        self.assertIn(",sync", stores.ROCKSDB_SYNCED.address)

    def test_redis_that_does_not_sync_is_refused(self):
        server = types.SimpleNamespace(address="redis:/s")
        with mock.patch.object(systems, "ask", return_value=b"*2\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n"):
            systems.require_always(server)
        with mock.patch.object(systems, "ask", return_value=b"*2\r\n$11\r\nappendfsync\r\n$8\r\neverysec\r\n"):
            with self.assertRaisesRegex(ToolError, "everysec"):
                systems.require_always(server)


class Output(unittest.TestCase):
    def test_ratios_are_of_the_medians_with_most_clients(self):
        found = {ratio.name: ratio for ratio in figures(plan()).ratios()}
        self.assertEqual(set(found), {"redis_always_1", "redis_always_16", "rocksdb_synced_1", "lmdb_synced_1",
                                      "lmdb_writemap_synced_1", "disk_share"})
        for name, value, target, reached in (("redis_always_1", 4, 3, True), ("redis_always_16", 4, 2, True),
                                             ("rocksdb_synced_1", 1.6, 2, False), ("lmdb_synced_1", 8, 5, True),
                                             ("disk_share", 1, 0.8, True)):
            self.assertAlmostEqual(found[name].value, value, msg=name)
            self.assertEqual((found[name].target, found[name].reached), (target, reached), name)

    def test_throughput_is_compared_with_most_in_flight(self):
        found = {ratio.name: ratio for ratio in figures(plan(), deep=4).ratios()}
        self.assertAlmostEqual(found["redis_always_1"].value, 4)
        self.assertAlmostEqual(found["redis_always_16"].value, 1)
        self.assertFalse(found["redis_always_16"].reached)

    def test_text_has_each_store_its_promise_and_the_disk(self):
        text = durable_output.to_text(figures(plan()), origin())
        for store in stores.DURABLE:
            self.assertIn(f"{store.title}: {store.promise}", text)
        self.assertIn("100 µs in the mean for 4 KiB", text)
        self.assertIn("125 MiB/s", text)
        self.assertIn("puts per second, Erda / RocksDB, synced, 16 x 1; at least 2: not reached", text)
        self.assertIn("tmpfs, which is memory", durable_output.to_text(figures(plan()), origin("tmpfs")))

    def test_json_has_all_figures(self):
        found = json.loads(json.dumps(durable_output.to_json(figures(plan()), origin())))
        self.assertEqual(len(found["results"]), 4 * len(stores.DURABLE))
        self.assertEqual(found["results"][0]["median"]["ops_per_second"], 8000)
        self.assertEqual(len(found["disk"]["rounds"]), 3)

    def test_page_is_whole_and_escaped(self):
        page = durable_output.to_page(figures(plan()), origin())
        self.assertEqual(unbalanced(page), [])
        self.assertIsNone(re.search(r"(src|href)=|@import|url\(", page))
        self.assertIn("0.9 &lt;&amp;&gt;", page)
        self.assertIn("ycsb &lt;erda_journal&gt;", page)


if __name__ == "__main__":
    unittest.main()
