"""tools/compare --preset files: how it runs clients at once, and its output for made-up figures."""

import dataclasses
import json
import pathlib
import re
import stat
import sys
import tempfile
import time
import types
import unittest

import origins
from balance import unbalanced
from comparison import stores, stores_measure, stores_output
from comparison.stores_measure import PARTS, Cell, Measured, Plan, cells_of
from measuring.programs import ToolError

# The time of an operation, in µs.
TIMES = {"erda": 2.0, "lmdb_writemap": 3.0, "lmdb": 8.0, "rocksdb": 10.0, "tkrzw": 4.0, "redis": 40.0, "lmdb_synced": 1000.0,
         "rocksdb_synced": 500.0}


def plan(parts=tuple(PARTS), sizes=(64, 1024), rounds=3, build="/b"):
    return Plan(build=pathlib.Path(build), folder=pathlib.Path("/f"), parts=parts, sizes=dict.fromkeys(parts, sizes),
                stores=stores.ALL, workloads=stores_measure.MIXES, clients=(2, 4), rounds=rounds, seconds=0.5, records=1000, most_value_bytes=1 << 20)


def run_of(cell: Cell, time_us: float, tail: float = 1.0) -> dict:
    """Returns a run. `tail` is the mean over the median."""
    run = {"ops_per_second": 1e6 * cell.clients / time_us, "mean_us": time_us}
    kinds = {"C": ("get",), "readers": ("get",), "update": ("put",), "load": (), "rmw": ("get", "put", "rmw"),
             "F": ("get", "put", "rmw")}.get(cell.workload, ("get", "put"))
    for kind in kinds:
        run[f"{kind}_per_second"] = 1e6 / time_us * (0.8 if cell.workload == "beside" and kind == "get" else 1)
        run[f"{kind}_mean_us"] = time_us
        run |= {f"{kind}_{name}_us": time_us / tail for name in ("p50", "p90", "p99", "p999", "max")}
    return run


def figures(of: Plan, times=None, tail: float = 1.0) -> stores_output.Figures:
    """Makes three rounds, of which the second is the median."""
    measured = []
    for part in of.parts:
        for size in of.sizes[part]:
            for cell in cells_of(of, part, size):
                entry = Measured(cell, f"ycsb <{cell.store.name}>")
                for round_factor in (0.1, 1, 10):
                    entry.runs.append(run_of(cell, (times or TIMES)[cell.store.name] * round_factor, tail))
                measured.append(entry)
    return stores_output.Figures(of, measured)


def origin(file_system="ext4"):
    return origins.origin({"LMDB": "0.9 <&>"}, {"erda": "erda-server"}, file_system)


class WhoWins(unittest.TestCase):
    def test_a_win_is_over_the_second_and_a_loss_is_over_erda(self):
        found = figures(plan())
        lead = found.lead("mixes", 64, "rmw", 1)
        self.assertIs(lead.best, stores.ERDA)
        self.assertAlmostEqual(lead.factor, 1.5)
        slow = figures(plan(), {**TIMES, "erda": 20.0})
        lead = slow.lead("mixes", 64, "rmw", 1)
        self.assertIs(lead.best, stores.LMDB)
        self.assertAlmostEqual(lead.factor, 20 / 3)

    def test_losses_are_told_with_the_largest_first(self):
        self.assertEqual(stores_output.losses(figures(plan())), [])
        lost = stores_output.losses(figures(plan(), {**TIMES, "tkrzw": 0.5}))
        self.assertIn("puts alone, 64 B: Tkrzw is 4.0 times as fast.", lost)
        # Erda does not promise what the synced stores do, so it has lost nothing there.
        self.assertFalse([text for text in lost if "synced" in text])

    def test_beside_readers_the_writers_rate_decides(self):
        of = plan(parts=("readers",), sizes=(64,))
        found = figures(of)
        for entry in found.measured:
            if entry.cell.workload == "beside" and entry.cell.store is stores.REDIS:
                for run in entry.runs:
                    run["put_per_second"] *= 1000
        self.assertIs(found.lead("readers", 64, "beside", 3).best, stores.REDIS)

    def test_table_has_a_row_for_each_work_and_a_column_for_each_size(self):
        columns, rows = stores_output.winners(figures(plan()))
        self.assertEqual([column.title for column in columns], ["Work", "64 B", "1 KiB"])
        self.assertIn(["update: a get, then a put", "Erda 1.50×", "Erda 1.50×"], rows)
        self.assertIn(["puts alone, synced to the disk", "RocksDB, synced 2.0×", "RocksDB, synced 2.0×"], rows)
        self.assertEqual(len(rows), 6 + 1 + 4 + 2 + 1 + 1)


