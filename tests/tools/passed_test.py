"""A step that passed is left out as long as its files are the same, and no longer."""

import tempfile
import unittest
from pathlib import Path

from testing.passed import once
from testing.step import Outcome


class _Log:
    def say(self, text):
        pass


class OnceTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        (self.top / "inputs").mkdir()
        (self.top / "inputs" / "one").write_text("1")
        (self.top / "program").write_text("p")
        self.runs = 0
        self.outcome = Outcome(1, 0)

    def _run(self, name="name", during=None):
        def work(log):
            self.runs += 1
            if during:
                during()
            return self.outcome

        files = [self.top / "program", self.top / "inputs"]
        return once(work, name, files, self.top / "cache")(_Log())

    def test_it_runs_once(self):
        self.assertEqual(self._run().note, "")
        again = self._run()
        self.assertEqual((self.runs, again.passed, again.failed), (1, 1, 0))
        self.assertNotEqual(again.note, "")

    def test_it_runs_again_after_each_change(self):
        changes = [lambda: (self.top / "program").write_text("q"),
                   lambda: (self.top / "inputs" / "one").write_text("2"),
                   lambda: (self.top / "inputs" / "two").write_text("2"),
                   lambda: (self.top / "inputs" / "two").rename(self.top / "inputs" / "three"),
                   lambda: (self.top / "inputs" / "one").unlink()]
        self._run()
        for number, change in enumerate(changes):
            change()
            self._run()
            self.assertEqual(self.runs, number + 2)
        self._run("another name")
        self.assertEqual(self.runs, len(changes) + 2)

    def test_a_failure_is_not_remembered(self):
        self.outcome = Outcome(0, 1)
        self._run()
        self.assertEqual(self._run().failed, 1)
        self.assertEqual(self.runs, 2)

    def test_a_change_while_it_runs_is_seen(self):
        self._run(during=lambda: (self.top / "program").write_text("new"))
        self._run()
        self.assertEqual(self.runs, 2)


if __name__ == "__main__":
    unittest.main()
