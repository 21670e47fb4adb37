"""The program that each model is: its arguments, its output and its exit code."""

import sys
import time

WORDS = {True: "holds", False: "BROKEN", None: "TOO LARGE"}


def main(usage, check, design, planted, quick=None):
    """Runs a model by the arguments of the process, and returns the exit code of the process.

    `usage` is the docstring of the model: its second paragraph is the usage text. `check(configuration)` returns what
    `explore` returns. `design` maps names to configurations that must hold. `planted` maps defects to configurations
    that must break with them.

    A model that takes long passes `quick`: the names of the configurations that a run without arguments checks. Such a
    model has the options --full and --list, and prints how long each configuration took.
    """
    args = sys.argv[1:]
    if len(args) == 2 and args[0] == "--trace" and args[1] in planted:
        return min(check_planted(check, {args[1]: planted[args[1]]}, with_traces=True), 1)
    if args == ["--list"] and quick is not None:
        print("\n".join([*design, *planted]))
        return 0
    if args and (args != ["--full"] or quick is None):
        print(usage.split("\n\n")[1], file=sys.stderr)
        return 2
    chosen = {name: c for name, c in design.items() if args or quick is None or name in quick}
    bad = check_planted(check, planted) + check_design(check, chosen, with_times=quick is not None)
    print("all hold, all planted defects found" if bad == 0 else f"{bad} failed")
    return min(bad, 1)


def check_design(check, design, with_times=False):
    """Returns how many configurations do not hold."""
    bad = 0
    for name, c in design.items():
        began = time.monotonic()
        ok, n, trace = check(c)
        took = f", {time.monotonic() - began:.1f} s" if with_times else ""
        print(f"{WORDS[ok]}: {name} ({n} states{took})", flush=True)
        print_trace(trace)
        bad += ok is not True
    return bad


def check_planted(check, planted, with_traces=False):
    """Returns how many defects do not break their configurations."""
    bad = 0
    for name, c in planted.items():
        c.defect = name
        ok, n, trace = check(c)
        print(f"{'found' if ok is False else 'NOT FOUND'}: {name} ({n} states, {len(trace)} steps)", flush=True)
        if with_traces:
            print_trace(trace)
        bad += ok is not False
    return bad


def print_trace(trace):
    print("".join(f"    {label}\n" for label in trace), end="")
