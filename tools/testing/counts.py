"""Counts the results in the files of ctest and GoogleTest. A skipped test has failed."""

import xml.etree.ElementTree as ElementTree

from .step import Outcome

SHOWN_FAILURES = 5


def of_ctest(file):
    """Returns the outcome in a JUnit file of ctest."""
    try:
        cases = ElementTree.parse(file).getroot().findall("testcase")
    except (OSError, ElementTree.ParseError) as error:
        return Outcome(0, 1, f"no results: {error}")
    if not cases:
        return Outcome(0, 1, "there were no tests")
    bad = [case for case in cases if case.get("status") != "run"]
    lines = []
    for number, case in enumerate(bad):
        lines.append(f"{case.get('name')}: {'failed' if case.get('status') == 'fail' else 'skipped or disabled'}")
        if number < SHOWN_FAILURES:
            lines += ["  " + line for line in (case.findtext("system-out") or "").splitlines()[-40:]]
    return Outcome(len(cases) - len(bad), len(bad), "\n".join(lines))


def of_google_test(files):
    """Returns the outcome in files that GoogleTest wrote. A file without a test counts as one failure."""
    good = bad = 0
    lines = []
    for file in files:
        try:
            cases = ElementTree.parse(file).getroot().findall("testsuite/testcase")
        except (OSError, ElementTree.ParseError) as error:
            lines.append(f"no results: {error}")
            cases = []
        failed = [case for case in cases if case.get("result") != "completed" or case.find("failure") is not None]
        for case in failed:
            lines.append(f"{case.get('classname')}.{case.get('name')}: failed or skipped")
            lines += ["  " + (failure.get("message") or "") for failure in case.findall("failure")]
        good += len(cases) - len(failed)
        bad += len(failed) if cases else 1
    return Outcome(good, bad, "\n".join(lines))
