"""The tests that a change can affect: those whose programs depend on the changed files."""

from pathlib import Path

from . import affected, checks
from .counts import of_ctest
from .plan import JOINED
from .step import Outcome, Step, check, command, commands, output_of


def steps(commit, logs, jobs):
    files, removed = _changed_files(commit)
    found = [Step("scripts", "Scripts parse", check(checks.scripts)), Step("names", "File names", check(checks.names)),
             Step("prose", "Language of documents and comments", command("tools/check-prose"))]
    formatted = [file for file in files if Path(file).suffix in (".h", ".cc", ".c")]
    if formatted:
        found.append(Step("format", "Formatting of the changed files",
                          command("clang-format", "--dry-run", "-Werror", *formatted)))
    # These files are compiled for the simulator's program alone, or differ there.
    simulator = any(file.startswith("tests/sim/") or file == "src/base/planted.h" for file in files)
    targets = ["all", "erda-sim"] if simulator else ["all"]
    found.append(Step("build", "Build: gcc, release", commands([
        ["cmake", "--preset", "test", *JOINED],
        ["cmake", "--build", "--preset", "test", "-j", jobs, "--target", *targets]])))
    found.append(Step("ctest", "Tests of what depends on the changed files",
                      _tests(logs / "changed.xml", jobs, files + removed), needs=("build",), counts_tests=True))
    models = [file for file in files if file.startswith("tests/model/")]
    if models:
        found += [Step(f"model-{path.stem}", f"Model: {path.stem}", command("python3", path, timeout=900),
                       after=("build",), lane="models")
                  for path in sorted(Path("tests/model").glob("*.py")) if not path.name.startswith("_")
                  and (str(path) in models or any(Path(file).name.startswith("_") for file in models))]
    return found


def _changed_files(commit):
    """Returns the files that differ from the commit, and those that are gone since."""
    there, gone = (output_of(["git", "diff", "--name-only", "--no-renames", f"--diff-filter={kind}", commit]).splitlines()
                   for kind in ("d", "D"))
    there += output_of(["git", "ls-files", "--others", "--exclude-standard"]).splitlines()
    return sorted(set(there)), gone


def layers(files, build=Path("build")):
    """Returns the beginnings of the names of the tests that the files can affect."""
    found = set()
    products = affected.products(build, files)
    found |= {name.removesuffix("_tests") for name in products if name.endswith("_tests")}
    if any(name.startswith(("erda-", "liberda")) for name in products):
        found |= {"programs", "e2e", "c_api", "examples", "exports", "tools"}
    if any(not file.startswith(("src/", "include/")) and Path(file).suffix != ".cc" for file in files):
        found.add("tools")
    return found


def _tests(results, jobs, files):
    def run(log):
        names = layers(files)
        if not names:
            return Outcome(1, 0)
        results.unlink(missing_ok=True)
        pattern = "^(" + "|".join(sorted(names)) + ")\\."
        status = log.call(["ctest", "--test-dir", "build", "-j", jobs, "--timeout", "120", "--output-on-failure", "-R",
                           pattern, "--output-junit", results.absolute()], timeout=1200)
        outcome = of_ctest(results)
        if status != 0 and outcome.failed == 0:
            return Outcome(outcome.passed, 1, log.tail())
        return outcome

    return run
