"""erda-server's metrics: `erda-cli stats` has the same numbers, and the dashboard for Grafana shows them."""

import errno
import json
import pathlib
import re
import resource
import signal
import tomllib
import unittest
import urllib.request

from live_server import LiveServer

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DASHBOARD = SOURCE / "tools/erda-server/grafana.json"

STATISTICS = tomllib.loads((SOURCE / "tools/statistics/statistics.toml").read_text())["statistic"]
# The names of metrics in `erda-cli stats`.
SAME = {entry["metric"]: entry["name"] for entry in STATISTICS
        if "metric" in entry and "moving" not in entry and "value" not in entry}
SAME |= {"erda_recovery_objects": "recovery_objects", "erda_recovery_verified_shards": "recovery_shards_verified"}
# The same for numbers that change without a client's request, or with each client that asks.
MOVING = {entry["metric"]: entry["name"] for entry in STATISTICS if "metric" in entry and "moving" in entry}
# Metrics that stats does not have, and the reasons.
NOT_IN_STATS = {
    "erda_request_seconds_bucket": "quantiles of them are there: requests_KIND_p50_ns, _p99_ns, _p999_ns",
    "erda_request_seconds_sum": "the same",
    "erda_persist_seconds_bucket": "the same: persist_p50_ns, ...",
    "erda_persist_seconds_sum": "the same",
    "erda_persist_seconds_count": "the same",
    "erda_journal_hold_seconds_bucket": "the same: hold_p50_ns, ...",
    "erda_journal_hold_seconds_sum": "the same",
    "erda_journal_hold_seconds_count": "the same",
    "erda_cleaner_region_seconds_bucket": "the same: clean_region_p50_ns, ...",
    "erda_cleaner_region_seconds_sum": "the same",
    "erda_cleaner_region_seconds_count": "the same",
    "erda_fabric_registration_seconds": "of the start alone, which says it on stdout",
}

# Metrics that the dashboard does not show, by the table.
NOT_SHOWN = {entry["metric"] for entry in STATISTICS if "not_shown" in entry}


def labels_of(sample: str) -> dict[str, str]:
    return dict(re.findall(r'(\w+)="([^"]*)"', sample))


class Live(unittest.TestCase):
    """A server that was killed, recovered its pool, and then did something of each kind."""

    OPTIONS: tuple[str, ...] = ()

    @classmethod
    def setUpClass(cls):
        cls.live = LiveServer(pool="pool", options=("--metrics", "0", *cls.OPTIONS))
        cls.live.__enter__()
        cls.addClassCleanup(cls.live.__exit__)
        cls.do("put before crash")
        cls.live.server.send_signal(signal.SIGKILL)
        cls.live.server.wait()
        cls.live.server.stdout.close()
        cls.live.start()
        port = re.search(r"metrics on port (\d+)", cls.live.wait_for("metrics"))[1]
        for command in ("put a value", "put b value", "del a", "incr n 5", "put --if-absent b more || test $? = 6",
                        "del a || test $? = 1", "clean > cleaned"):
            cls.do(command)
        for path in ("reserve", "delegate"):
            cls.do(f"--path {path} put large --value-file large", first="head -c 50000 /dev/zero > large; ")
        # The server may still be ending the session of the last command. So read until nothing changes around the
        # reading.
        cls.stats = None
        while True:
            before = cls.stats
            cls.stats = json.loads(cls.do("stats --json"))
            if before is not None and cls.still(before) == cls.still(cls.stats):
                break
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
                cls.text = answer.read().decode()
        cls.samples = {}
        for line in cls.text.splitlines():
            if not line.startswith("#"):
                sample, number = line.rsplit(" ", 1)
                cls.samples[sample] = float(number)
        cls.types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", cls.text, re.MULTILINE))

    @staticmethod
    def still(stats: dict) -> dict:
        return {name: value for name, value in stats.items()
                if name not in MOVING.values() and not name.endswith("_connections")}

    @classmethod
    def do(cls, command: str, first: str = "") -> str:
        done = cls.live.run(f"{first}erda-cli -a {cls.live.address} {command}")
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout


