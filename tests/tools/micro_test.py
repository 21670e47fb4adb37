"""tools/micro: it reads the counts of callgrind, and reports each difference from the recorded ones."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from counting import baseline, callgrind, profile
from counting.baseline import SERVER, Baseline, differences
from counting.callgrind import Function
from measuring.programs import ToolError

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["ERDA_BUILD_DIR"]).resolve()
GCC = "GNU 12.2.0, Release, optimized as a whole"


def dump(work: str) -> str:
    """Returns a dump as callgrind writes it: Run costs 30 itself, and calls Serve twice. Serve costs 50 itself, and
    calls memcpy, which costs 20."""
    return f"""# callgrind format
version: 1
pid: 7
cmd:  build/micro/erda-micro
part: 1

desc: I1 cache:
desc: Trigger: Client Request: {work}

positions: line
events: Ir
summary: 100

ob=/build/micro/erda-micro
fl=bench/micro/shm_operations.cc
fn=erda::micro::(anonymous namespace)::ShmPut::Run()
41 10
fi=bench/micro/inputs.h
42 20
fe=bench/micro/shm_operations.cc
cfi=bench/micro/shm_store.cc
cfn={SERVER})
calls=2 90
43 70

fl=bench/micro/shm_store.cc
fn={SERVER})
90 50
cob=/lib/libc.so.6
cfi=???
cfn=memcpy
calls=2 0
91 20
fi=src/server/shard.cc
92 0

ob=/lib/libc.so.6
fl=???
fn=memcpy
0 20

