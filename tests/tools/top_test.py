"""erda-cli top: its output to a pipe, and its use of a terminal, which must be restored afterwards."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import unittest

from binaries import BUILD
from live_server import LiveServer

OPEN, CLOSE = b"\x1b[?1049h\x1b[?25l", b"\x1b[?25h\x1b[?1049l"


class Terminal:
    """erda-cli top on a separate terminal."""

    def __init__(self, test: unittest.TestCase, address: str, rows: int = 24, columns: int = 80):
        self._master, slave = pty.openpty()
        test.addCleanup(os.close, self._master)
        self._slave = slave
        test.addCleanup(os.close, slave)
        self.resize(rows, columns)
        self._modes = termios.tcgetattr(slave)
        self.process = subprocess.Popen([BUILD / "bin" / "erda-cli", "-a", address, "top", "--interval-ms", "100"],
                                        stdin=slave, stdout=slave, stderr=subprocess.PIPE)
        test.addCleanup(self._end)
        self.shown = b""

    def resize(self, rows: int, columns: int):
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, text: bytes, times: int = 1):
        while self.shown.count(text) < times:
            ready, _, _ = select.select([self._master], [], [], 30)
            assert ready, (text, self.shown)
            self.shown += os.read(self._master, 65536)

    def screens(self) -> list[bytes]:
        """Returns the whole screens."""
        return [part.split(b"\x1b[J")[0] for part in self.shown.split(b"\x1b[H")[1:] if b"\x1b[J" in part]

    def type(self, keys: bytes):
        os.write(self._master, keys)

    def modes_changed(self) -> bool:
        return termios.tcgetattr(self._slave) != self._modes

    def end(self) -> tuple[int, str]:
        """Returns its exit code and stderr. `shown` then has all that it wrote to the terminal."""
        errors = self.process.stderr.read().decode()
        code = self.process.wait()
        while select.select([self._master], [], [], 0)[0]:
            self.shown += os.read(self._master, 65536)
        return code, errors

    def _end(self):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()


class OnATerminal(unittest.TestCase):
    def setUp(self):
        self.live = LiveServer()
        self.live.__enter__()
        self.addCleanup(self.live.__exit__)

    def check_as_it_was(self, terminal: Terminal):
        self.assertFalse(terminal.modes_changed())
        self.assertTrue(terminal.shown.startswith(OPEN))
        self.assertTrue(terminal.shown.endswith(CLOSE))

    def test_q_ends_it(self):
        terminal = Terminal(self, self.live.address)
        terminal.read_until(b"In the last")
        self.assertTrue(terminal.modes_changed(), "or this test proves nothing")
        terminal.type(b"xq")
        self.assertEqual(terminal.end(), (0, ""))
        self.check_as_it_was(terminal)

    def test_ctrl_c_ends_it(self):
        terminal = Terminal(self, self.live.address)
        terminal.read_until(b"In the last")
        terminal.process.send_signal(signal.SIGINT)
        self.assertEqual(terminal.end(), (0, ""))
        self.check_as_it_was(terminal)

    def test_signals_end_it(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            terminal = Terminal(self, self.live.address)
            terminal.read_until(b"Since the server's start")
            terminal.process.send_signal(number)
            self.assertEqual(terminal.end(), (0, ""))
            self.check_as_it_was(terminal)

    def test_the_end_of_the_server_ends_it(self):
        terminal = Terminal(self, self.live.address)
        terminal.read_until(b"In the last")
        self.live.server.kill()
        code, errors = terminal.end()
        self.assertEqual(code, 3, errors)
        self.assertRegex(errors, r"\Aerda-cli: unavailable: shm:.*\n\Z")
        self.check_as_it_was(terminal)

    def test_nothing_is_wider_or_longer_than_the_terminal(self):
        terminal = Terminal(self, self.live.address, rows=5, columns=30)
        terminal.read_until(b"\x1b[J", times=2)
        # No process gets a signal, as the terminal controls none: the next screen has the new size.
        terminal.resize(40, 100)
        terminal.read_until(b"violations\x1b[K\r\n")
        terminal.type(b"q")
        self.assertEqual(terminal.end()[0], 0)
        small, large = terminal.screens()[0], terminal.screens()[-1]
        lines = small.replace(b"\x1b[K", b"").split(b"\r\n")
        self.assertEqual(len(lines), 5)
        self.assertEqual(max(map(len, lines)), 30)
        self.assertGreater(len(large.split(b"\r\n")), 10)

    def test_a_terminal_that_changes_its_size_is_drawn_again(self):
        terminal = Terminal(self, self.live.address)
        terminal.read_until(b"In the last")
        os.kill(terminal.process.pid, signal.SIGSTOP)
        terminal.resize(3, 20)
        os.kill(terminal.process.pid, signal.SIGWINCH)
        os.kill(terminal.process.pid, signal.SIGCONT)
        terminal.read_until(b"\x1b[J", times=len(terminal.screens()) + 2)
        self.assertEqual(len(terminal.screens()[-1].split(b"\r\n")), 3)
        terminal.type(b"Q")
        self.assertEqual(terminal.end(), (0, ""))
        self.check_as_it_was(terminal)


class Piped(unittest.TestCase):
    def setUp(self):
        self.live = LiveServer()
        self.live.__enter__()
        self.addCleanup(self.live.__exit__)

    def run_top(self, options: str) -> subprocess.CompletedProcess:
        return self.live.run(f"erda-cli -a {self.live.address} top {options}")

    def test_screens_follow_each_other(self):
        cli = f"erda-cli -a {self.live.address}"
        done = self.live.run(f"for i in 1 2 3; do {cli} put key$i value; done; {cli} del key1; {cli} put --if-absent key2 x || :")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_top("-n 3 --interval-ms 100")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("\x1b", done.stdout)
        screens = re.split(r"\n\n(?=\d\d:)", done.stdout)
        self.assertEqual(len(screens), 3)
        self.assertRegex(screens[0], rf"\A\d\d:\d\d:\d\d  {re.escape(self.live.address)}  Since the server's start\n")
        self.assertRegex(screens[0], r"\nindex     2 keys, ")
        self.assertRegex(screens[0], r"\nput_inline +4 +1 ")
        self.assertRegex(screens[0], r"\ndelete +1 +0 ")
        self.assertRegex(screens[0], r"\nshm +\d+ +[1-9]\d* +\d+ +0\Z")
        for screen in screens[1:]:
            self.assertIn("  In the last ", screen)
            self.assertRegex(screen, r"\nput_inline +0 +0 +- +- +-\n")

    def test_a_signal_ends_it(self):
        process = subprocess.Popen([BUILD / "bin" / "erda-cli", "-a", self.live.address, "top", "--interval-ms", "3600000"],
                                   stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        process.terminate()
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)

    def test_bad_usage_and_unwritable_files_are_errors(self):
        for options in ("--interval-ms 99", "--interval-ms 1.5", "-n -1", "-n x", "more"):
            self.assertEqual(self.run_top(options).returncode, 2, options)
        done = self.run_top("-n 1 > /dev/full")
        self.assertEqual(done.returncode, 5)
        self.assertIn("cannot write to stdout", done.stderr)

    def test_no_server(self):
        self.live.server.kill()
        self.live.server.wait()
        done = self.run_top("-n 1")
        self.assertEqual((done.returncode, done.stdout), (3, ""))


if __name__ == "__main__":
    unittest.main()