class SameNumbers(Live):
    def expected(self, sample: str) -> float | None:
        """Returns the number in stats. Returns None if stats leaves it out for a known reason."""
        name, labels = sample.split("{")[0], labels_of(sample)
        if name in NOT_IN_STATS:
            return None
        if sample in SAME:
            return self.stats[SAME[sample]]
        if sample in MOVING:
            self.assertIn(MOVING[sample], self.stats)
            return None
        if sample == 'erda_puts_total{path="inline"}':
            return self.stats["puts_inline"] - self.stats["puts_staged"]
        if sample == "erda_recovery_seconds":
            return self.stats["recovery_ns"] / 1e9
        if name == "erda_recovery_entries":
            return self.stats["recovery_" + labels["outcome"]]
        if name == "erda_requests_total":
            return self.stats.get(f"requests_{labels['kind']}_{labels['outcome']}", 0)
        if name == "erda_request_seconds_count":
            begin = f"requests_{labels['kind']}_"
            return sum(n for key, n in self.stats.items() if key.startswith(begin) and not key.endswith("_ns"))
        if name.startswith("erda_fabric_"):
            device = "_" + labels["device"] if labels["device"] else ""
            what = name.removeprefix("erda_fabric_").removesuffix("_total")
            in_stats = self.stats[f"fabric_{labels['fabric']}{device}_{what}"]
            return None if what == "connections" else in_stats
        return self.fail(f"{sample} is not in stats, and nothing says why not")

    def test_each_metric_is_in_stats(self):
        compared = 0
        for sample, number in self.samples.items():
            with self.subTest(sample=sample):
                expected = self.expected(sample)
                if expected is not None:
                    self.assertAlmostEqual(number, expected, places=6)
                    compared += expected != 0
        self.assertGreater(compared, 20, "what is 0 in both proves little")

    def test_quantiles_are_there_where_a_histogram_has_anything(self):
        for kind in ("put_inline", "delete", "increment"):
            self.assertGreater(self.samples[f'erda_request_seconds_count{{kind="{kind}"}}'], 0)
            self.assertGreater(self.stats[f"requests_{kind}_p99_ns"], 0)
        self.assertEqual(self.samples['erda_request_seconds_count{kind="report"}'], 0)
        self.assertNotIn("requests_report_p99_ns", self.stats)

    def test_the_server_exports_each_metric_of_these_tables(self):
        exported = set(self.samples) | {sample.split("{")[0] for sample in self.samples}
        self.assertLessEqual({*SAME, *MOVING, *NOT_IN_STATS}, exported)
        self.assertIn("erda_recovery_seconds", exported)


class SameNumbersWithJournal(SameNumbers):
    OPTIONS = ("--journal", "journal,size=8M", "--journal-on-tmpfs")

    def test_the_journal_has_numbers(self):
        for name in ("stream_bytes_total", "written_bytes_total", "flushes_total", "ring_bytes", "ring_used_bytes"):
            self.assertGreater(self.samples["erda_journal_" + name], 0, name)
        self.assertEqual(self.samples["erda_journals_failed"], 0)
        self.assertEqual(self.samples["erda_journal_error_number"], 0)
        self.assertNotIn("erda_journal_failure", self.text)
        self.assertGreater(self.samples["erda_journal_hold_seconds_count"], 0)
        self.assertGreater(self.stats["hold_p99_ns"], 0)


