"""The tests that a change can affect, by the build. ninja builds again all that depends on the changed files. The test
programs that it built are the ones to run."""

from pathlib import Path

from . import checks
from .counts import of_ctest
from .step import Outcome, Step, check, command, output_of


def steps(commit, logs, jobs):
    files = _changed_files(commit)
    found = [Step("scripts", "Scripts parse", check(checks.scripts)), Step("names", "File names", check(checks.names)),
             Step("prose", "Language of documents and comments", command("tools/check-prose"))]
    formatted = [file for file in files if Path(file).suffix in (".h", ".cc", ".c")]
    if formatted:
        found.append(Step("format", "Formatting of the changed files",
                          command("clang-format", "--dry-run", "-Werror", *formatted)))
    built = set()
    found.append(Step("build", "Build: gcc, release", _build(jobs, built)))
    found.append(Step("ctest", "Tests of what was built", _tests(logs / "changed.xml", jobs, files, built),
                      needs=("build",), counts_tests=True))
    models = [file for file in files if file.startswith("tests/model/")]
    if models:
        found += [Step(f"model-{path.stem}", f"Model: {path.stem}", command("python3", path, timeout=900),
                       after=("build",), lane="models")
                  for path in sorted(Path("tests/model").glob("*.py")) if not path.name.startswith("_")
                  and (str(path) in models or any(Path(file).name.startswith("_") for file in models))]
    return found


def _changed_files(commit):
    names = output_of(["git", "diff", "--name-only", "--diff-filter=d", commit]).splitlines()
    names += output_of(["git", "ls-files", "--others", "--exclude-standard"]).splitlines()
    return sorted(set(names))


def _times():
    return {path: path.stat().st_mtime_ns
            for folder in ("build/tests", "build/bin", "build/lib") for path in Path(folder).glob("*") if path.is_file()}


def _build(jobs, built):
    def run(log):
        before = _times()
        for words in (["cmake", "--preset", "test"], ["cmake", "--build", "--preset", "test", "-j", jobs]):
            if log.call(words) != 0:
                return Outcome(0, 1, log.tail())
        built |= {path.name for path, time in _times().items() if before.get(path) != time}
        return Outcome(1, 0)

    return run


def _tests(results, jobs, files, built):
    def run(log):
        layers = {name.removesuffix("_tests") for name in built if name.endswith("_tests")}
        if any(name.startswith("erda-") or name.startswith("liberda") for name in built):
            layers |= {"programs", "e2e", "c_api", "examples", "exports"}
        if any(not file.startswith(("src/", "include/")) and Path(file).suffix != ".cc" for file in files):
            layers.add("tools")
        if not layers:
            return Outcome(1, 0)
        results.unlink(missing_ok=True)
        pattern = "^(" + "|".join(sorted(layers)) + ")\\."
        status = log.call(["ctest", "--test-dir", "build", "-j", jobs, "--timeout", "120", "--output-on-failure", "-R",
                           pattern, "--output-junit", results.absolute()], timeout=1200)
        outcome = of_ctest(results)
        if status != 0 and outcome.failed == 0:
            return Outcome(outcome.passed, 1, log.tail())
        return outcome

    return run
