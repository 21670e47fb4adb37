"""Prints the results for a terminal and as a page."""

from __future__ import annotations

from typing import Any

from evaluation.common import ERDA, PAPER_CPU, PAPER_KOPS, PAPER_LATENCY_US, RATIO_SIZE, RAW, REDO, SCHEMES, WORKLOADS, Workload
from evaluation.results import OPERATIONS, STATES, Ratio, Results, over
from report import charts
from report.charts import Axis, Series
from report.machine import describe, describe_commit
from report.page import Card, Column, Page

TITLE = "The paper's evaluation, measured again"
OTHERS = (REDO, RAW)
NOTHING = "–"
NOTES_SHM = (
    "This is shared memory: there is no network, and no NVM. A get of Erda costs no round trip, and a request wakes or finds "
    "a server on the same machine. So the times are those of the software. The paper's times, some 60 to 100 µs, are mostly "
    "the network's. Compare ratios, and not times.",
    "Pools are in memory (dram:), so nothing is flushed. Erda's log was filled once before: the kernel makes each page of "
    "fresh memory at its first write, and NVM does not need that. Before each run with puts the log is cleaned, so that no "
    "run waits for the cleaner. Figure 26 shows the effect of cleaning.",
)
NOTES_LAB = (
    "This is the lab: an emulated machine with a Soft-RoCE device, all pools on its DAX device in turn. The emulated "
    "processor also does the network's work, so no time here is one of real hardware. One-sided operations take processor "
    "time, where a NIC would do the work. Ratios within this report mean something, times do not.",
    "The pool is power-safe here, and Soft-RoCE's Reads flush nothing. So the server flushes one-sided puts upon a request, "
    "in Erda's reserve path and in Read After Write. In the paper, a Read flushes them.",
    "Two things cost more here than on hardware, and both are Erda's. A Read of Soft-RoCE takes longer than a message there "
    "and back. And Erda's clients verify the checksum of each value that they get, by a table on an emulated processor. A "
    "get of the compared schemes is one message there and back, and has no checksum to verify.",
)
NOTES = (
    "One driver measures all three schemes with the same keys (24 bytes), values, zipfian choice (0.99) and number of "
    "threads. Each thread has one operation in flight. At each point the schemes take turns, in another order in each round. "
    "A figure is the median of the rounds. Each scheme has one server thread for its requests. The server runs on the last "
    "processor, and clients on the others while there are enough of them. With more clients, clients run on all processors, "
    "also on the server's.",
    "Erda runs with its defaults. Clients remember the locations of 65536 keys, so that most gets are one Read, where the "
    "paper needs two. Puts travel in the request or one-sidedly, by their size. docs/benchmarks/schemes.md describes the "
    "compared schemes.",
)


def number(value: float | None, digits: int = 2) -> str:
    """Returns a number for a table."""
    if value is None:
        return NOTHING
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{digits}f}" if value < 100 else f"{value:.1f}"


