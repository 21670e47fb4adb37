"""tools/statistics: each number that a server counts is declared once, and is everywhere."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
GENERATE = SOURCE / "tools/statistics/generate"
MADE = ("src/format/counters.h", "include/erda/server.h", "include/erda/erda.h", "src/python/erda/_native_server.py",
        "tools/erda-server/statistics.h", "tools/erda-server/grafana.json", "docs/operations.md")
TABLE = "tools/statistics/statistics.toml"


class Statistics(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        for file in (*MADE, TABLE):
            (self.tree / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SOURCE / file, self.tree / file)

    def generate(self, *options: str) -> subprocess.CompletedProcess:
        return subprocess.run(["python3", GENERATE, "--tree", self.tree, *options], capture_output=True, text=True)

    def add(self, *lines: str) -> None:
        with open(self.tree / TABLE, "a") as table:
            table.write("\n[[statistic]]\n" + "\n".join(lines) + "\n")

    def text(self, file: str) -> str:
        return (self.tree / file).read_text()

    def words(self) -> int:
        return len(re.findall(r"^word = ", self.text(TABLE), re.MULTILINE))

    def test_the_tree_is_as_the_table_says(self):
        checked = subprocess.run(["python3", GENERATE, "--check"], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_a_new_number_in_the_table_is_everywhere(self):
        self.add('name = "naps_taken"', f"word = {self.words()}", 'text = "Short sleeps of shards."',
                 'metric = "erda_naps_total"', 'panel = "Sleeps of shards"')
        self.assertEqual(self.generate("--check").returncode, 1)
        self.assertEqual(self.generate().returncode, 0)
        self.assertEqual(self.generate("--check").returncode, 0)
        counters = self.text("src/format/counters.h")
        self.assertIn("  kNapsTaken,\n  kCount,", counters)  # The control block.
        self.assertIn('  "naps_taken",\n};', counters)  # erda-cli stats.
        self.assertIn("X(naps_taken, kNapsTaken)", counters)  # The sum over shards.
        self.assertIn("X(naps_taken)", counters)  # From C++ to C.
        self.assertIn("  // Short sleeps of shards.\n  uint64_t naps_taken = 0;", self.text("include/erda/server.h"))
        self.assertIn("  uint64_t naps_taken;", self.text("include/erda/erda.h"))
        self.assertIn('"naps_taken"', self.text("src/python/erda/_native_server.py"))
        self.assertIn('{"erda_naps_total", "", "counter",\n     "Short sleeps of shards.",',
                      self.text("tools/erda-server/statistics.h"))
        self.assertIn("| `naps_taken` | Short sleeps of shards. |", self.text("docs/operations.md"))
        dashboard = self.text("tools/erda-server/grafana.json")
        panel = dashboard[dashboard.index('"title": "Sleeps of shards"'):]
        self.assertIn("rate(erda_naps_total{", panel[:panel.index("\n    }")])

    def test_a_number_as_of_now_is_a_gauge(self):
        self.add('name = "owls"', f"word = {self.words()}", "gauge = true", 'text = "Shards that work at night."',
                 'metric = "erda_owls"', 'panel = "Sleeps of shards"')
        self.assertEqual(self.generate().returncode, 0)
        self.assertIn("// Now: shards that work at night.", self.text("include/erda/server.h"))
        self.assertIn('{"erda_owls", "", "gauge",', self.text("tools/erda-server/statistics.h"))
        self.assertIn("sum (erda_owls{", self.text("tools/erda-server/grafana.json"))

    def test_a_table_that_cannot_be_is_refused(self):
        for lines, reason in (
                (('name = "gap"', f"word = {self.words() + 1}", 'text = "T."'), "the words must be 0, 1, 2"),
                (('name = "lost"', 'text = "T."', 'metric = "erda_lost"'), "lost must have either a panel, or a reason"),
                (('name = "lost"', 'text = "T."', 'metric = "erda_lost"', 'panel = "Nowhere"'), "no panel is called")):
            with self.subTest(reason=reason):
                shutil.copy(SOURCE / TABLE, self.tree / TABLE)
                self.add(*lines)
                done = self.generate()
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(reason, done.stderr)


if __name__ == "__main__":
    unittest.main()
