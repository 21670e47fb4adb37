"""tools/paper: its plan, its stored results, which it never mixes, and its report."""

import json
import pathlib
import re
import tempfile
import unittest
import unittest.mock

from balance import unbalanced
from evaluation import measure, output, results
from evaluation.common import CPU, ERDA, LATENCY, RAW, REDO, SCHEMES, THROUGHPUT, WORKLOADS
from evaluation.plan import ALL_SIZES, Plan, Point, Run, Settings, parse_figures
from evaluation.store import Store, conditions
from measuring.programs import ToolError

SETTINGS = Settings(lab=False, quick=True, seconds=0.1, records=1000, pool_bytes=1 << 20)
SLOWER = {"erda": 1, "redo": 2, "raw": 4}  # Factors of the made-up times.
MACHINE = {"processor": "P", "processors": 2, "memory_bytes": 2**34, "virtual": False, "kernel": "6.1", "system": "S",
           "load_average": 0.5, "time": "2026-01-01 00:00 UTC"}


def origin(**more):
    return {"conditions": {"commit": "a" * 40, **SETTINGS.to_json(), **more}, "machine": MACHINE,
            "commit": {"hash": "a" * 40, "date": "d", "changed_files": 0}, "commands": ["tools/paper <x>"]}


def plan(figures="14-26", sizes=ALL_SIZES, threads=(1, 2, 4), rounds=3):
    return Plan(SETTINGS, parse_figures(figures), sizes, threads, rounds)


def measured(run: Run):
    """Erda is twice as fast as Redo Logging, and four times as fast as Read After Write. It takes 2 µs for a value of 1
    KiB in YCSB-C."""
    slower = SLOWER[run.scheme.name]
    point = run.point
    base = 1000 * (1 + point.value_size / 1024) * slower * (1, 1.5, 0.5)[run.round - 1]
    puts = {"C": 0, "B": 5, "A": 50, "update": 100}[point.workload]
    def times(count, mean):
        return {"count": count, "mean_ns": mean, **{f"{name}_ns": mean for name in ("p50", "p90", "p99", "p999", "max")}}
    return {"command": "ycsb", "server_command": "server", "result": {
        "operations": 100, "run": {
            "get": times(100 - puts, base), "put": times(puts, 3 * base), "ops_per_second": 1e6 * point.threads / slower,
            "server_cpu_seconds": 0 if run.scheme is ERDA and puts == 0 else 1e-4 * slower, "nvm_bytes": 500,
        }}}


BYTES = {"command": "bench bytes", "result": {"key_size": 24, "keys": 10, "rows": [
    {"scheme": scheme, "value_size": 1024, **({"path": path} if path else {}),
     **{operation: {"counted": counted, "paper": paper} for operation in results.OPERATIONS}}
    for scheme, path, counted, paper in (("erda", "inline", 90, 50), ("erda", "reserve", 110, 50), ("redo", "", 200, 100),
                                         ("raw", "", 200, 100))
]}}


def cleaning():
    def state(get, put):
        return {"get": {"count": 1, "mean_us": get, "p99_us": get}, "put": {"count": 3, "mean_us": put, "p99_us": put}}
    return {"command": "bench cleaning", "result": {"value_bytes": 1024, "workloads": {
        workload.key: {"idle": state(1, 1), "cleaning": state(1, 3)} for workload in WORKLOADS}}}


class Folder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.path = pathlib.Path(temporary.name) / "out"

    def begin(self, fresh=False, **more) -> Store:
        return Store.begin(self.path, origin(**more), fresh)

    def full(self, of=None) -> Store:
        store = self.begin()
        for run in (of or plan()).runs():
            store.put_run(run, measured(run))
        store.put("bytes", BYTES)
        store.put("cleaning", cleaning())
        return store


