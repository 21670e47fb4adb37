"""A server in a temporary folder, and commands of documents that are run against it."""

import os
import pathlib
import subprocess
import tempfile

from binaries import BUILD


class LiveServer:
    """A context: a server of a new pool, in memory, at `address`, and a folder to work in."""

    def __enter__(self):
        self._temporary = tempfile.TemporaryDirectory(prefix="erda-live.")
        self.folder = pathlib.Path(self._temporary.name)
        self.address = f"shm:{self.folder}/socket"
        self._server = subprocess.Popen([BUILD / "bin" / "erda-server", "--pool", "dram:", "--size", "64M", "--listen",
                                         self.address], stdout=subprocess.PIPE, text=True)
        assert "ready" in self._server.stdout.readline()
        return self

    def __exit__(self, *_):
        self._server.terminate()
        self._server.communicate(timeout=30)
        self._temporary.cleanup()

    def run(self, script: str) -> subprocess.CompletedProcess:
        """By bash, which ends at the first command that fails; the programs are those of the build."""
        environment = os.environ | {"PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "HOSTNAME": "machine"}
        return subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, cwd=self.folder,
                              env=environment, timeout=50)
