"""The test command, after tools/test has installed the packages."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from testing import changed, plan, process  # noqa: E402
from testing.schedule import Schedule  # noqa: E402


def main():
    options = _options()
    root = Path(__file__).resolve().parents[2]
    os.chdir(root)
    _set_environment(root)
    logs = root / "build" / "test-logs"
    logs.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="erda-test."))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, frame: _leave(scratch, 128 + received))
    jobs = str(len(os.sched_getaffinity(0)))
    if options.changed:
        steps = changed.steps(options.changed, logs, jobs)
    elif options.all:
        steps = plan.all_steps(logs, scratch, jobs, options.lab)
    else:
        steps = plan.quick_steps(logs, scratch, jobs, options.lab)
    schedule = Schedule(steps, logs)
    try:
        schedule.run()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(schedule.closing_lines(), flush=True)
    return 0 if schedule.failed == 0 else 1


def _options():
    parser = argparse.ArgumentParser(
        prog="tools/test", description="Checks Erda on Debian 12: installs missing packages, builds and tests. The last "
        "line counts each test and each other step; a skipped test has failed. Logs are in build/test-logs/.")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--all", action="store_true", help="run every check, also sanitizers, fuzzers, models, and all of the lab")
    group.add_argument("--changed", nargs="?", const="HEAD", metavar="COMMIT",
                       help="run only the checks that a change since COMMIT can affect (default: HEAD, so the changes not committed)")
    parser.add_argument("--no-lab", dest="lab", action="store_false", help="leave out the emulated lab, so all tests over RDMA")
    return parser.parse_args()


def _set_environment(root):
    """Objects are shared with other clones through ccache, which takes the paths of the tree as relative ones."""
    os.environ.update({
        "CXX": "g++",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "CMAKE_CXX_COMPILER_LAUNCHER": "ccache",
        "CMAKE_C_COMPILER_LAUNCHER": "ccache",
        "CCACHE_BASEDIR": str(root),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_SLOPPINESS": "pch_defines,time_macros",
    })


def _leave(scratch, status):
    process.stop_all()
    shutil.rmtree(scratch, ignore_errors=True)
    os._exit(status)


if __name__ == "__main__":
    sys.exit(main())
