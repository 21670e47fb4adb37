"""Runs the GoogleTest programs of a build: one process for each suite, since a start for each test is slow."""

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

from . import process
from .counts import of_google_test
from .passed import Passed, key_of
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
                   "InspectTest.*",  # erda-inspect has one thread.
                   # The same threads as with the other pools. (Tests of several clients have other names, and stay.)
                   "E2e/*/PowerSafe"],
}

# Long suites that give the same result each time: one thread, hand-made clocks, fixed seeds, and pools in plain memory.
# A suite that has passed is not run again before its program changes. Tests that touch files, ask the kernel for pages,
# or draw random numbers run each time.
REPEATABLE = {
    "bench_tests": ("All/SchemeStorageTest",),
    "index_tests": ("IndexLoadNoSanitizerTest", "IndexRandomTest"),
    "server_tests": ("CleaningTest", "Flush/OrdersTest", "Flush/RandomTest", "MixedRandomTest", "RecoveryRandomTest",
                     "RestTest", "Scenes/RecoveredScene", "Scenes/SceneTest", "VerificationTest"),
    "sim_tests": ("EngineSimulation", "PlantedDefect"),
}


def not_randomized(command):
    """Disables the randomization of addresses. With many random bits, a kernel may map memory where clang 14 places the
    sanitizers' shadow memory."""
    return ["setarch", "-R", *command]


def work(build, results, folder=None):
    """Returns the work of a step that runs all tests of a build. `folder` is where it remembers what has passed."""

    def run(log):
        shutil.rmtree(results, ignore_errors=True)
        results.mkdir(parents=True)
        passed = Passed("suites", folder)
        keys = _keys(build, passed)
        all_suites = _suites(build)
        before = {suite: passed.checks(keys[suite]) for suite in all_suites if suite in keys}
        todo = [suite for suite in all_suites if not before.get(suite)]
        outputs = [results / f"{program.name}-{suite.replace('/', '_')}.xml" for program, suite in todo]
        # One more at a time than there are processors, since many wait.
        with ThreadPoolExecutor(len(os.sched_getaffinity(0)) + 1) as pool:
            for cpu_seconds, said in pool.map(_run_suite, todo, outputs):
                log.cpu_seconds += cpu_seconds
                if said:
                    log.say(said)
        outcome = of_google_test(outputs)
        outcome.passed += sum(before.values())
        if any(before.values()):
            outcome.note = f"{sum(before.values())} of them before, unchanged"
        if outcome.failed:
            outcome.report = log.tail(100) + "\n" + outcome.report
        same = set(_keys(build, passed).items()) & set(keys.items())
        for suite, output in zip(todo, outputs, strict=True):
            of_suite = of_google_test([output])
            if of_suite.failed == 0 and (suite, keys.get(suite)) in same:
                passed.add(keys[suite], of_suite.passed)
        return outcome

    return run


def _keys(build, passed):
    """Returns the keys, by suite, of all that gives the same result each time. Variables of the environment that tests
    or GoogleTest read are a part of each key."""
    settings = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(("ERDA_", "GTEST_"))]
    keys = {}
    for program in sorted({program for program, _ in _suites(build) if program.name in REPEATABLE}):
        of_program = key_of(passed.machine, " ".join([_without(build), *settings]), [program])
        keys |= {(program, suite): key_of(of_program, suite, []) for suite in REPEATABLE[program.name]}
    return keys


def _suites(build):
    """Returns (program, suite) for each suite that a build has."""
    targets = output_of(["ninja", "-C", build, "-t", "targets", "all"])
    programs = sorted({line.split(":")[0] for line in targets.splitlines()
                       if line.startswith("tests/") and line.split(":")[0].endswith("_tests")})
    programs = [program for program in programs if program.count("/") == 1 and program != "tests/lab_tests"]
    found = []
    for program in reversed(programs):  # The last ones have the long suites.
        listed = output_of(_command(build / program, "--gtest_list_tests", f"--gtest_filter=*{_without(build)}"))
        found += [(build / program, name) for name in re.findall(r"^(\S+)\.(?:\s+#.*)?$", listed, re.MULTILINE)]
    return found


def _command(program, *options):
    command = [str(program), *options]
    return not_randomized(command) if program.parents[1].name in LEFT_OUT else command


def _without(build):
    """Returns the end of a filter that excludes the tests which the build leaves out."""
    return "-" + ":".join(["*NoSanitizer*", *LEFT_OUT[build.name]]) if build.name in LEFT_OUT else ""


def _run_suite(suite, output):
    """Returns (processor seconds, output of a failure). A failed suite without results of its tests leaves no result
    file."""
    program, name = suite
    with open(output.with_suffix(".log"), "w+", errors="replace") as log:
        ended = process.run(
            _command(program, f"--gtest_filter={name}.*{_without(program.parents[1])}", f"--gtest_output=xml:{output}"),
            log, SUITE_SECONDS_MAX)
        if ended.status == 0:
            return ended.cpu_seconds, ""
        # A sanitizer's finding at the end fails no test, so the results must not count as passed.
        if output.exists() and "<failure" not in output.read_text(errors="replace"):
            output.unlink()
        log.seek(0)
        return ended.cpu_seconds, f"{program.name} {name}: status {ended.status}\n{log.read()}"
