"""The steps of the test command, in the order of their starts."""

from pathlib import Path

from . import analysis, checks, suites
from .counts import of_ctest, of_google_test
from .passed import once
from .step import Outcome, Step, check, command, commands

ASAN = "clang, address and undefined behaviour sanitizers"
TSAN = "clang, thread sanitizer"
# A first look joins sixteen sources of a target at a time, as the sanitizers' builds do. It leaves out the optimization
# that measured code needs.
JOINED = ["-D", "CMAKE_UNITY_BUILD=ON", "-D", "CMAKE_UNITY_BUILD_BATCH_SIZE=16", "-D", "ERDA_LTO=OFF"]
SIMULATOR = "build/tests/erda-sim"
SEEDS = "tests/regression/seeds"
PLANTED_SEEDS = "tests/regression/planted_seeds"
SIMULATION = [[SIMULATOR, "--seed", "1", "--seeds", "3000"], [SIMULATOR, "--list", SEEDS],
              [SIMULATOR, "--planted", "--planted-seeds", PLANTED_SEEDS]]


def quick_steps(logs, scratch, jobs, lab):
    """Returns the steps of a first look: build, tests, simulation, installation, a smoke test of the lab."""
    steps = _before(logs, jobs, JOINED)
    steps += [
        Step("simulation", "Simulation: 300 seeds", _simulation(logs / "simulation.xml"), needs=("build",), lane="beside",
             counts_tests=True),
        _install(scratch, "beside"),
    ]
    if lab:
        steps.append(Step("lab", "Lab: the store over RDMA, a smoke test", _in_lab(
            logs, ["smoke.xml"], 'build/tests/lab_tests --gtest_filter="StoreLab.TwoClients*:StoreLab.OneServerServesBoth*:StoreLab.ClientsComeBack*" '
                                 '--gtest_output="xml:$ERDA_LAB_OUT/smoke.xml"'),
            needs=("build",), lane="lab", counts_tests=True))
    return steps


def all_steps(logs, scratch, jobs, lab):
    """Returns the steps of every check."""
    steps = _before(logs, jobs, targets=["all", Path(SIMULATOR).name])
    steps += [
        Step("headers", "Each header compiles alone",
             command("cmake", "--build", "build", "--target", "header_check", "-j", jobs), needs=("build",)),
        Step("simulation", "Simulation: 3000 seeds, those that once failed, the planted defects",
             once(commands(SIMULATION, timeout=600), f"{SIMULATION}", [SIMULATOR, SEEDS, PLANTED_SEEDS]), needs=("build",)),
        Step("new-seeds", "Simulation: 300 new seeds", command(SIMULATOR, "--seeds", "300", timeout=600),
             needs=("build",)),
        Step("micro", "Instructions of each micro-benchmark, beside the recorded counts", command("tools/micro", timeout=900),
             needs=("build",)),
        _install(scratch),
        Step("quickstart", "Quickstart", command("bash", "tools/quickstart", timeout=600,
                                                 env={"ERDA_QUICKSTART_RECORDS": "2000"}), needs=("build",)),
        # Steps that wait more than they work run beside the builds.
        Step("crash", "Servers and clients killed; nothing is lost",
             commands([["tools/crash-test", "--rounds", "40"], ["tools/crash-test", "--journal", "--rounds", "6"],
                       ["tools/crash-test", "--journal", "--front", "--rounds", "6"]], timeout=600), needs=("build",), after=("quickstart",), lane="waits"),
        Step("packages", "Debian packages, in a clean Debian",
             command("tests/install/packages", scratch / "packages", timeout=1200,
                     env={"ERDA_PACKAGES_PRESET": "test"}), needs=("build",), lane="waits"),
        *(_lab_steps(logs) if lab else []),
        _build("asan", ASAN, jobs),
        _build("tsan", TSAN, jobs),
        _build("fuzz", "the fuzzers", jobs),
        Step("tests-asan", f"Tests: {ASAN}", suites.work(Path("build-asan"), logs / "tests-asan"),
             needs=("build-asan",), counts_tests=True),
        # Without the tests that have one thread (tests/CMakeLists.txt).
        Step("tests-tsan", f"Tests: {TSAN}", suites.work(Path("build-tsan"), logs / "tests-tsan"),
             needs=("build-tsan",), counts_tests=True),
        *_fuzz_steps(logs, scratch),
        *_model_steps(),
        Step("tidy", "clang-tidy on src, tools, bench and the examples", analysis.tidy(logs / "analysis")),
    ]
    return steps