totals: 100
"""


def results(runs: int, *works: str, build: str = GCC, counter: str = "callgrind") -> str:
    return json.dumps({
        "context": {"build": build, "instructions": counter},
        "benchmarks": [{"name": f"{work}/iterations:{runs}", "iterations": runs} for work in works]})


class Dumps(unittest.TestCase):
    def test_cost_of_a_call_is_not_the_callers_own(self):
        read = callgrind.parse(dump("shm_put_64"))
        self.assertEqual(read.total, 100)
        run, serve = (Function("erda-micro", name)
                      for name in ("erda::micro::(anonymous namespace)::ShmPut::Run()", f"{SERVER})"))
        memcpy = Function("libc.so.6", "memcpy")
        self.assertEqual(read.own, {run: 30, serve: 50, memcpy: 20})
        self.assertEqual(read.calls, {serve: 70, memcpy: 20})

    def test_dump_that_was_cut_off_is_refused(self):
        text = dump("shm_put_64")
        for cut in (text.replace("totals: 100\n", ""), text.replace("0 20\n", "")):
            with self.assertRaisesRegex(ToolError, "not complete"):
                callgrind.parse(cut)

    def test_counts_are_of_one_run_and_of_each_side(self):
        run = callgrind.read(results(10, "shm_put_64"), [dump("shm_put_64"), "desc: Trigger: Program termination\n"])
        self.assertEqual(baseline.counts_of(run),
                         {"shm_put_64": 10.0, "shm_put_64.client": 3.0, "shm_put_64.shard": 7.0})

    def test_work_without_a_server_has_no_sides(self):
        run = callgrind.read(results(10, "shm_get_64"), [dump("shm_get_64").replace(SERVER, "Other(")])
        self.assertEqual(baseline.counts_of(run), {"shm_get_64": 10.0})

    def test_work_without_a_dump_is_an_error(self):
        with self.assertRaisesRegex(ToolError, "no count of index_find"):
            callgrind.read(results(10, "shm_put_64", "index_find"), [dump("shm_put_64")])

    def test_results_without_callgrind_are_an_error(self):
        with self.assertRaisesRegex(ToolError, "did not run under callgrind"):
            callgrind.read(results(10, "shm_put_64", counter="not counted"), [dump("shm_put_64")])


class Differences(unittest.TestCase):
    recorded = Baseline(GCC, {"shm_put_64": 1000.0, "shm_get_64": 500.0})

    def found(self, counts: dict[str, float], build: str = GCC) -> list[str]:
        return differences(self.recorded, build, counts)

    def test_counts_within_the_tolerance_are_as_recorded(self):
        for put in (981.0, 1000.0, 1020.0):
            self.assertEqual(self.found({"shm_put_64": put, "shm_get_64": 500.0}), [])

    def test_more_than_the_tolerance_is_found_for_each_work_alone(self):
        found = self.found({"shm_put_64": 1020.1, "shm_get_64": 495.0})
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0], r"^shm_put_64: 1020\.1 instructions, 2\.0 % more than the 1000\.0 recorded\. ")
        self.assertRegex(found[0], "tools/micro --profile shm_put_64 .* tools/micro --record$")

    def test_profile_of_a_side_is_that_of_its_work(self):
        found = differences(Baseline(GCC, {"shm_put_64.client": 300.0}), GCC, {"shm_put_64.client": 400.0})
        self.assertRegex(found[0], "^shm_put_64\\.client: .*tools/micro --profile shm_put_64 ")

    def test_better_count_must_be_recorded(self):
        found = self.found({"shm_put_64": 980.0, "shm_get_64": 500.0})
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0], "^shm_put_64: .*2.0 % fewer.*tools/micro --record")

    def test_missing_work_is_found(self):
        found = self.found({"shm_put_64": 1000.0})
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0], "^shm_get_64: recorded, and not counted.*tools/micro --record$")

    def test_new_work_is_found(self):
        found = self.found({"shm_put_64": 1000.0, "shm_get_64": 500.0, "ring_imm": 300.0})
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0], "^ring_imm: 300.0 instructions, and not recorded.*tools/micro --record$")

    def test_another_build_is_not_compared(self):
        found = self.found({"shm_put_64": 2000.0}, build=GCC.replace("optimized as a whole", "each file alone"))
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0], "cannot be compared: this build is by GNU .* each file alone; the baseline is by GNU")
        self.assertRegex(found[0], "--target erda-micro.*tools/micro --record$")

    def test_file_without_counts_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "instructions.json"
            with self.assertRaisesRegex(ToolError, "--record"):
                Baseline.load(file)
            for content in ("", "{}", "[]"):
                file.write_text(content)
                with self.assertRaisesRegex(ToolError, "--record"):
                    Baseline.load(file)


class Profiles(unittest.TestCase):
    def test_functions_are_in_the_order_of_their_instructions(self):
        lines = profile.report("shm_put_64", callgrind.Work(10, callgrind.parse(dump("shm_put_64"))), 2).splitlines()
        self.assertEqual(lines[0], "shm_put_64: 10.0 instructions, 3.0 of the client and 7.0 of the shard")
        self.assertRegex(lines[3], r"^ +5\.0 +50\.0%  erda-micro +micro::ShmStore::Serve\(\)$")
        self.assertRegex(lines[4], r"^ +3\.0 +30\.0%  erda-micro +micro::ShmPut::Run\(\)$")
        self.assertRegex(lines[7], r"^ +7\.0 +70\.0%  erda-micro +micro::ShmStore::Serve\(\)$")
        self.assertRegex(lines[8], r"^ +2\.0 +20\.0%  libc +memcpy$")

    def test_names_lose_the_arguments_of_templates(self):
        self.assertEqual(profile.short("erda::Crc32c(unsigned int, std::span<std::byte const, 18446744073709551615ul>)"),
                         "Crc32c(unsigned int, std::span)")
        self.assertEqual(profile.short("f(std::map<int, std::vector<int> >)"), "f(std::map)")


def load_tool():
    loader = importlib.machinery.SourceFileLoader("micro", str(SOURCE / "tools/micro"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("micro", loader))
    loader.exec_module(module)
    return module


class Tool(unittest.TestCase):
    """The tool, with a script in the place of valgrind."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / "micro").mkdir()
        (self.folder / "micro/erda-micro").touch()
        self.tool = load_tool()

    def run_tool(self, *options: str, works: tuple[str, ...] = ("shm_put_64",), runs: int = 10,
                 code: int = 0) -> tuple[int, str]:
        """Returns the exit code, and all that the tool prints."""
        fake = self.folder / "valgrind"
        fake.write_text(f"""import sys
out = next(word.partition('=')[2] for word in sys.argv if word.startswith('--callgrind-out-file='))
for number, text in enumerate({[dump(work) for work in works]!r}, 1):
    open(f'{{out}}.{{number}}', 'w').write(text)
print({results(runs, *works)!r})
sys.exit({code})
""")
        printed = io.StringIO()
        with unittest.mock.patch.object(callgrind, "VALGRIND", (sys.executable, str(fake))), \
                contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            ended = self.tool.main(["--build", str(self.folder), "--baseline", str(self.folder / "recorded.json"),
                                    *options])
        return ended, printed.getvalue()

    def test_recorded_counts_pass_and_a_creep_fails(self):
        self.assertEqual(self.run_tool()[0], 1)  # Nothing is recorded.
        self.assertEqual(self.run_tool("--record")[0], 0)
        code, printed = self.run_tool()
        self.assertEqual(code, 0, printed)
        self.assertRegex(printed, r"(?m)^ +10\.0 +10\.0  shm_put_64$")
        code, printed = self.run_tool(runs=9)
        self.assertEqual(code, 1)
        self.assertIn("micro: shm_put_64: 11.1 instructions, 11.0 % more than the 10.0 recorded", printed)

    def test_works_of_one_side_only_fail(self):
        self.run_tool("--record", works=("shm_put_64", "shm_get_64"))
        code, printed = self.run_tool(works=("shm_put_64", "ring_imm"))
        self.assertEqual(code, 1)
        self.assertIn("micro: shm_get_64: recorded, and not counted", printed)
        self.assertIn("micro: ring_imm: 10.0 instructions, and not recorded", printed)

    def test_failed_program_fails_and_records_nothing(self):
        code, printed = self.run_tool("--record", code=1)
        self.assertEqual(code, 1)
        self.assertIn("micro: erda-micro ended with 1", printed)
        self.assertFalse((self.folder / "recorded.json").exists())

    def test_program_that_is_not_built_is_named(self):
        (self.folder / "micro/erda-micro").unlink()
        code, printed = self.run_tool()
        self.assertEqual(code, 1)
        self.assertIn("--target erda-micro", printed)

    def test_profile_of_a_work_needs_the_work(self):
        self.assertEqual(self.run_tool("--profile", "shm_put_64")[0], 0)
        code, printed = self.run_tool("--profile", "shm_put_6")
        self.assertEqual(code, 1)
        self.assertIn("has no work shm_put_6", printed)


