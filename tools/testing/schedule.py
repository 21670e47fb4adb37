"""Runs the steps: those of one lane one after the other, the lanes in parallel."""

import threading
import time
import traceback

from . import process
from .step import Log, Outcome, seconds_since


class Schedule:
    def __init__(self, steps, logs):
        self._steps = {step.name: step for step in steps}
        self._logs = logs
        self._lock = threading.Lock()
        self._begin = time.monotonic()
        self._cpu_seconds = 0.0
        self._ended = 0
        self.passed = 0
        self.failed = 0

    def run(self):
        """Returns when every step has ended."""
        lanes = {}
        for step in self._steps.values():
            lanes.setdefault(step.lane, []).append(step)
        threads = [threading.Thread(target=self._run_lane, args=(steps,), daemon=True) for steps in lanes.values()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def closing_lines(self):
        cores = self._cpu_seconds / max(seconds_since(self._begin), 1)
        took = f"{seconds_since(self._begin):.0f} s, {self._cpu_seconds:.0f} s of processor time, {cores:.1f} at a time"
        return f"\n{took}\n{self.passed} passed, {self.failed} failed"

    def _run_lane(self, steps):
        try:
            for step in steps:
                self._run_step(step)
        except process.Stopped:
            pass

    def _run_step(self, step):
        needed = [self._steps[name] for name in step.needs if name in self._steps]
        for other in needed + [self._steps[name] for name in step.after if name in self._steps]:
            other.done.wait()
        missing = [other.title for other in needed if not other.ok]
        if missing:
            return self._end(step, Outcome(0, 1, f"not run: it needs what failed ({', '.join(missing)})"), None, 0)
        self._print(f"   ...    {step.title}")
        start = time.monotonic()
        log = Log(self._logs / f"{step.name}.log")
        try:
            outcome = step.run(log)
        except process.Stopped:
            raise
        except Exception:  # A fault of the test command must not look like a pass.
            outcome = Outcome(0, 1, traceback.format_exc())
        log.close()
        self._end(step, outcome, log, seconds_since(start))

    def _end(self, step, outcome, log, seconds):
        with self._lock:
            self._ended += 1
            self.passed += outcome.passed
            self.failed += outcome.failed
            cpu = log.cpu_seconds if log else 0
            self._cpu_seconds += cpu
            verdict = "ok" if outcome.failed == 0 else "FAILED"
            tests = f", {outcome.passed} passed" if step.counts_tests else ""
            if step.counts_tests and outcome.failed:
                tests += f", {outcome.failed} failed"
            if outcome.note:
                tests += f", {outcome.note}"
            place = f"[{self._ended}/{len(self._steps)}]"
            print(f"{place:>9} {verdict:<6} {step.title}{tests}: {seconds:.0f} s, processor {cpu:.0f} s", flush=True)
            if outcome.failed:
                print("\n".join("   | " + line for line in outcome.report.splitlines()))
                if log:
                    print(f"   | the whole log: {log.path}", flush=True)
        step.ok = outcome.failed == 0
        step.done.set()

    def _print(self, line):
        with self._lock:
            print(line, flush=True)