def _before(logs, jobs, options=(), targets=()):
    """Returns the steps that both begin with."""
    return [
        Step("scripts", "Scripts parse", check(checks.scripts)),
        Step("format", "Formatting", check(checks.formatting)),
        Step("names", "File names", check(checks.names)),
        Step("prose", "Language of documents and comments", command("tools/check-prose")),
        _build("test", "gcc, release", jobs, options, targets, name="build"),
        Step("tests", "Tests: gcc, release", suites.work(Path("build"), logs / "tests"), needs=("build",),
             counts_tests=True),
        Step("ctest", "Tests of tools, examples and exports", _ctest(Path("build"), logs / "ctest.xml", jobs),
             needs=("build",), counts_tests=True),
    ]


def _build(preset, title, jobs, options=(), targets=(), name=None):
    wanted = ["--target", *targets] if targets else []
    return Step(name or f"build-{preset}", f"Build: {title}", commands([
        ["cmake", "--preset", preset, *options],
        # Steps of other lanes have timeouts, and those in the lab compute while they wait. So they go first.
        ["chrt", "--idle", "0", "cmake", "--build", "--preset", preset, "-j", jobs, *wanted]]))


def _ctest(build, results, jobs):
    def run(log):
        results.unlink(missing_ok=True)
        # The other labels are those of GoogleTest programs.
        status = log.call(["ctest", "--test-dir", build, "-j", jobs, "--label-exclude", "^(plain|no-sanitizer)$",
                           "--timeout", "120", "--output-on-failure", "--output-junit", results], timeout=1200)
        return _with_status(of_ctest(results), status, log)

    return run


def _simulation(results):
    """Returns a step that simulates runs of each kind, without the simulator's program."""

    def run(log):
        results.unlink(missing_ok=True)
        status = log.call(["build/tests/sim_tests", "--gtest_filter=EngineSimulation.EachKindOfRunIsWithoutAFault",
                           f"--gtest_output=xml:{results}"], timeout=600, env={"ERDA_SIM_SEEDS": "300"})
        return _with_status(of_google_test([results]), status, log)

    return run


def _with_status(outcome, status, log):
    """A program that failed although no test did counts as one failure."""
    if status != 0 and outcome.failed == 0:
        return Outcome(outcome.passed, 1, log.tail() + f"\nit ended with status {status}")
    return outcome


def _install(scratch, lane="main"):
    return Step("install", "Installation: find_package, pkg-config, a moved tree",
                command("tests/install/check", "build", scratch), needs=("build",), lane=lane)


def _lab_steps(logs):
    kills = ["tools/crash-test", "--lab", "--rounds", "2", "--operations", "600"]
    journal = [*kills, "--cuts-only", "--journal"]
    # The last suite takes the RDMA device away.
    store = '''for suite in failure store rights window removal; do
        build/tests/lab_tests --gtest_filter="${suite^}Lab.*" --gtest_output="xml:$ERDA_LAB_OUT/$suite.xml" || failed=1
      done
      exit "${failed:-0}"'''
    # The emulated processor has no instruction for CRC32C.
    fabric = '''set -e
      build/tests/base_tests --gtest_filter="Crc32cTest.*" --gtest_output="xml:$ERDA_LAB_OUT/crc.xml"
      build/bin/erda-bench floors --fabric verbs --address "verbs://$ERDA_LAB_SERVER:7700" --pool "$ERDA_LAB_DAX" \\
        --ops 1000 --json "$ERDA_LAB_OUT/floors.json"
      ERDA_TEST_VERBS=$ERDA_LAB_SERVER build/tests/fabric_tests --gtest_filter="*/verbs" \\
        --gtest_output="xml:$ERDA_LAB_OUT/fabric.xml"
      ERDA_TEST_VERBS=$ERDA_LAB_SERVER build/tests/mirror_tests --gtest_filter="*/verbs" \\
        --gtest_output="xml:$ERDA_LAB_OUT/mirror.xml"
      build/tests/lab_tests --gtest_filter="*Hostile*:FabricLab.*:ConnectingLab.*" \\
        --gtest_output="xml:$ERDA_LAB_OUT/peers.xml"'''
    needs = {"needs": ("build",), "after": ("quickstart",), "lane": "lab"}
    return [
        Step("lab-store", "Lab: the store over RDMA, its pool on the NVDIMM",
             _in_lab(logs, ["failure.xml", "store.xml", "rights.xml", "window.xml", "removal.xml"], store), **needs,
             counts_tests=True),
        Step("lab-fabric", "Lab: the conformance suite of the fabrics; links of mirrors; hostile peers; floors; checksums",
             _in_lab(logs, ["crc.xml", "fabric.xml", "mirror.xml", "peers.xml"], fabric), **needs, counts_tests=True),
        Step("lab-kills", "Lab: servers and clients killed over RDMA; nothing is lost",
             command(*kills, "--kills-only", timeout=600), **needs),
        Step("lab-cuts", "Lab: the server's power is cut in the middle of operations; nothing is lost",
             commands([[*kills, "--cuts-only"], [*journal, "--rounds", "1"], [*journal, "--front"]],
                      timeout=600), **needs),
        Step("lab-pmr", "Lab: the persistent memory region of an NVMe disk, also after a power cut",
             _in_region(logs), **needs, counts_tests=True),
        Step("lab-fronts", "Lab: puts with a front are measured beside puts on NVM, for a moment",
             command("tools/rdma-lab", "fronts", "--rounds", "1", "--puts", "100", timeout=300), **needs),
        Step("lab-lies", "Lab: a disk says that it flushed, and did not; the lost puts are found",
             _finds_a_loss(*journal, "--rounds", "1", "--lying-disk", "--seed", "3"), **needs),
    ]


