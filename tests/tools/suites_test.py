"""The suites of a build run once each, and those that give the same result each time only after a change."""

import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from testing import suites

# As a GoogleTest program with two suites of one test.
PROGRAM = """#!/bin/sh
for option; do
  case "$option" in
    --gtest_list_tests) printf 'RestTest.\\n  Test\\nSyncerTest.\\n  Test\\n'; exit ;;
    --gtest_filter=*) suite=${option#--gtest_filter=}; suite=${suite%%.*} ;;
    --gtest_output=xml:*) output=${option#--gtest_output=xml:} ;;
  esac
done
echo "${0##*/} $suite" >> runs
echo "<testsuites><testsuite><testcase name='Test' classname='$suite' result='completed'/></testsuite></testsuites>" > "$output"
exit "$(cat status)"
"""


class SuitesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        Path("build/tests").mkdir(parents=True)
        names = ("server_tests", "e2e_tests", "lab_tests")
        rules = "".join(f"build tests/{name}: phony\n" for name in names)
        Path("build/build.ninja").write_text(rules)
        for name in names:
            self._write(name, PROGRAM)
        Path("status").write_text("0")

    def _write(self, name, text):
        program = Path("build/tests", name)
        program.write_text(text)
        program.chmod(0o755)

    def _run(self):
        """Returns what ran, and the outcome."""
        Path("runs").write_text("")

        class Log:
            cpu_seconds = 0.0

            def say(self, text):
                pass

            def tail(self, lines):
                return ""

        outcome = suites.work(Path("build"), Path("results"), Path("cache"))(Log())
        return sorted(Path("runs").read_text().splitlines()), outcome

    def test_what_gives_the_same_result_runs_once(self):
        everything = ["e2e_tests RestTest", "e2e_tests SyncerTest", "server_tests RestTest", "server_tests SyncerTest"]
        ran, outcome = self._run()
        self.assertEqual((ran, outcome.passed, outcome.note), (everything, 4, ""))
        ran, outcome = self._run()
        self.assertEqual(ran, [line for line in everything if line != "server_tests RestTest"])
        self.assertEqual((outcome.passed, outcome.failed, outcome.note), (4, 0, "1 of them before, unchanged"))
        self._write("server_tests", PROGRAM + "# another program\n")
        self.assertEqual(self._run()[0], everything)

    def test_other_settings_run_again(self):
        self._run()
        with mock.patch.dict(os.environ, {"ERDA_VERIFICATION_SEEDS": "6000"}):
            self.assertIn("server_tests RestTest", self._run()[0])
            self.assertNotIn("server_tests RestTest", self._run()[0])
        self.assertNotIn("server_tests RestTest", self._run()[0])

    def test_a_failure_is_not_remembered(self):
        Path("status").write_text("1")  # As after a finding of a sanitizer: no test has failed.
        for _ in range(2):
            ran, outcome = self._run()
            self.assertEqual((len(ran), outcome.passed, outcome.failed), (4, 0, 4))

    def test_a_change_while_it_runs_is_seen(self):
        change = 'cp "$0" "$0.$$"; echo "# changed" >> "$0.$$"; mv "$0.$$" "$0"\n'
        self._write("server_tests", PROGRAM.replace('echo "${0##', change + 'echo "${0##'))
        self._run()
        self.assertIn("server_tests RestTest", self._run()[0])


if __name__ == "__main__":
    unittest.main()
