"""Measures puts in a lab guest: into a pool on NVM, and into pools with a journal and a front. See docs/lab.md.

rdma-lab imports this for the guest's command. The guest runs it with BUILD ROUNDS PUTS, and without the lab's package.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping

# The defaults of the options of rdma-lab: the pool and its image fit, and both fronts are larger than a turn.
MACHINE = {"nvdimm": 96 << 20, "front": 16 << 20, "pmr": 8 << 20, "disk": 512 << 20, "timeout": 1800.0}

RECORDS = 2000
VALUE_BYTES = 1024
SLOW = 10  # Where each put waits for the disk, a turn has a tenth of the puts.
NVM = "NVM"


def command(build: pathlib.Path, rounds: int, puts: int) -> list[str]:
    return ["python3", "-B", str(pathlib.Path(__file__).resolve()), str(build), str(rounds), str(puts)]


@dataclasses.dataclass(frozen=True)
class Pool:
    name: str
    options: list[str]  # of erda-server
    waits_for_disk: bool = False


@dataclasses.dataclass(frozen=True)
class Load:
    """The puts of a turn over one fabric. Times are microseconds."""

    mean: float
    median: float
    processor: float  # of all threads of the server, for a put


# The loads of a round, by the names of fabric and pool.
Round = dict[tuple[str, str], Load]


def pools(lab: Mapping[str, str]) -> list[Pool]:
    """Returns the pools in a guest with these variables. All have the same size."""
    size = ["--size", lab["ERDA_LAB_DAX_SIZE"]]

    def journaled(name: str, *front: str, waits_for_disk: bool = False) -> Pool:
        file = f"{lab['ERDA_LAB_DISK_DIR']}/{name.replace(' ', '-')}"
        return Pool(name, ["--pool", f"{file}.pool", *size, "--journal", f"{file}.journal,size=32M", *front],
                    waits_for_disk)

    return [
        Pool(NVM, ["--pool", lab["ERDA_LAB_DAX"], *size]),
        journaled("front in NVDIMM", "--journal-front", lab["ERDA_LAB_FRONT"]),
        journaled("front in PMR", "--journal-front", lab["ERDA_LAB_PMR"] + "_wc"),
        journaled("journal alone", waits_for_disk=True),
    ]


class Turns:
    """Measures one pool after the other. Each turn has a separate server, so that no other one has work meanwhile."""

    def __init__(self, programs: pathlib.Path, folder: pathlib.Path, addresses: dict[str, str], puts: int) -> None:
        self._programs = programs
        self._result = folder / "result.json"
        self._addresses = addresses  # By the names of the fabrics.
        self._puts = puts

    def run(self, pool: Pool, load: bool) -> Round:
        """`load`: the pool is new, and gets its records first."""
        listen = [word for address in self._addresses.values() for word in ("--listen", address)]
        words = [self._programs / "erda-server", *pool.options, "--shards", "1", "--region-size", "4M", *listen]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
            try:
                self._await(server, pool)
                if load:
                    self._ycsb(next(iter(self._addresses.values())), "--load-only")
                measured = {(fabric, pool.name): self._measure(address, server, pool)
                            for fabric, address in self._addresses.items()}
            finally:
                server.send_signal(signal.SIGTERM)
                server.communicate()
        if server.returncode != 0:
            raise RuntimeError(f"{pool.name}: the server ended with {server.returncode}")
        return measured

    @staticmethod
    def _await(server: subprocess.Popen[str], pool: Pool) -> None:
        assert server.stdout
        for line in server.stdout:
            if "ready" in line:
                return
        raise RuntimeError(f"{pool.name}: the server did not start")

    def _measure(self, address: str, server: subprocess.Popen[str], pool: Pool) -> Load:
        puts = max(1, self._puts // SLOW) if pool.waits_for_disk else self._puts
        warm_up = max(1, puts // 10)
        self._ycsb(address, "--no-load", "--operations", str(puts), "--warm-up", str(warm_up), "--server-pid",
                   str(server.pid), "--json", str(self._result))
        run = json.loads(self._result.read_text(encoding="utf-8"))["run"]
        return Load(run["put"]["mean_ns"] / 1000, run["put"]["p50_ns"] / 1000, run["server_cpu_seconds"] * 1e6 / puts)

    def _ycsb(self, address: str, *options: str) -> None:
        words = [self._programs / "erda-ycsb", "--address", address, "--workload", "update", "--records", str(RECORDS),
                 "--value-size", str(VALUE_BYTES), "--quiet", *options]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def _over_nvm(rounds: list[Round], fabric: str, pool: str, figure: str) -> str:
    """Returns the median of the ratios of each round, the least one and the largest one."""
    ratios = [getattr(done[fabric, pool], figure) / getattr(done[fabric, NVM], figure) for done in rounds]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def table(rounds: list[Round]) -> str:
    """Returns a row for each fabric and pool. Its times are medians over the rounds."""
    heading = ("fabric", "pool", "mean us", "median us", "processor us", "mean / NVM", "median / NVM")
    rows = [heading]
    for fabric, pool in sorted(rounds[0], key=lambda place: place[0]):
        loads = [done[fabric, pool] for done in rounds]
        times = [f"{statistics.median(getattr(load, figure) for load in loads):.1f}" for figure in ("mean", "median", "processor")]
        rows.append((fabric, pool, *times, *(_over_nvm(rounds, fabric, pool, figure) for figure in ("mean", "median"))))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def main(build: str, rounds: int, puts: int) -> None:
    lab = os.environ
    with tempfile.TemporaryDirectory(dir="/run") as folder:
        addresses = {"verbs": f"verbs://{lab['ERDA_LAB_SERVER']}:7700", "shm": f"shm:{folder}/socket"}
        turns = Turns(pathlib.Path(build, "bin"), pathlib.Path(folder), addresses, puts)
        every = pools(lab)
        done: list[Round] = []
        for number in range(rounds):
            first = number % len(every)
            measured: Round = {}
            for pool in every[first:] + every[:first]:  # Another one begins in each round.
                measured |= turns.run(pool, load=number == 0)
            done.append(measured)
            print(f"round {number + 1} of {rounds} is done", file=sys.stderr, flush=True)
    print(f"puts of {VALUE_BYTES} bytes by one client, one at a time; rounds: {rounds}, puts of a turn: {puts}\n{table(done)}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
