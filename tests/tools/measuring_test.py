"""tools/measuring: programs that end with the tool, signals that let it clean up, runs that are long enough."""

import argparse
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

from measuring import programs, ycsb
from measuring.command_line import list_of, number_from, size_up_to
from measuring.programs import Server, ToolError, execute, shown

PYTHON = [sys.executable, "-c"]


class HowFarItIs(unittest.TestCase):
    def test_is_told_in_the_middle_of_a_step(self):
        work = ("import time; from measuring.progress import Progress; p = Progress(7, 0.01); p.part('loading');"
                "time.sleep(0.3); p.step('a step'); time.sleep(0.3); p.clear(); print('done')")
        ended = subprocess.run([*PYTHON, work], capture_output=True, text=True, timeout=60)
        self.assertEqual(ended.stdout, "done\n")
        self.assertRegex(ended.stderr, r"(?s)^loading\n.*\[0/7\] loading, after \d s\n.*\[1/7\] a step, after \d s\n")


def running(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except OSError:
        return False


class Folder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.path = pathlib.Path(temporary.name)

    def wait_until(self, holds):
        end = time.monotonic() + 20
        while not holds():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def tool(self, work: str) -> subprocess.Popen:
        """Starts a tool that does this work. It has `folder` to itself, and writes into the file `ready`."""
        text = ("import pathlib, sys, tempfile, time\nfrom measuring.command_line import run\nfrom measuring.programs import *\n"
                f"here = pathlib.Path({str(self.path)!r})\nready = here / 'ready'\n"
                f"def work():\n    with tempfile.TemporaryDirectory(dir=here) as folder:\n        {work}\n    return 0\n"
                "sys.exit(run('tool', work, 'stopped'))\n")
        tool = subprocess.Popen([*PYTHON, text], stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(tool.stderr.close)
        self.addCleanup(tool.wait)
        self.addCleanup(tool.kill)
        self.wait_until(lambda: (self.path / "ready").exists() and (self.path / "ready").read_text())
        return tool

    def folders(self):
        return [path for path in self.path.iterdir() if path.is_dir()]


class Servers(Folder):
    def start(self, script, ready=lambda _: True):
        server = Server("it", [*PYTHON, script], "shm:x", self.path, ready)
        self.addCleanup(server.stop)
        return server

    def test_is_there_when_it_is_ready_and_gone_when_it_is_stopped(self):
        server = self.start("import time; print('ready', flush=True); time.sleep(60)", lambda server: server.said("ready"))
        self.assertTrue(running(server.pid))
        server.require_running()
        server.stop()
        self.assertFalse(running(server.pid))
        with self.assertRaisesRegex(ToolError, "it ended with -15: ready"):
            server.require_running()

    def test_end_at_its_start_is_told_with_its_last_words(self):
        with self.assertRaisesRegex(ToolError, "it ended with 3: no room"):
            self.start("print('no room'); exit(3)", lambda _: False)

    def test_a_server_that_is_never_ready_is_ended(self):
        pids = []
        with unittest.mock.patch.object(programs, "START_SECONDS", 0.1), self.assertRaisesRegex(ToolError, "not ready in 0.1 s"):
            self.start("import time; time.sleep(60)", lambda server: pids.append(server.pid))
        self.assertFalse(running(pids[0]))

    def test_ends_with_a_tool_that_is_killed(self):
        tool = self.tool("server = Server('s', ['sleep', '60'], '', here, lambda _: True); ready.write_text(str(server.pid)); "
                         "time.sleep(60)")
        pid = int((self.path / "ready").read_text())
        self.assertTrue(running(pid))
        tool.kill()
        self.wait_until(lambda: not running(pid))


class Commands(Folder):
    def test_failure_of_a_command_is_reported(self):
        execute(["true"])
        with self.assertRaisesRegex(ToolError, r"it is broken \("):
            execute([*PYTHON, "import sys; print('first\\nit is broken', file=sys.stderr); exit(1)"])
        with self.assertRaisesRegex(ToolError, "exit code 7"):
            execute([*PYTHON, "exit(7)"])
        with self.assertRaisesRegex(ToolError, "did not end in 0.1 s: sleep 60"):
            execute(["sleep", "60"], seconds=0.1)

    def test_a_server_that_is_gone_is_told_first(self):
        server = Server("it", [*PYTHON, "import time; time.sleep(60)"], "", self.path, lambda _: True)
        server.stop()
        with self.assertRaisesRegex(ToolError, "it ended with"):
            execute(["false"], server)

    def test_environment_is_added(self):
        execute([*PYTHON, "import os; exit(os.environ['TMPDIR'] != 'x' or 'PATH' not in os.environ)"], environment={"TMPDIR": "x"})

    def test_ends_with_a_tool_that_is_killed(self):
        script = f"import os, pathlib, time; pathlib.Path({str(self.path / 'ready')!r}).write_text(str(os.getpid())); time.sleep(60)"
        tool = self.tool(f"execute([sys.executable, '-c', {script!r}])")
        pid = int((self.path / "ready").read_text())
        tool.kill()
        self.wait_until(lambda: not running(pid))

    def test_shown_has_no_paths_of_this_machine(self):
        build = programs.ROOT / "build"
        command = [str(build / "bin" / "erda-ycsb"), "-a", "shm:/tmp/x/s", "--server-pid", "123", "--save", ""]
        self.assertEqual(shown(command, build, pathlib.Path("/tmp/x")),
                         "build/bin/erda-ycsb -a shm:DIR/s --server-pid PID --save ''")


class Signals(Folder):
    def test_each_signal_lets_the_tool_clean_up(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                tool = self.tool("ready.write_text('yes'); execute(['sleep', '60'])")
                tool.send_signal(number)
                self.assertEqual(tool.wait(20), 128 + number)
                self.assertEqual(tool.stderr.read(), "tool: stopped\n")
                self.assertEqual(self.folders(), [])
                (self.path / "ready").unlink()

    def test_a_second_signal_does_not_disturb_the_cleaning_up(self):
        tool = self.tool("""
        try:
            ready.write_text('yes')
            time.sleep(60)
        finally:
            (here / 'cleaning').touch()
            time.sleep(0.5)""")
        tool.terminate()
        self.wait_until((self.path / "cleaning").exists)
        tool.terminate()
        tool.send_signal(signal.SIGINT)
        self.assertEqual(tool.wait(20), 128 + signal.SIGTERM)
        self.assertEqual(self.folders(), [])

    def test_ignored_signals_stay_ignored(self):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # As nohup does.
        try:
            tool = self.tool("ready.write_text('yes'); time.sleep(0.5)")
        finally:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
        tool.send_signal(signal.SIGHUP)
        self.assertEqual(tool.wait(20), 0)

    def test_an_error_is_one_line(self):
        tool = self.tool("ready.write_text('yes'); raise ToolError('no room')")
        self.assertEqual(tool.wait(20), 1)
        self.assertEqual(tool.stderr.read(), "tool: no room\n")


class Arguments(unittest.TestCase):
    def test_numbers_sizes_and_lists(self):
        sizes = list_of(size_up_to(512 << 10))
        self.assertEqual(sizes("1k,64,512K,64"), [64, 1024, 512 << 10])
        for bad in ("", "0", "513K", "1M", "-1", "x", "64,,1", "9" * 5000):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, "not a size from 1 to 512K"):
                sizes(bad)
        self.assertEqual(number_from(2, 256)("256"), 256)
        for bad in ("", "1", "257", "1.5", "9" * 5000):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, "not a number from 2 to 256"):
                number_from(2, 256)(bad)


class Runs(Folder):
    """Runs of a driver that does 100,000 operations per second."""

    def setUp(self):
        super().setUp()
        self.server = Server("it", ["sleep", "60"], "shm:x", self.path, lambda _: True)
        self.addCleanup(self.server.stop)
        self.calls = []
        self.not_found = 0

    def run_once(self, seconds, rate, in_flight=1):
        def fake(command, server):
            self.assertIs(server, self.server)
            operations = int(command[command.index("--operations") + 1])
            self.calls.append(operations)
            result = {"operations": operations, "not_found": self.not_found, "run": {"seconds": operations / 1e5}}
            pathlib.Path(command[command.index("--json") + 1]).write_text(json.dumps(result))

        with unittest.mock.patch.object(ycsb, "execute", fake):
            return ycsb.measured(["ycsb"], self.server, in_flight, seconds, rate, self.path / "result.json")

    def test_a_known_rate_is_one_run(self):
        self.assertEqual(self.run_once(0.5, 1e5)["operations"], 50_000)
        self.assertEqual(self.calls, [50_000])

    def test_a_run_that_was_too_short_is_made_longer(self):
        self.assertEqual(self.run_once(0.5, None)["operations"], 50_000)
        self.assertEqual(self.calls, [1000, 50_000])

    def test_each_thread_has_something_to_do(self):
        self.assertEqual(self.run_once(0.001, 1, in_flight=256)["operations"], 20 * 256)

    def test_values_that_are_not_there_are_an_error(self):
        self.not_found = 2
        with self.assertRaisesRegex(ToolError, "shm:x does not have 2 values"):
            self.run_once(0.5, 1e5)


if __name__ == "__main__":
    unittest.main()