class Ratios(unittest.TestCase):
    def test_are_of_the_medians_and_have_their_targets(self):
        found = {ratio.name: ratio for ratio in figures(plan(), tail=1.25).ratios()}
        for name, value, target, reached in (
            ("update_64", 1.5, 1, True), ("get_1024", 1.5, 1.3, True), ("put_64", 1.5, 1, True), ("update_64_2", 1.5, 2, False),
            ("load_64", 1.5, 1, True), ("writer_1024", 20, 2, True), ("readers_64", 0.8, 0.9, False),
            ("update_tail_64", 1.25, 1.3, True),
        ):
            self.assertAlmostEqual(found[name].value, value, msg=name)
            self.assertEqual((found[name].target, found[name].reached), (target, reached), name)
        self.assertFalse(next(ratio for ratio in figures(plan(), tail=1.4).ratios() if ratio.at_most).reached)

    def test_only_those_of_measured_parts_are_there(self):
        self.assertEqual([ratio.name for ratio in figures(plan(parts=("puts",), sizes=(64,))).ratios()], ["put_64"])
        self.assertEqual(figures(plan(parts=("synced",))).ratios(), [])

    def test_cards_have_the_worst_of_each_kind(self):
        found = figures(plan())
        for entry in found.measured:
            if entry.cell.part == "puts" and entry.cell.size == 1024 and entry.cell.store is stores.LMDB:
                for run in entry.runs:
                    run["put_mean_us"] /= 4
        page = stores_output.to_page(found, origin())
        self.assertIn("mean put of 1 KiB, LMDB / Erda", page.partition("<h2>")[0])
        self.assertNotIn("mean put of 64 B, LMDB / Erda", page.partition("<h2>")[0])


class Reports(unittest.TestCase):
    def test_page_is_whole_and_escaped(self):
        page = stores_output.to_page(figures(plan(), {**TIMES, "lmdb": 0.1}), origin())
        self.assertEqual(unbalanced(page), [])
        self.assertIsNone(re.search(r"(src|href)=|@import|url\(", page))
        self.assertIn("0.9 &lt;&amp;&gt;", page)
        self.assertIn("ycsb &lt;erda&gt;", page)
        self.assertIn("Where Erda is slower", page)

    def test_each_part_alone_has_a_report(self):
        for part in PARTS:
            with self.subTest(part):
                found = figures(plan(parts=(part,)))
                self.assertIn(PARTS[part].capitalize(), stores_output.to_text(found, origin()))
                self.assertEqual(unbalanced(stores_output.to_page(found, origin())), [])

    def test_every_store_says_what_it_promises(self):
        text = stores_output.to_text(figures(plan()), origin())
        for store in stores.ALL:
            self.assertIn(f"{store.title}: {store.promise}", text)

    def test_files_in_memory_are_no_disk(self):
        for kind, said in (("ext4", "files were on ext4."), ("tmpfs", "on tmpfs, which is memory")):
            self.assertIn(said, stores_output.to_text(figures(plan()), origin(kind)))

    def test_all_figures_are_in_the_json(self):
        of = plan()
        found = json.loads(json.dumps(stores_output.to_json(figures(of), origin())))
        self.assertEqual(len(found["results"]), 2 * (5 * (6 + 1 + 4 + 1) + 6 * 2 + 2))
        self.assertEqual(found["results"][0]["median"]["rmw_mean_us"], 2.0)
        self.assertEqual(found["ratios"]["put_64"]["target"], 1)
        self.assertEqual(found["settings"]["records"]["mixes"], {"64": 1000, "1024": 1000})


