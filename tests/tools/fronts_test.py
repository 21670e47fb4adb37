"""rdma-lab fronts: its options, its pools, a turn with real programs, and its table."""

import contextlib
import importlib.util
import io
import pathlib
import tempfile
import unittest
from importlib.machinery import SourceFileLoader

from binaries import BUILD
from lab import fronts
from lab.fronts import Load, Pool, Turns

RDMA_LAB = pathlib.Path(__file__).parents[2] / "tools" / "rdma-lab"
GUEST = {"ERDA_LAB_DAX": "/dev/dax0.0", "ERDA_LAB_DAX_SIZE": "1000", "ERDA_LAB_FRONT": "/dev/dax1.0",
         "ERDA_LAB_PMR": "pmr:/region", "ERDA_LAB_DISK_DIR": "/mnt/disk"}


def rdma_lab():
    loader = SourceFileLoader("rdma_lab", str(RDMA_LAB))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("rdma_lab", loader))
    loader.exec_module(module)
    return module


class Options(unittest.TestCase):
    def setUp(self):
        self.parse = rdma_lab().parse

    def test_fronts_has_a_machine_with_both_kinds_of_fronts(self):
        options, command = self.parse(["fronts", "--rounds", "3", "--puts", "70", "--build", "/b"])
        self.assertEqual((options.front, options.pmr, options.disk), (16 << 20, 8 << 20, 512 << 20))
        self.assertEqual(command[-3:], ["/b", "3", "70"])
        self.assertTrue(pathlib.Path(command[-4]).is_file())

    def test_other_modes_keep_their_machine(self):
        options, command = self.parse(["run", "--front", "32M", "--", "true"])
        self.assertEqual((options.front, options.nvdimm, options.disk, options.timeout), (32 << 20, None, None, 300))
        self.assertEqual(command, ["true"])

    def test_wrong_options_are_refused(self):
        for words in (["--rounds", "0"], ["--puts", "many"], ["--dax", "fsdax"], ["--", "true"]):
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as ended:
                self.parse(["fronts", *words])
            self.assertEqual(ended.exception.code, 2)


class Pools(unittest.TestCase):
    def test_each_pool_has_its_own_files_and_the_same_size(self):
        pools = {pool.name: pool.options for pool in fronts.pools(GUEST)}
        self.assertEqual(pools.pop("NVM"), ["--pool", "/dev/dax0.0", "--size", "1000"])
        self.assertEqual(pools["front in NVDIMM"][-2:], ["--journal-front", "/dev/dax1.0"])
        self.assertEqual(pools["front in PMR"][-2:], ["--journal-front", "pmr:/region_wc"])
        self.assertNotIn("--journal-front", pools["journal alone"])
        files = [option for options in pools.values() for option in options if option.startswith("/mnt/disk/")]
        self.assertEqual(len(set(files)), 6)
        self.assertTrue(all(options[2:4] == ["--size", "1000"] for options in pools.values()))


class Turn(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="erda-fronts.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.turns = Turns(BUILD / "bin", self.folder, {"shm": f"shm:{self.folder}/socket"}, puts=500)

    def test_later_turn_finds_the_records_of_the_first_one(self):
        pool = Pool("file", ["--pool", f"{self.folder}/pool", "--size", "64M"])
        for load in (True, False):
            measured = self.turns.run(pool, load)
            self.assertEqual(list(measured), [("shm", "file")])
            times = measured["shm", "file"]
            self.assertGreater(times.mean, 0)
            self.assertGreater(times.median, 0)
            self.assertGreater(times.processor, 0)

    def test_server_that_does_not_start_ends_the_measurement(self):
        with self.assertRaisesRegex(RuntimeError, "nowhere: the server did not start"):
            self.turns.run(Pool("nowhere", ["--pool", f"{self.folder}/no/pool", "--size", "64M"]), load=True)


class Table(unittest.TestCase):
    def test_ratios_are_those_of_one_round(self):
        # The machine is twice as slow in the second round, and so is each pool.
        rounds = [{("shm", "NVM"): Load(10 * slow, 8 * slow, 4), ("verbs", "NVM"): Load(100, 90, 50),
                   ("shm", "front"): Load(13 * slow, 12 * slow, 6), ("verbs", "front"): Load(110 + slow, 90, 60)}
                  for slow in (1, 2, 1)]
        heading, *rows = [line.split("  ") for line in fronts.table(rounds).splitlines()]
        cells = [[cell.strip() for cell in row if cell] for row in rows]
        self.assertEqual(cells[1], ["shm", "front", "13.0", "12.0", "6.0", "1.30 (1.30 to 1.30)", "1.50 (1.50 to 1.50)"])
        self.assertEqual(cells[3], ["verbs", "front", "111.0", "90.0", "60.0", "1.11 (1.11 to 1.12)", "1.00 (1.00 to 1.00)"])
        self.assertEqual(cells[0][-1], "1.00 (1.00 to 1.00)")
        self.assertIn("mean / NVM", heading)


if __name__ == "__main__":
    unittest.main()