class Program(unittest.TestCase):
    """The real erda-micro."""

    def test_each_work_gives_right_results_and_is_recorded(self):
        ended = subprocess.run([BUILD / "micro/erda-micro", "--benchmark_min_time=0.001", "--benchmark_format=json"],
                               capture_output=True, text=True, timeout=50)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        works = {result["name"].split("/")[0] for result in json.loads(ended.stdout)["benchmarks"]}
        recorded = Baseline.load(SOURCE / "bench/micro/instructions.json").counts
        self.assertEqual(works, {name.split(".")[0] for name in recorded})

    def test_callgrind_counts_a_work_of_two_sides(self):
        with tempfile.TemporaryDirectory() as folder:
            run = callgrind.run(BUILD / "micro/erda-micro", pathlib.Path(folder), "^shm_put_64/")
        counts = baseline.counts_of(run)
        self.assertEqual(set(counts), {"shm_put_64", "shm_put_64.client", "shm_put_64.shard"})
        self.assertGreater(min(counts.values()), 500)

    def test_wrong_option_is_refused(self):
        ended = subprocess.run([BUILD / "micro/erda-micro", "--no-such-option"], capture_output=True, text=True)
        self.assertEqual(ended.returncode, 2)


if __name__ == "__main__":
    unittest.main()
