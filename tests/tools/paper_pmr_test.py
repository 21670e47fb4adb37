"""tools/paper --pmr: its ratios, its page, and the folders that it refuses."""

import json
import pathlib
import tempfile
import unittest
import unittest.mock

from balance import unbalanced
from evaluation import pmr
from measuring.programs import ToolError

MACHINE = {"processor": "P", "processors": 2, "memory_bytes": 2**34, "virtual": False, "kernel": "6.1", "system": "S",
           "load_average": 0.5, "time": "2026-01-01 00:00 UTC"}
WHY = "Bad address <EFAULT>"


def path(us):
    return {"mean_us": us, "median_us": us, "p99_us": us, "ops_per_second": 1e6 / us, "mib_per_second": 100 / us}


def run(fabric, measured=pmr.PATHS):
    """Each path takes ten times as long as the next one."""
    rows = [{"bytes": size, **{name: path(10.0 ** (4 - pmr.PATHS.index(name))) for name in measured}} for size in (64, 1024, 4096)]
    return {"command": f"bench {fabric}", "result": {
        "fabric": fabric, "device": "rxe0" if fabric == "verbs" else "", "clients": 2, "rows": rows,
        "nvm": {"path": "/dev/dax0.0", "durability": "power-safe"}, "region": {"path": "pmr:/r", "durability": "power-safe"},
        "not_measured": {name: WHY for name in pmr.PATHS if name not in measured}}}


def results():
    return {"machine": MACHINE, "commit": {"hash": "a" * 40, "date": "d", "changed_files": 0}, "command": "tools/paper --pmr",
            "lab": True, "runs": [run("verbs", pmr.PATHS[:3]), run("shm")]}


class Report(unittest.TestCase):
    def test_ratios_stand_beside_those_of_the_paper(self):
        found = {what: (measured, paper) for what, measured, paper in pmr.ratios(run("shm"))}
        self.assertEqual(len(found), 8)
        self.assertAlmostEqual(found["PMRSync / PMRDirect, 64 B"][0], 100)
        self.assertAlmostEqual(found["PMRSync / PMRDirect, 64 B"][1], 2.54 / 1.63)
        self.assertAlmostEqual(found["PMEMDirect / PMRDirect, 4 KiB"][1], 13 / 3.1)

    def test_path_that_was_not_measured_has_no_ratio(self):
        found = pmr.ratios(run("verbs", pmr.PATHS[:3]))
        self.assertEqual(len(found), 4)
        self.assertFalse([what for what, _, _ in found if "PMRDirect" in what])

    def test_table_has_measured_figures_beside_those_of_the_paper(self):
        columns, rows = pmr.table(run("verbs", pmr.PATHS[:3]), "median_us", pmr.PAPER_US)
        self.assertEqual([column.group for column in columns[1:]], [name for name in pmr.PATHS for _ in range(2)])
        self.assertEqual(rows[0], ["64 B", "10,000", "16", "1,000", "2.54", "100", "1.63", "–", "1.63"])
        self.assertEqual(rows[1], ["1 KiB", "10,000", "–", "1,000", "–", "100", "–", "–", "–"])

    def test_page_is_well_formed_and_says_why_a_path_is_missing(self):
        page = pmr.to_page(results())
        self.assertEqual(unbalanced(page), [])
        self.assertEqual(page.count("PMRDirect cannot be measured: Bad address &lt;EFAULT&gt;"), 1)
        self.assertEqual(page.count("<svg"), 4)
        self.assertNotRegex(page, r'(src|href)="')
        self.assertIn("Over verbs (rxe0)", page)
        self.assertIn(WHY, pmr.to_text(results()))


class Folders(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def evaluate(self, report_only=False):
        with unittest.mock.patch.object(pmr, "_here", return_value=[run("shm")]), unittest.mock.patch("builtins.print"):
            pmr.evaluate(self.folder / "out", pathlib.Path("build"), False, True, report_only, "tools/paper --pmr")

    def test_report_is_written_again_from_the_results(self):
        self.evaluate()
        page = self.folder / "out" / "report.html"
        before = page.read_text(encoding="utf-8")
        page.unlink()
        self.evaluate(report_only=True)
        self.assertEqual(page.read_text(encoding="utf-8"), before)
        self.assertEqual(json.loads((self.folder / "out" / pmr.RESULTS).read_text(encoding="utf-8"))["runs"], [run("shm")])

    def test_other_folders_are_refused(self):
        with self.assertRaisesRegex(ToolError, "has no results"):
            self.evaluate(report_only=True)
        (self.folder / "out").mkdir()
        (self.folder / "out" / "mine").touch()
        with self.assertRaisesRegex(ToolError, "is not empty"):
            self.evaluate()
        self.assertEqual([path.name for path in (self.folder / "out").iterdir()], ["mine"])


if __name__ == "__main__":
    unittest.main()