def factor(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{value:.2g}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def kops(value: float | None) -> str:
    return number(None if value is None else value / 1000, 1)


# Sentences about the results.


def say_latency(results: Results, workload: Workload) -> str:
    """Returns one sentence about this measurement, and one about the paper's."""
    sizes = results.latency_sizes(workload.name)
    size = RATIO_SIZE if RATIO_SIZE in sizes else sizes[-1]
    values = [results.latency(workload.name, size, scheme) for scheme in SCHEMES]
    averages = [results.latency_average(workload.name, scheme) for scheme in SCHEMES]
    text = ""
    if None not in values:
        text = (f"At {charts.size(size)} Erda takes {microseconds(values[0])}: {factor(over(values[0], values[1]))} of Redo "
                f"Logging's {microseconds(values[1])}, {factor(over(values[0], values[2]))} of Read After Write's. ")
    kind = "put" if workload.name == "update" else "get"
    medians = [results.latency(workload.name, size, scheme, f"{kind}_p50_us") for scheme in SCHEMES]
    if None not in medians:
        text += f"Median {kind}s: {factor(over(medians[0], medians[1]))} and {factor(over(medians[0], medians[2]))}. "
    if None not in averages:
        text += (f"Means averaged over the sizes: {factor(over(averages[0], averages[1]))} and "
                 f"{factor(over(averages[0], averages[2]))}. ")
    paper = PAPER_LATENCY_US[workload.name]
    return text + f"Paper: {paper[0] / paper[1]:.2f} and {paper[0] / paper[2]:.2f} ({paper[0]:g}, {paper[1]:g} and {paper[2]:g} µs)."


def say_throughput(results: Results, workload: Workload) -> str:
    threads = results.threads(workload.name)
    text = ""
    ends = [results.rate(workload.name, count, ERDA) for count in (threads[0], threads[-1])]
    if None not in ends and len(threads) > 1:
        text = (f"From {threads[0]} to {threads[-1]} threads Erda's throughput grows {factor(over(ends[1], ends[0]))} times, "
                f"Redo Logging's "
                f"{factor(over(*(results.rate(workload.name, count, REDO) for count in (threads[-1], threads[0]))))}. ")
    averages = [results.rate_average(workload.name, scheme) for scheme in SCHEMES]
    if None not in averages:
        text += (f"On average Erda does {factor(over(averages[0], averages[1]))} times as much as Redo Logging, "
                 f"{factor(over(averages[0], averages[2]))} times as Read After Write. ")
    paper = PAPER_KOPS.get(workload.name)
    if not paper:
        return text + "Paper: about the same."
    return text + (f"Paper: {paper[0] / paper[1]:.2f} and {paper[0] / paper[2]:.2f} ({paper[0]:g}, {paper[1]:g} and {paper[2]:g} "
                   "thousand per second).")


def say_cpu(results: Results, size: int) -> str:
    parts = []
    nothing = ""
    for workload in WORKLOADS:
        erda = results.cpu(workload.name, size, ERDA)
        if erda == 0:
            nothing += f" In {workload.title} Erda costs it nothing."
        ratios = [over(results.cpu(workload.name, size, scheme), erda) for scheme in OTHERS]
        if None in ratios:
            continue
        name = "updates" if workload.name == "update" else workload.title
        parts.append(f"{factor(ratios[0])} and {factor(ratios[1])} times in {name}")
    return f"Redo Logging and Read After Write cost the server {', '.join(parts)} what Erda costs it.{nothing}" if parts else ""


PAPER_SAYS_CPU = (
    "The paper normalises by Erda's cost. It states, as averages over the value sizes, for Redo Logging and Read After Write: "
    + "; ".join(f"{'update only' if name == 'update' else 'YCSB-' + name} {redo:g} and {raw:g}" for name, (redo, raw) in PAPER_CPU.items())
    + "; infinite for YCSB-C, where Erda's gets cost the server nothing."
)


def say_cleaning(results: Results) -> str:
    parts = []
    for workload in WORKLOADS:
        ratio = over(*(results.cleaning_latency(workload.key, state) for state in reversed(STATES)))
        if ratio is not None:
            parts.append(f"{factor(ratio)} in {'updates' if workload.name == 'update' else workload.title}")
    return f"While the log is cleaned, the mean latency is {', '.join(parts)} times the normal one."


def say_bytes(results: Results, operation: str) -> str:
    size = RATIO_SIZE if RATIO_SIZE in results.byte_sizes() else results.byte_sizes()[-1]
    ours = [results.written(size, scheme, operation) for scheme in (ERDA, REDO)]
    paper = [results.written(size, scheme, operation, "paper") for scheme in (ERDA, REDO)]
    return (f"At {charts.size(size)} Erda writes {number(ours[0], 1)} bytes, {factor(over(*ours))} of Redo Logging's {number(ours[1], 1)}. "
            f"Table 1's formulas: {factor(over(*paper))}.")


def microseconds(value: float | None) -> str:
    return NOTHING if value is None else charts.microseconds(value)


# Charts.


def _size_axis(sizes: list[int]) -> Axis:
    return Axis("Value size", log=True, format=charts.size, ticks=sizes)


def _by_size(results: Results, workload: Workload) -> list[Series]:
    return [
        Series(scheme.title, [(size, results.latency(workload.name, size, scheme))
                              for size in results.latency_sizes(workload.name)], scheme.colour)
        for scheme in SCHEMES
    ]


def latency_chart(results: Results, workload: Workload) -> str:
    return charts.lines(workload.title, _size_axis(results.latency_sizes(workload.name)),
                        Axis("Mean latency", log=True, format=charts.microseconds), _by_size(results, workload))


def throughput_chart(results: Results, workload: Workload) -> str:
    threads = results.threads(workload.name)
    series = [Series(scheme.title, [(count, results.rate(workload.name, count, scheme)) for count in threads], scheme.colour)
              for scheme in SCHEMES]
    return charts.lines(workload.title, Axis("Threads", log=True, format=lambda value: f"{value:g}", ticks=threads),
                        Axis("Operations per second", log=True), series)


def cpu_chart(results: Results, size: int) -> str:
    series = [Series(scheme.title, [(i, results.cpu(workload.name, size, scheme)) for i, workload in enumerate(WORKLOADS)],
                     scheme.colour) for scheme in SCHEMES]
    return charts.bars(f"Processor time, {charts.size(size)}", Axis("Server's processor µs for one operation"),
                       [workload.title for workload in WORKLOADS], series)


def cleaning_chart(results: Results) -> str:
    series = [
        Series(title, [(i, results.cleaning_latency(workload.key, state)) for i, workload in enumerate(WORKLOADS)], colour)
        for title, state, colour in (("Normal", "idle", 0), ("While cleaning", "cleaning", 3))
    ]
    return charts.bars("Cleaning", Axis("Mean latency", format=charts.microseconds), [workload.title for workload in WORKLOADS], series)


def bytes_chart(results: Results, operation: str) -> str:
    sizes = results.byte_sizes()
    series = [Series(scheme.title, [(size, results.written(size, scheme, operation)) for size in sizes], scheme.colour)
              for scheme in SCHEMES]
    return charts.lines(operation, _size_axis(sizes), Axis("NVM bytes for one operation", log=True, format=lambda value: f"{value:,.0f}"),
                        series)


# Tables.


def _scheme_columns(*groups: str) -> list[Column]:
    return [Column(scheme.title, group=group) for group in groups for scheme in SCHEMES]


def latency_table(results: Results) -> tuple[list[Column], list[list[str]]]:
    columns = [Column("Workload", text=True), Column("Value"), *_scheme_columns("Mean, µs"),
               *(Column(scheme.title, group="Erda's mean over that of") for scheme in OTHERS)]
    rows = []
    for workload in WORKLOADS:
        for size in results.latency_sizes(workload.name):
            values = [results.latency(workload.name, size, scheme) for scheme in SCHEMES]
            rows.append([workload.title, charts.size(size), *map(number, values),
                         *(factor(over(values[0], value)) for value in values[1:])])
    return columns, rows


def median_table(results: Results) -> tuple[list[Column], list[list[str]]]:
    columns = [Column("Workload", text=True), Column("Value"), *_scheme_columns("Median get, µs", "Median put, µs")]
    rows = [
        [workload.title, charts.size(size),
         *(number(results.latency(workload.name, size, scheme, f"{kind}_p50_us")) for kind in ("get", "put") for scheme in SCHEMES)]
        for workload in WORKLOADS for size in results.latency_sizes(workload.name)
    ]
    return columns, rows


def throughput_table(results: Results) -> tuple[list[Column], list[list[str]]]:
    columns = [Column("Workload", text=True), Column("Threads"), *_scheme_columns("Thousand operations per second"),
               *(Column(scheme.title, group="Erda's over that of") for scheme in OTHERS)]
    rows = []
    for workload in WORKLOADS:
        for threads in results.threads(workload.name):
            values = [results.rate(workload.name, threads, scheme) for scheme in SCHEMES]
            rows.append([workload.title, str(threads), *map(kops, values), *(factor(over(values[0], value)) for value in values[1:])])
    return columns, rows


def cpu_table(results: Results) -> tuple[list[Column], list[list[str]]]:
    columns = [Column("Value", text=True), Column("Workload", text=True), *_scheme_columns("Processor µs for one operation"),
               *(Column(scheme.title, group="Normalised: over Erda's") for scheme in OTHERS)]
    rows = []
    for size in results.cpu_sizes():
        for workload in WORKLOADS:
            values = [results.cpu(workload.name, size, scheme) for scheme in SCHEMES]
            rows.append([charts.size(size), workload.title, *(number(value, 3) for value in values),
                         *("∞" if value and values[0] == 0 else factor(over(value, values[0])) for value in values[1:])])
    return columns, rows


def cleaning_table(results: Results) -> tuple[list[Column], list[list[str]]]:
    columns = [Column("Workload", text=True)]
    for kind in ("Gets", "Puts"):
        columns += [Column("normal", group=f"{kind}: mean, µs"), Column("cleaning", group=f"{kind}: mean, µs"),
                    Column("normal", group=f"{kind}: p99, µs"), Column("cleaning", group=f"{kind}: p99, µs")]
    rows = []
    assert results.cleaning is not None
    for workload in WORKLOADS:
        slices = results.cleaning["result"]["workloads"][workload.key]
        rows.append([workload.title, *(number(slices[state].get(kind, {}).get(name))
                                       for kind in ("get", "put") for name in ("mean_us", "p99_us") for state in STATES)])
    return columns, rows


def bytes_table(results: Results) -> tuple[list[Column], list[list[str]]]:
    columns = [Column("Value", text=True), Column("Scheme", text=True)]
    for operation in OPERATIONS:
        columns += [Column("counted", group=operation.capitalize()), Column("table 1", group=operation.capitalize())]
    titles = {scheme.name: scheme.title for scheme in SCHEMES}
    assert results.bytes is not None
    rows = []
    for row in results.bytes["result"]["rows"]:
        title = titles[row["scheme"]] + (f", {row['path']}" if "path" in row else "")
        rows.append([charts.size(row["value_size"]), title,
                     *(cell for operation in OPERATIONS for cell in (f"{row[operation]['counted']:,.1f}", f"{row[operation]['paper']:,}"))])
    return columns, rows


# For a terminal.


def to_text(results: Results) -> str:
    lines = [f"{_machine(results)}; commit {describe_commit(results.origin['commit'])}", ""]
    for ratio in results.ratios():
        paper = f"; the paper: {factor(ratio.paper)}" if ratio.paper is not None else ""
        target = "" if ratio.target is None else f"; target at most {ratio.target:g}: {'reached' if ratio.reached else 'not reached'}"
        lines.append(f"  {ratio.name:<22}{factor(ratio.value):>7}   {ratio.what}{paper}{target}")
    return "\n".join(lines)


def _machine(results: Results) -> str:
    machine = describe(results.origin["machine"])
    return f"{machine}; in it the lab's guest: {describe(results.guest['machine'])}" if results.guest else machine


# The page.


def _cards(results: Results) -> list[Card]:
    by_name = {ratio.name: ratio for ratio in results.ratios()}

    def card(name: str, what: str) -> list[Card]:
        ratio = by_name.get(name)
        return [Card(factor(ratio.value), what, _beside(ratio), ratio.reached)] if ratio else []

    return [
        *card("ycsb_c_latency_1k", "of Redo Logging's latency: reads of 1 KiB, YCSB-C"),
        *card("ycsb_c_throughput", "times Redo Logging's throughput: YCSB-C, average over the threads"),
        *card("ycsb_b_server_cpu", "times Erda's server time is what Redo Logging takes: YCSB-B"),
        *card("update_bytes_1k", "of Redo Logging's NVM bytes: an update of 1 KiB"),
    ]


def _beside(ratio: Ratio) -> str:
    words = [f"Paper: {factor(ratio.paper)}."] if ratio.paper is not None else []
    if ratio.target is not None:
        words.append(f"Target: at most {ratio.target:g}, {'reached' if ratio.reached else 'not reached'}.")
    words += [f"Here, of median {kind}s: {factor(ratio.more[name])}." for kind in ("get", "put")
              if ratio.more.get(name := f"of_{kind}_p50") is not None]
    return " ".join(words)


def to_page(results: Results) -> str:
    where = "over RDMA in an emulated machine" if results.lab else "over shared memory"
    page = Page(TITLE, f"Erda beside Redo Logging and Read After Write, {where}. Figures 14 to 26 and table 1 of “Write-Optimized and "
                "Consistent RDMA-based NVM Systems” (Liu, Hua, Li, Liu).")
    page.cards(_cards(results))
    notes = NOTES_LAB if results.lab else NOTES_SHM
    page.paragraph(notes[0])
    if results.lacks():
        page.paragraph("Not measured yet: " + ", ".join(results.lacks()) + ".")
    _latency(results, page)
    _throughput(results, page)
    _cpu(results, page)
    if results.cleaning:
        page.heading("Cleaning (figure 26)")
        value = charts.size(results.cleaning["result"]["value_bytes"])
        page.paragraph(f"Mean latencies of Erda, values of {value}, one operation at a time, beside a steady load of puts. "
                       "Pool, data and load are the same in both states. In the paper a get during cleaning is a request to "
                       "the server, so that YCSB-C suffers most. Here it stays one-sided. The cleaner shares a processor with "
                       "the server when there are two.")
        page.charts([("Figure 26: four workloads", say_cleaning(results), cleaning_chart(results))], pairs=True)
        page.table("Latency, normal and while cleaning", *cleaning_table(results))
    if results.bytes:
        page.heading("Bytes written to NVM (table 1)")
        page.paragraph("Servers and clients count the bytes that they store, with keys of "
                       f"{results.bytes['result']['key_size']} bytes. In the charts, Erda's number is the mean of its two put "
                       "paths. Redo Logging and Read After Write write the same, so their lines are one. An object here has a "
                       "header that the paper's object does not have (docs/format.md).")
        page.charts([(operation.capitalize(), say_bytes(results, operation), bytes_chart(results, operation)) for operation in OPERATIONS])
        page.table("NVM bytes for one operation, counted, and by the formulas of table 1", *bytes_table(results))
    _ratios(results, page)
    page.heading("How it was measured")
    for note in (*notes[1:], *NOTES):
        page.paragraph(note)
    _origin(results, page)
    return page.html()


def _latency(results: Results, page: Page) -> None:
    figures = results.latency_figures()
    if not figures:
        return
    page.heading("Latency by value size (figures 14 to 17)")
    page.paragraph("One thread, one operation at a time; the mean of all operations. Both axes are logarithmic.")
    page.charts([
        (f"Figure {figure}: {workload.title}, {workload.mix}", say_latency(results, workload), latency_chart(results, workload))
        for figure, workload in figures
    ], pairs=True)
    page.table("Mean latency", *latency_table(results))
    page.table("Median latency, which a busy machine disturbs least", *median_table(results))


def _throughput(results: Results, page: Page) -> None:
    figures = results.throughput_figures()
    if not figures:
        return
    page.heading("Throughput by threads (figures 18 to 21)")
    processors = (results.guest or results.origin)["machine"]["processors"]
    page.paragraph(f"Values of {charts.size(RATIO_SIZE)}, one operation in flight for each thread. Both axes are logarithmic. "
                   f"This machine has {processors} processor{'' if processors == 1 else 's'} for clients and server "
                   "together. More threads share them.")
    page.charts([
        (f"Figure {figure}: {workload.title}, {workload.mix}", say_throughput(results, workload), throughput_chart(results, workload))
        for figure, workload in figures
    ], pairs=True)
    page.table("Throughput", *throughput_table(results))


def _cpu(results: Results, page: Page) -> None:
    figures = results.cpu_figures()
    if not figures:
        return
    page.heading("The cost for the server (figures 22 to 25)")
    page.paragraph("The processor time of all threads of the server, for one operation of one thread. Here the servers sleep "
                   "as soon as they have nothing to do (--spin-us 0). So this is the cost of the work and of the wake-up for "
                   "it, without the time of looking for more work.")
    page.paragraph(PAPER_SAYS_CPU)
    page.charts([
        (f"Figure {figure}: values of {charts.size(size)}", say_cpu(results, size), cpu_chart(results, size))
        for figure, size in figures
    ], pairs=True)
    page.table("The server's processor time", *cpu_table(results))


def _ratios(results: Results, page: Page) -> None:
    ratios = results.ratios()
    if not ratios:
        return
    page.heading("Ratios")
    columns = [Column("Name", text=True), Column("Here"), Column("Paper"), Column("Target"), Column("What", text=True, wrap=True)]
    page.table("As in report.json", columns, [
        [ratio.name, factor(ratio.value), factor(ratio.paper), f"≤ {ratio.target:g}" if ratio.target is not None else "", ratio.what]
        for ratio in ratios
    ])


def _origin(results: Results, page: Page) -> None:
    origin: dict[str, Any] = results.origin
    settings = origin["conditions"]
    facts = [("Measured", f"{results.rounds} round{'' if results.rounds == 1 else 's'}, runs of about {settings['seconds']:g} s, "
              f"{settings['records']:,} records{', --quick: too short for figures that mean much' if settings['quick'] else ''}")]
    if results.guest:
        facts.insert(0, ("Guest", describe(results.guest["machine"])))
    commands = list(origin["commands"])
    for scheme in SCHEMES:
        example = next((entry for entry in results.points if entry["scheme"] == scheme.name), None)
        if example:
            commands += ["", f"# {scheme.title}; DIR is a temporary folder. report.json has the commands of every point",
                         example["server_command"], example["command"]]
    commands += [line for entry in (results.bytes, results.cleaning) if entry for line in ("", entry["command"])]
    page.origin(origin["machine"], origin["commit"], facts, commands)
