"""tests/model/_program.py: what a model prints, and which exit code it ends with."""

from __future__ import annotations

import contextlib
import io
import pathlib
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "model"))

import _program  # noqa: E402

USAGE = "A model.\n\n    model.py  the usage\n\nMore."


def config(holds=True, breaks=True):
    """A configuration of the model below. It holds, and each defect breaks it, unless the arguments say otherwise."""
    return types.SimpleNamespace(holds=holds, breaks=breaks, defect=None)


def check(c):
    ok = not c.breaks if c.defect else c.holds
    return ok, 7, ["one", "two"] if ok is False else []


class ProgramTest(unittest.TestCase):
    def run_model(self, *args, design=None, planted=None, quick=None):
        design = {"first": config(), "second": config()} if design is None else design
        planted = {"flaw": config(), "fault": config()} if planted is None else planted
        with mock.patch.object(sys, "argv", ["model.py", *args]), mock.patch("time.monotonic", return_value=0), \
                contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            code = _program.main(USAGE, check, design, planted, quick)
        return code, out.getvalue(), err.getvalue()

    def test_checks_every_defect_and_configuration(self):
        self.assertEqual(self.run_model(), (0, "found: flaw (7 states, 2 steps)\nfound: fault (7 states, 2 steps)\n"
                                            "holds: first (7 states)\nholds: second (7 states)\n"
                                            "all hold, all planted defects found\n", ""))

    def test_a_broken_configuration_fails_with_its_steps(self):
        code, out, _ = self.run_model(design={"first": config(holds=False)}, planted={})
        self.assertEqual((code, out), (1, "BROKEN: first (7 states)\n    one\n    two\n1 failed\n"))

    def test_a_configuration_that_is_too_large_fails(self):
        code, out, _ = self.run_model(design={"first": config(holds=None)}, planted={})
        self.assertEqual((code, out), (1, "TOO LARGE: first (7 states)\n1 failed\n"))

    def test_a_defect_that_breaks_nothing_fails(self):
        code, out, _ = self.run_model(design={}, planted={"flaw": config(breaks=False)})
        self.assertEqual((code, out), (1, "NOT FOUND: flaw (7 states, 0 steps)\n1 failed\n"))

    def test_a_trace_is_of_one_defect(self):
        self.assertEqual(self.run_model("--trace", "fault"),
                         (0, "found: fault (7 states, 2 steps)\n    one\n    two\n", ""))
        self.assertEqual(self.run_model("--trace", "flaw", planted={"flaw": config(breaks=False)})[0], 1)

    def test_a_long_model_checks_the_quick_configurations_alone(self):
        _, out, _ = self.run_model(planted={}, quick={"second"})
        self.assertEqual(out, "holds: second (7 states, 0.0 s)\nall hold, all planted defects found\n")
        _, out, _ = self.run_model("--full", planted={}, quick={"second"})
        self.assertEqual(out, "holds: first (7 states, 0.0 s)\nholds: second (7 states, 0.0 s)\n"
                         "all hold, all planted defects found\n")

    def test_a_long_model_lists_its_names(self):
        self.assertEqual(self.run_model("--list", quick=set()), (0, "first\nsecond\nflaw\nfault\n", ""))

    def test_other_arguments_get_the_usage(self):
        for args, quick in ((["--trace"], None), (["--trace", "none"], None), (["--full"], None), (["--list"], None),
                            (["--full", "--list"], set()), (["first"], set())):
            self.assertEqual(self.run_model(*args, quick=quick), (2, "", "    model.py  the usage\n"), args)


if __name__ == "__main__":
    unittest.main()