def _finds_a_loss(*words):
    """Returns the work of a step whose command must find lost data, and say so by the status 1."""

    def run(log):
        status = log.call(words, timeout=600)
        return Outcome(1, 0) if status == 1 else Outcome(0, 1, log.tail() + f"\nit ended with status {status}, not 1")

    return run


def _in_lab(logs, files, script):
    """Returns a step that runs a bash script in the lab, which leaves these result files."""
    return _of_labs(logs, files, [["run", "--", "bash", "-c", script]])


def _in_region(logs):
    """The second command runs its test twice: until the power is cut, and after that. The client waits for the end."""
    lab = ["--pmr", "1M", "--nvdimm", "16M"]
    test = 'build/tests/lab_tests --gtest_filter="{}.*" --gtest_output="xml:$ERDA_LAB_OUT/{}.xml"'
    wait = 'rm -f "$ERDA_LAB_OUT/found"; until test -e "$ERDA_LAB_OUT/found"; do sleep 0.2; done'
    return _of_labs(logs, ["pmr.xml", "pmr_cut.xml"], [
        ["run", *lab, "--", "bash", "-c", test.format("PmrLab", "pmr")],
        ["pair", *lab, "--cut", "server@0.3", "--cut-after", "cut now", "--restart", "--client", wait,
         "--server", test.format("PmrCutLab", "pmr_cut")]])


def _of_labs(logs, files, labs):
    """Returns a step that runs the lab with each of these arguments. They leave these result files."""

    def run(log):
        folder = logs / "lab"
        folder.mkdir(exist_ok=True)
        results = [folder / file for file in files]
        for file in results:
            file.unlink(missing_ok=True)
        statuses = [log.call(["tools/rdma-lab", mode, "--timeout", "600", "--out", folder, *arguments], timeout=1200)
                    for mode, *arguments in labs]
        return _with_status(of_google_test(results), next(filter(None, statuses), 0), log)

    return run


def _fuzz_steps(logs, scratch):
    """Each fuzzer makes the same runs each time, from the corpus in the tree."""

    def fuzz(target, runs, bytes_max, *options):
        found = scratch / f"fuzz-{target}"  # For inputs that reach new code.
        # These two read the same pools.
        corpus = Path("tests/fuzz/corpus", "inspect" if target == "salvage" else target)
        program = f"build-fuzz/tests/fuzz_{target}"
        bounds = [f"-runs={runs}", "-seed=1", f"-max_len={bytes_max}", *options]
        return once(commands([["mkdir", "-p", found], suites.not_randomized([
            program, *bounds, f"-artifact_prefix={logs}/fuzz-{target}-", found, corpus])], timeout=300),
                    f"fuzz {bounds}", [program, corpus])

    place = {"needs": ("build-fuzz",), "lane": "fuzz"}
    return [
        Step("fuzz-open", "Fuzzing: opening, recovering and serving a pool", fuzz("open", 6000, 386), **place),
        Step("fuzz-inspect", "Fuzzing: erda-inspect", fuzz("inspect", 10000, 386), **place),
        Step("fuzz-salvage", "Fuzzing: erda-pool salvage", fuzz("salvage", 4000, 386), **place),
        Step("fuzz-journal", "Fuzzing: opening and serving a pool with a journal", fuzz("journal", 1000, 386), **place),
        Step("fuzz-speak", "Fuzzing: hostile clients at a live server",
             fuzz("speak", 1500, 800, "-len_control=0"), **place),
        Step("fuzz-link", "Fuzzing: hostile mirrors and primaries on a link",
             fuzz("link", 20000, 801, "-len_control=0"), **place),
    ]


def _model_steps():
    models = sorted(path for path in Path("tests/model").glob("*.py") if not path.name.startswith("_"))
    return [Step(f"model-{path.stem}", f"Model: {path.stem}",
                 once(command("python3", path, timeout=900, env={"PYTHONDONTWRITEBYTECODE": "1"}), path.stem,
                      sorted(Path("tests/model").glob("*.py"))),
                 after=("ctest",), lane="models") for path in models]
