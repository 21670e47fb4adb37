"""A server in a temporary folder, and commands of documents that are run against it."""

import os
import pathlib
import subprocess
import tempfile

from binaries import BUILD


class LiveServer:
    """A context: a server of a new pool at `address`, in memory if no file is named, and a folder to work in."""

    def __init__(self, pool: str = "dram:", options: tuple[str, ...] = ()):
        self._options = ["--pool", pool, "--size", "64M", *options]

    def __enter__(self):
        self._temporary = tempfile.TemporaryDirectory(prefix="erda-live.")
        self.folder = pathlib.Path(self._temporary.name)
        self.address = f"shm:{self.folder}/socket"
        self.start()
        return self

    def start(self):
        command = [BUILD / "bin" / "erda-server", "--listen", self.address, *self._options]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=self.folder)
        self.wait_for("ready")

    def wait_for(self, text: str) -> str:
        """The next line on the server's stdout that has it."""
        for line in self.server.stdout:
            if text in line:
                return line
        raise AssertionError(f"the server ended without saying {text}")

    def __exit__(self, *_):
        self.server.terminate()
        self.server.communicate(timeout=30)
        self._temporary.cleanup()

    def run(self, script: str) -> subprocess.CompletedProcess:
        """By bash, which ends at the first command that fails; the programs are those of the build."""
        environment = os.environ | {"PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "HOSTNAME": "machine"}
        return subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, cwd=self.folder,
                              env=environment, timeout=50)
