"""Runs GoogleTest programs of a sanitizer's build: one process for each suite, since a start for each test is slow."""

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

from . import process
from .counts import of_google_test
from .step import output_of

SUITE_SECONDS_MAX = 600

# Tests that a sanitizer's build leaves out, beside those with NoSanitizer in their names. They take long there, and
# other tests run the same code. The build by gcc has them all.
_FILL_POOLS = ["ErdaPoolTest.AFullPoolGrowsAndGoesOn", "ErdaPoolTest.PlannedPoolTakesTheRecordsAndLittleMore",
               "LogTest.FillingPoolIsLoggedOncePerLevel"]
_MEASURE = ["BenchTest.MeasuresCleaning", "YcsbTest.GetsNeedNothingOfTheServersProcessor"]
LEFT_OUT = {
    "build-asan": [*_FILL_POOLS, *_MEASURE,
                   "FuzzTest.*Random*",  # Separate steps run the fuzzers with this sanitizer.
                   "PlantedDefect.*",  # Tests of the checker of histories.
                   # Each order of stores, and many by chance, with one method of flushing instead of three.
                   *(f"Flush/{suite}.*/{flush}" for suite in ("OrdersTest", "RandomTest")
                     for flush in ("NoFlush", "ServerFlush"))],
    "build-tsan": [*_FILL_POOLS, *_MEASURE,
                   "SoakTest.OverwritesASmallPoolManyTimes",
                   "All/SchemeStorageTest.*",  # One thread.
                   # The same threads as with the other pools. (Tests of several clients have other names, and stay.)
                   "E2e/*/PowerSafe"],
}


def not_randomized(command):
    """Disables the randomization of addresses. With many random bits, a kernel may map memory where clang 14 places the
    sanitizers' shadow memory."""
    return ["setarch", "-R", *command]


def sanitized(build, results):
    """Returns a step that runs all tests of a build."""

    def run(log):
        shutil.rmtree(results, ignore_errors=True)
        results.mkdir(parents=True)
        suites = _suites(build)
        outputs = [results / f"{program.name}-{suite.replace('/', '_')}" for program, suite in suites]
        # One more at a time than there are processors, since many wait.
        with ThreadPoolExecutor(len(os.sched_getaffinity(0)) + 1) as pool:
            for cpu_seconds, said in pool.map(_run_suite, suites, outputs):
                log.cpu_seconds += cpu_seconds
                if said:
                    log.say(said)
        outcome = of_google_test([output.with_suffix(".xml") for output in outputs])
        if outcome.failed:
            outcome.report = log.tail(100) + "\n" + outcome.report
        return outcome

    return run


def _suites(build):
    """Returns (program, suite) for each suite that a sanitizer's build has."""
    targets = output_of(["ninja", "-C", build, "-t", "targets", "all"])
    programs = sorted({line.split(":")[0] for line in targets.splitlines()
                       if line.startswith("tests/") and line.split(":")[0].endswith("_tests")})
    programs = [program for program in programs if program.count("/") == 1]
    found = []
    for program in reversed(programs):  # The last ones have the long suites.
        listed = output_of(not_randomized([build / program, "--gtest_list_tests", f"--gtest_filter={_without(build)}"]))
        found += [(build / program, name) for name in re.findall(r"^(\S+)\.(?:\s+#.*)?$", listed, re.MULTILINE)]
    return found


def _without(build):
    """Returns the end of a filter that excludes the tests which the build leaves out."""
    return "-" + ":".join(["*NoSanitizer*", *LEFT_OUT[build.name]])


def _run_suite(suite, output):
    """Returns (processor seconds, output of a failure). A failed suite without results of its tests leaves no result
    file."""
    program, name = suite
    results = output.with_suffix(".xml")
    with open(output.with_suffix(".log"), "w+", errors="replace") as log:
        ended = process.run(
            not_randomized([str(program), f"--gtest_filter={name}.*{_without(program.parents[1])}",
                            f"--gtest_output=xml:{results}"]),
            log, SUITE_SECONDS_MAX)
        if ended.status == 0:
            return ended.cpu_seconds, ""
        # A sanitizer's finding at the end fails no test, so the results must not count as passed.
        if results.exists() and "<failure" not in results.read_text(errors="replace"):
            results.unlink()
        log.seek(0)
        return ended.cpu_seconds, f"{program.name} {name}: status {ended.status}\n{log.read()}"