class Plans(unittest.TestCase):
    def test_figures_by_numbers_and_ranges(self):
        self.assertEqual(parse_figures("table1,26,14-16"), [14, 15, 16, 26, "table1"])
        for bad in ("13", "27", "16-14", "14-27", "", "x", "table2"):
            with self.assertRaises(ToolError):
                parse_figures(bad)

    def test_each_figure_has_its_points(self):
        for figure, expected in (
            ("14", {Point(LATENCY, "C", size, 1) for size in ALL_SIZES}),
            ("17", {Point(LATENCY, "update", size, 1) for size in ALL_SIZES}),
            ("19", {Point(THROUGHPUT, "B", 1024, threads) for threads in (1, 2, 4)}),
            ("24", {Point(CPU, workload, 256, 1) for workload in ("A", "B", "C", "update")}),
            ("26,table1", set()),
        ):
            self.assertEqual(set(plan(figure).points()), expected, figure)

    def test_every_scheme_in_every_round_and_another_one_first(self):
        runs = plan("14", sizes=(64,)).runs()
        self.assertEqual(len({run.name for run in runs}), 9)
        firsts = [next(run.scheme for run in runs if run.round == number) for number in (1, 2, 3)]
        self.assertEqual(set(firsts), set(SCHEMES))

    def test_servers_of_one_session_have_one_size_and_one_way_of_waiting(self):
        for one_at_a_time in (False, True):
            runs = plan().runs()
            sessions = list(measure.sessions(runs, one_at_a_time))
            self.assertEqual(sorted(run.name for session in sessions for run in session), sorted(run.name for run in runs))
            for session in sessions:
                self.assertEqual(len({(run.point.value_size, run.point.server_sleeps) for run in session}), 1)
                if one_at_a_time:
                    self.assertEqual(len({(run.scheme, run.round) for run in session}), 1)
            self.assertEqual(len(sessions), (5 + 4) * (9 if one_at_a_time else 1))


class Stores(Folder):
    def test_goes_on_with_the_missing_runs(self):
        runs = plan("14").runs()
        store = self.begin()
        for run in runs[:5]:
            store.put_run(run, measured(run))
        again = self.begin()
        self.assertEqual(again.missing(runs), runs[5:])
        self.assertEqual(len(again.points()), 5)
        self.assertEqual(again.missing(plan("15").runs()), plan("15").runs())

    def test_other_conditions_are_not_mixed(self):
        self.full(plan("14"))
        for more, said in (({"commit": "b" * 40}, "commit aaaaaaaaaaaa, not bbbbbbbbbbbb"), ({"records": 5}, "records 1000, not 5"),
                           ({"programs": "x"}, "programs None, not x")):
            with self.assertRaisesRegex(ToolError, said):
                self.begin(**more)
        store = self.begin(fresh=True, commit="b" * 40)
        self.assertEqual(store.points(), [])
        self.assertIsNone(store.get("bytes"))

    def test_fresh_removes_all_earlier_results(self):
        self.full(plan("14"))
        (self.path / "lab").mkdir()
        (self.path / "lab" / "cleaning.json").write_text("{")
        (self.path / ".report.json.123").write_text("half of")
        (self.path / "notes").write_text("precious")
        store = self.begin(fresh=True)
        self.assertEqual((store.points(), store.get("bytes"), store.get("cleaning")), ([], None, None))
        self.assertFalse((self.path / "lab").exists())
        self.assertEqual((self.path / "notes").read_text(), "precious")

    def test_another_host_of_the_same_kind_is_another_machine(self):
        here = conditions(SETTINGS, self.path)
        with unittest.mock.patch("platform.node", return_value="another"):
            there = conditions(SETTINGS, self.path)
        self.assertEqual([name for name in here if here[name] != there[name]], ["host"])

    def test_guests_are_not_mixed(self):
        store = self.begin()
        store.put_guest({**MACHINE, "kernel": "6.0"})
        store.put_guest(MACHINE)  # Nothing was measured in the guest before.
        run = plan("14").runs()[0]
        store.put_run(run, measured(run))
        store.put_guest({**MACHINE, "load_average": 7, "time": "later"})
        with self.assertRaisesRegex(ToolError, "kernel 6.1, not 6.2"):
            store.put_guest({**MACHINE, "kernel": "6.2"})

    def test_a_point_with_other_conditions_is_refused(self):
        store = self.full(plan("14"))
        path = next((self.path / "points").iterdir())
        entry = json.loads(path.read_text())
        path.write_text(json.dumps({**entry, "conditions": "other"}))
        with self.assertRaisesRegex(ToolError, "other conditions"):
            store.points()
        path.write_text("{")
        with self.assertRaisesRegex(ToolError, "damaged"):
            store.points()

    def test_other_folders_are_refused_and_unchanged(self):
        self.path.mkdir()
        (self.path / "mine").write_text("precious")
        for fresh in (False, True):
            with self.assertRaisesRegex(ToolError, "not empty"):
                self.begin(fresh=fresh)
        self.assertEqual((self.path / "mine").read_text(), "precious")
        with self.assertRaisesRegex(ToolError, "no evaluation"):
            Store.read(self.path)

    def test_later_commands_are_added(self):
        self.begin()
        second = {**origin(), "commands": ["tools/paper --figures 26"]}
        store = Store.begin(self.path, second, False)
        self.assertEqual(store.origin["commands"], ["tools/paper <x>", "tools/paper --figures 26"])


