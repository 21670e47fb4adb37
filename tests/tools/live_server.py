"""A server in a temporary folder. Tests run commands of documents against it."""

import os
import pathlib
import subprocess
import tempfile

from binaries import BUILD


class LiveServer:
    """A context: a server of a new pool at `address`, in memory unless a file is named, and a folder to work in.

    survives_limits: a write beyond a limit of file sizes fails, and does not end the server.
    """

    def __init__(self, pool: str = "dram:", options: tuple[str, ...] = (), survives_limits: bool = False):
        self._restore_signals = not survives_limits  # Python ignores SIGXFSZ, and so does its child then.
        self._options = ["--pool", pool, "--size", "64M", *options]

    def __enter__(self):
        self._temporary = tempfile.TemporaryDirectory(prefix="erda-live.")
        self.folder = pathlib.Path(self._temporary.name)
        self.address = f"shm:{self.folder}/socket"
        self.start()
        return self

    def start(self):
        command = [BUILD / "bin" / "erda-server", "--listen", self.address, *self._options]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=self.folder,
                                       restore_signals=self._restore_signals)
        self.wait_for("ready")

    def wait_for(self, text: str) -> str:
        """Returns the next line on the server's stdout that contains the text."""
        for line in self.server.stdout:
            if text in line:
                return line
        raise AssertionError(f"the server ended without saying {text}")

    def __exit__(self, *_):
        self.server.terminate()
        self.server.communicate(timeout=30)
        self._temporary.cleanup()

    def run(self, script: str) -> subprocess.CompletedProcess:
        """Runs the script by bash, which ends at the first command that fails. The programs are those of the build."""
        environment = os.environ | {"PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "HOSTNAME": "machine"}
        return subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, cwd=self.folder,
                              env=environment, timeout=50)