class FailedJournal(unittest.TestCase):
    def test_the_metrics_have_the_error_of_the_disk(self):
        with LiveServer(pool="pool", options=("--metrics", "0", "--journal", "journal,size=8M", "--journal-on-tmpfs"),
                        survives_limits=True) as live:
            port = re.search(r"metrics on port (\d+)", live.wait_for("metrics"))[1]
            _, hard = resource.prlimit(live.server.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(live.server.pid, resource.RLIMIT_FSIZE, (4 << 20, hard))
            done = live.run("head -c 50000 /dev/zero | tr '\\0' x > value; for i in {1..100}; do "
                            f"erda-cli -a {live.address} put key --value-file value; done")
            self.assertIn("the disk of its journal (File too large)", done.stderr)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
                text = answer.read().decode()
            failure = re.search(r'^erda_journal_failure\{error="([^"]*)"\} 1$', text, re.MULTILINE)
            self.assertIn("File too large", failure[1])
            self.assertRegex(text, re.compile("^erda_journals_failed 1$", re.MULTILINE))
            self.assertRegex(text, re.compile(f"^erda_journal_error_number {errno.EFBIG}$", re.MULTILINE))
            stats = json.loads(live.run(f"erda-cli -a {live.address} stats --json").stdout)
            self.assertEqual(stats["journal_error_number"], errno.EFBIG)


class Dashboard(Live):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dashboard = json.loads(DASHBOARD.read_text())
        cls.panels = [panel for panel in cls.dashboard["panels"] if panel["type"] != "row"]
        cls.expressions = [(panel, target["expr"]) for panel in cls.panels for target in panel["targets"]]

    def series(self, name: str) -> list[dict[str, str]]:
        return [labels_of(sample) for sample in self.samples if sample.split("{")[0] == name]

    def test_each_panel_has_a_separate_place_and_number(self):
        numbers = [panel["id"] for panel in self.dashboard["panels"]]
        self.assertEqual(len(numbers), len(set(numbers)))
        taken = set()
        for panel in self.dashboard["panels"]:
            at = panel["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24, panel["title"])
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertTrue(cells.isdisjoint(taken), panel["title"])
            taken |= cells
        for panel in self.panels:
            letters = [target["refId"] for target in panel["targets"]]
            self.assertEqual(len(letters), len(set(letters)), panel["title"])
            self.assertTrue(panel["fieldConfig"]["defaults"]["unit"], panel["title"])

    def test_each_expression_asks_for_exported_metrics(self):
        for panel, expr in self.expressions:
            with self.subTest(panel=panel["title"], expr=expr):
                for name, conditions in re.findall(r"(erda_\w+)\{([^}]*)\}", expr):
                    series = self.series(name)
                    self.assertTrue(series, name)
                    known = {"instance", *(label for labels in series for label in labels)}
                    for label in re.findall(r"(\w+)!?=~?\"", conditions):
                        self.assertIn(label, known)
                    self.assertIn('instance=~"$instance"', conditions)
                    for group in re.findall(r"by \(([^)]*)\)", expr):
                        self.assertLessEqual(set(group.split(", ")), known)
                # Each expression has conditions; the checks above looked only at those.
                self.assertEqual(len(re.findall(r"erda_", expr)), len(re.findall(r"erda_\w+\{", expr)))

    def test_legends_name_labels_that_are_left(self):
        for panel in self.panels:
            for target in panel["targets"]:
                left = set(", ".join(re.findall(r"by \(([^)]*)\)", target["expr"])).split(", "))
                if "sum" not in target["expr"]:
                    name = re.match(r"erda_\w+", target["expr"])[0]
                    left = {"instance", *(label for labels in self.series(name) for label in labels)}
                self.assertLessEqual(set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])), left, panel["title"])

    def test_counters_and_only_counters_are_shown_as_rates(self):
        kinds = {name: kind for name, kind in self.types.items() if kind != "histogram"}
        for name, kind in self.types.items():
            if kind == "histogram":
                kinds |= {f"{name}_{part}": "counter" for part in ("bucket", "sum", "count")}
        for panel, expr in self.expressions:
            with self.subTest(panel=panel["title"]):
                rated = set(re.findall(r"(?:rate|increase) ?\((erda_\w+)", expr))
                for name in re.findall(r"erda_\w+", expr):
                    self.assertEqual(name in rated, kinds[name] == "counter", name)

    def test_each_metric_is_shown(self):
        shown = set(re.findall(r"erda_\w+", " ".join(expr for _, expr in self.expressions)))
        metrics = {name if kind != "histogram" else f"{name}_bucket" for name, kind in self.types.items()}
        self.assertEqual(metrics - shown, NOT_SHOWN)

    def test_the_dashboard_asks_for_prometheus_and_server(self):
        variables = {variable["name"]: variable for variable in self.dashboard["templating"]["list"]}
        self.assertEqual(set(variables), {"datasource", "instance"})
        name = re.fullmatch(r"label_values\((\w+), instance\)", variables["instance"]["query"]["query"])[1]
        self.assertTrue(self.series(name))
        for panel in self.panels:
            self.assertEqual({target["datasource"]["uid"] for target in panel["targets"]}, {"${datasource}"})


del Live  # It has no tests.

if __name__ == "__main__":
    unittest.main()