class Bench(Folder):
    def test_files_of_erda_bench_are_removed_with_the_tools_folder(self):
        seen = []

        def fake(command, seconds, environment):
            folder = pathlib.Path(environment["TMPDIR"])
            (folder / "erda-bench.q7Yk2d").mkdir()
            seen.append(folder)
            if len(seen) == 2:
                raise KeyboardInterrupt
            pathlib.Path(command[command.index("--json") + 1]).write_text("{}")

        store = self.begin()
        with unittest.mock.patch.object(measure, "execute", fake):
            measure.count_bytes(store, pathlib.Path("/b"))
            with self.assertRaises(KeyboardInterrupt):
                measure.measure_cleaning(store, pathlib.Path("/b"), quick=True)
        self.assertEqual([folder.exists() for folder in seen], [False, False])
        self.assertEqual(store.get("bytes")["command"], "build/bin/erda-bench bytes")
        self.assertIsNone(store.get("cleaning"))


class Numbers(Folder):
    def test_the_median_of_the_rounds_and_the_mean_of_all_operations(self):
        found = results.Results(self.full())
        self.assertAlmostEqual(found.latency("C", 1024, ERDA), 2)
        self.assertAlmostEqual(found.latency("A", 1024, REDO), 8)  # Half of them gets of 4, half puts of 12.
        self.assertAlmostEqual(found.latency("update", 1024, RAW, "put_p50_us"), 24)
        self.assertIsNone(found.latency("update", 1024, RAW, "get_p50_us"))
        self.assertAlmostEqual(found.rate("C", 4, REDO), 2e6)
        self.assertAlmostEqual(found.cpu("B", 64, RAW), 4)
        self.assertEqual(found.rounds, 3)

    def test_ratios(self):
        ratios = {ratio.name: ratio for ratio in results.Results(self.full()).ratios()}
        for name, value in (("ycsb_c_latency_1k", 0.5), ("update_latency", 0.5), ("ycsb_c_throughput", 2), ("ycsb_b_server_cpu", 2),
                            ("update_bytes_1k", 0.5), ("ycsb_a_cleaning", 2.5)):
            self.assertAlmostEqual(ratios[name].value, value, msg=name)
        self.assertAlmostEqual(ratios["ycsb_c_latency_1k"].paper, 0.678, places=3)
        self.assertEqual([(ratio.name, ratio.target, ratio.reached) for ratio in ratios.values() if ratio.target],
                         [("ycsb_c_latency_1k", 0.60, True), ("update_bytes_1k", 0.53, True)])
        # Erda's gets cost the server nothing, so there is no ratio.
        self.assertNotIn("ycsb_c_server_cpu", ratios)

    def test_a_target_can_be_missed(self):
        self.assertFalse(results.Ratio("n", "w", 0.61, target=0.6).reached)
        self.assertTrue(results.Ratio("n", "w", 0.6, target=0.6).reached)

    def test_missing_measurements_have_no_number(self):
        store = self.begin()
        run = plan("14", sizes=(64,)).runs()[0]
        store.put_run(run, measured(run))
        found = results.Results(store)
        self.assertEqual(found.ratios(), [])
        self.assertEqual(found.lacks()[0], "figure 15")
        self.assertIn("Not measured yet: figure 15", output.to_page(found))
        self.assertEqual(list(results.to_json(found)["figures"]), ["14"])

    def test_json_has_all_figures(self):
        report = json.loads(json.dumps(results.to_json(results.Results(self.full()))))
        self.assertEqual(list(report["figures"]), [str(figure) for figure in range(14, 27)] + ["table1"])
        self.assertAlmostEqual(report["ratios"]["ycsb_c_latency_1k"], 0.5)
        self.assertEqual(report["figures"]["20"]["points"][1], {"threads": 2, "ops_per_second": {"erda": 2e6, "redo": 1e6, "raw": 5e5}})
        self.assertEqual(report["figures"]["26"]["points"][0]["cleaning_mean_us"], 2.5)


