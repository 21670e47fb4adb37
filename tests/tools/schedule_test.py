"""The test command runs its steps in the order that they state, and counts what passed and failed."""

import contextlib
import io
import tempfile
import threading
import unittest
from pathlib import Path

from testing import plan
from testing.schedule import Schedule
from testing.step import Outcome, Step


class ScheduleTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.logs = Path(folder.name)
        self.ran = []

    def _step(self, name, outcome=None, work=None, **options):
        def run(log):
            if work:
                work()
            self.ran.append(name)
            return outcome or Outcome(1, 0)

        return Step(name, f"Step {name}", run, **options)

    def _run(self, *steps):
        """Returns the printed lines, with the closing ones."""
        schedule = Schedule(steps, self.logs)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            schedule.run()
        self.schedule = schedule
        return (said.getvalue() + schedule.closing_lines()).splitlines()

    def test_each_step_has_a_line_and_the_last_line_counts(self):
        lines = self._run(self._step("a", Outcome(5, 0), counts_tests=True), self._step("b"))
        self.assertTrue(any("[1/2] ok     Step a, 5 passed: " in line for line in lines))
        self.assertTrue(any("[2/2] ok     Step b: " in line for line in lines))
        self.assertEqual(lines[-1], "6 passed, 0 failed")

    def test_a_step_that_needs_a_failed_one_fails_and_does_not_run(self):
        lines = self._run(self._step("a", Outcome(3, 2, "the report")), self._step("b", needs=("a",)),
                          self._step("c", after=("a",)))
        self.assertEqual(self.ran, ["a", "c"])
        self.assertEqual(lines[-1], "4 passed, 3 failed")
        self.assertTrue(any("the report" in line for line in lines))
        self.assertTrue(any("not run: it needs what failed (Step a)" in line for line in lines))

    def test_an_exception_of_a_step_is_a_failure(self):
        def fail():
            raise ValueError("broken")

        self.assertEqual(self._run(self._step("a", work=fail))[-1], "0 passed, 1 failed")

    def test_lanes_run_at_the_same_time(self):
        meeting = threading.Barrier(2, timeout=20)
        self._run(self._step("a", work=meeting.wait), self._step("b", work=meeting.wait, lane="other"))
        self.assertEqual(self.schedule.failed, 0)

    def test_a_step_waits_for_those_that_it_follows(self):
        for option in ("needs", "after"):
            self.ran = []
            self._run(self._step("late", lane="other", **{option: ("a", "b")}), self._step("a"), self._step("b"))
            self.assertEqual(self.ran, ["a", "b", "late"])


class PlanTest(unittest.TestCase):
    def test_steps_follow_steps_that_there_are(self):
        for steps in (plan.all_steps(Path("logs"), Path("scratch"), "2", True),
                      plan.quick_steps(Path("logs"), Path("scratch"), "2", True)):
            names = [step.name for step in steps]
            self.assertEqual(len(set(names)), len(names))
            for step in steps:
                self.assertLessEqual({*step.needs, *step.after}, set(names), step.name)

    def test_all_has_each_step_of_the_first_look_or_a_longer_one(self):
        quick = {step.name for step in plan.quick_steps(Path("logs"), Path("scratch"), "2", True)}
        every = {step.name for step in plan.all_steps(Path("logs"), Path("scratch"), "2", True)}
        self.assertEqual(quick - every, {"lab"})
        self.assertTrue({"lab-store", "lab-fabric"} <= every)


if __name__ == "__main__":
    unittest.main()