class Choices(unittest.TestCase):
    def test_only_the_chosen_stores_are_measured_and_shown(self):
        of = dataclasses.replace(plan(parts=("puts", "synced")), stores=(stores.ERDA, stores.LMDB, stores.LMDB_SYNCED))
        found = figures(of)
        self.assertEqual({entry.cell.store for entry in found.measured}, set(of.stores))
        columns, _ = stores_output.details(found, "puts")
        self.assertEqual({column.group for column in columns}, {"", "Erda", "LMDB, map"})
        text = stores_output.to_text(found, origin())
        self.assertNotIn("RocksDB", text)
        self.assertIn("put_64", text)
        self.assertIsNone(found.lead("synced", 64, "update", 1), "one store alone does not win")
        self.assertEqual(unbalanced(stores_output.to_page(found, origin())), [])

    def test_fewer_records_if_values_are_large(self):
        of = plan()
        self.assertEqual([of.records_of(size, "puts") for size in (64, 4096, 1 << 20)], [1000, 256, 100])
        self.assertEqual([of.records_of(size, "synced") for size in (64, 1 << 20)], [100, 100])

    def test_operations_are_limited_by_the_last_rate(self):
        def operations(workload, clients, rate, store=stores.LMDB):
            command = stores_measure._clients(plan(), Cell("readers", store, 64, workload, clients), "address", 1000, rate)[0]
            return int(command[command.index("--operations") + 1])

        self.assertEqual(operations("rmw", 2, None), stores_measure.RATE_MAX // 2)
        self.assertEqual(operations("rmw", 2, 1e5), 4 * 25_000 + 1000)
        self.assertEqual(operations("rmw", 2, 1e5, stores.TKRZW), 2 * (4 * 25_000 + 1000))
        self.assertEqual(operations("beside", 3, 1e5), 4 * 50_000 + 1000)
        self.assertEqual(operations("D", 1, None), 2000)


class Clients(unittest.TestCase):
    """A made-up erda-ycsb, which writes when it began and what it was asked for."""

    YCSB = """#!%s
import json, sys, time
arguments = sys.argv[1:]
value = lambda name: arguments[arguments.index(name) + 1]
if "--fail" in arguments:
    sys.exit("a message\\nthe last line")
if "--late" in arguments:
    time.sleep(0.5)
print("ready", flush=True)
sys.stdin.readline()
began = time.monotonic()
kind = {"count": 10, "mean_ns": 1000.0 * float(value("--us")), "p50_ns": 900, "p90_ns": 1, "p99_ns": 1, "p999_ns": 1, "max_ns": 1}
json.dump({"run": {"operations": 10, "seconds": 2.0, "ops_per_second": 5.0, "get": kind, "put": {"count": 0, "mean_ns": 0}},
           "not_found": int("--missing" in arguments), "records_after": 7, "began": began}, open(value("--json"), "w"))
"""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.program = self.folder / "ycsb"
        self.program.write_text(self.YCSB % sys.executable)
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)
        self.one = types.SimpleNamespace(address="lmdb:here", server=None)

    def together(self, *more):
        commands = [[str(self.program), "--us", str(number + 1), *words] for number, words in enumerate(more)]
        return stores_measure.run_together(commands, self.folder, self.one)

    def test_all_begin_when_the_last_one_is_ready(self):
        before = time.monotonic()
        results = self.together(["--late"], [])
        self.assertGreaterEqual(min(result["began"] for result in results), before + 0.5)

    def test_numbers_of_several_are_joined(self):
        joined = stores_measure.summary(self.together([], [], []))
        self.assertEqual((joined["operations"], joined["ops_per_second"]), (30, 15.0))
        self.assertAlmostEqual(joined["mean_us"], 2)
        self.assertAlmostEqual(joined["get_mean_us"], 2)
        self.assertAlmostEqual(joined["get_per_second"], 15)
        self.assertNotIn("put_mean_us", joined)

    def test_failure_of_one_ends_all_with_its_last_line(self):
        with self.assertRaisesRegex(ToolError, "^the last line$"):
            self.together([], ["--fail"])

    def test_missing_values_are_an_error(self):
        with self.assertRaisesRegex(ToolError, "lmdb:here does not have 1 values"):
            self.together(["--missing"])

    def test_clients_are_processes_or_threads(self):
        def commands(store, workload, clients):
            return stores_measure._clients(plan(), Cell("clients", store, 64, workload, clients), "address", 1000, None)

        self.assertEqual(len(commands(stores.LMDB, "rmw", 4)), 4)
        self.assertEqual(len({tuple(command) for command in commands(stores.ERDA, "rmw", 4)}), 4, "each has its own seed")
        threads = commands(stores.TKRZW, "rmw", 4)
        self.assertEqual(len(threads), 1)
        self.assertEqual(threads[0][threads[0].index("--threads") + 1], "4")

        def workloads(store):
            return [command[command.index("--workload") + 1] for command in commands(store, "beside", 3)]

        self.assertEqual(workloads(stores.ERDA), ["update", "C", "C"])
        beside = commands(stores.ROCKSDB, "beside", 3)[0]
        self.assertEqual(beside[beside.index("--writers") + 1], "1")
        self.assertNotIn("--workload", beside)

    def test_library_that_is_missing_is_named(self):
        folder = self.folder / "bin"
        folder.mkdir()
        for name in ("erda-ycsb", "erda-server"):
            (folder / name).write_text("#!/bin/sh\necho \"erda-ycsb: $2: $1 needs a library, which it was built without\" >&2\nexit 1\n")
            (folder / name).chmod(0o755)
        with self.assertRaisesRegex(ToolError, "built without lmdb: install it"):
            stores.require_stores(self.folder, self.folder, (stores.LMDB,))
        (folder / "erda-ycsb").write_text("#!/bin/sh\necho 'no such option' >&2\nexit 1\n")
        stores.require_stores(self.folder, self.folder, (stores.LMDB,))


if __name__ == "__main__":
    unittest.main()