class Pages(Folder):
    def test_is_whole_and_has_every_figure(self):
        page = output.to_page(results.Results(self.full()))
        self.assertEqual(unbalanced(page), [])
        for figure in range(14, 27):
            self.assertIn(f"Figure {figure}: ", page)
        self.assertEqual(page.count("<svg"), 4 + 4 + 4 + 1 + 3)
        self.assertNotIn("Not measured yet", page)
        self.assertIsNone(re.search(r"(src|href)=|@import|url\(", page))
        self.assertIn("tools/paper &lt;x&gt;", page)

    def test_says_what_was_measured_beside_the_paper(self):
        found = results.Results(self.full())
        said = output.say_latency(found, WORKLOADS[0])
        self.assertIn("At 1 KiB Erda takes 2 µs: 0.50 of Redo Logging's 4 µs, 0.25 of Read After Write's.", said)
        self.assertIn("Paper: 0.68 and 0.68 (62.84, 92.7 and 92.48 µs).", said)
        self.assertIn("Erda does 2.00 times as much as Redo Logging", output.say_throughput(found, WORKLOADS[0]))
        self.assertIn("grows 4.00 times", output.say_throughput(found, WORKLOADS[0]))
        self.assertIn("2.00 and 4.00 times in YCSB-A", output.say_cpu(found, 64))
        self.assertIn("In YCSB-C Erda costs it nothing.", output.say_cpu(found, 64))
        self.assertIn("2.50 in YCSB-C", output.say_cleaning(found))
        self.assertIn("Erda writes 100.0 bytes, 0.50 of Redo Logging's", output.say_bytes(found, "update"))

    def test_a_cost_of_nothing_is_infinitely_less(self):
        _, rows = output.cpu_table(results.Results(self.full()))
        self.assertEqual(rows[0][2:], ["0.000", "2.000", "4.000", "∞", "∞"])

    def test_missing_measurements_are_not_infinite(self):
        store = self.begin()
        for run in plan("22").runs():
            if run.scheme is not RAW:
                store.put_run(run, measured(run))
        _, rows = output.cpu_table(results.Results(store))
        self.assertEqual(rows[0][2:], ["0.000", "2.000", "–", "∞", "–"])

    def test_text_has_the_ratios(self):
        text = output.to_text(results.Results(self.full()))
        self.assertRegex(text, r"ycsb_c_latency_1k +0\.50 .*target at most 0\.6: reached")


if __name__ == "__main__":
    unittest.main()
