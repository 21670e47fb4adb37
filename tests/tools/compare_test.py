"""tools/compare: its output for made-up figures."""

import json
import pathlib
import re
import unittest

import origins
from balance import unbalanced
from comparison import output, systems
from comparison.measure import Measured, Plan, cells_of

SLOWER = {"erda": 1, "redis": 50, "memcached": 20}


def plan(sizes=(64, 1024), clients=(1, 4, 16)):
    return Plan(build=pathlib.Path("/b"), folder=pathlib.Path("/f"), sizes=sizes, clients=clients, depth=16, rounds=3,
                slice_seconds=0.5, records=1000, most_value_bytes=1 << 20)


def figures(of: Plan) -> output.Figures:
    """Erda takes 1 µs for a get, and Redis 50. The second round is the median."""
    measured = []
    for size in of.sizes:
        for cell in (cell for part in cells_of(of, size) for cell in part):
            slower = SLOWER.get(cell.system.name, 100)
            entry = Measured(cell, f"ycsb <{cell.system.name}>")
            for factor in (0.1, 1, 10):
                times = {f"{name}_us": slower * factor for name in ("mean", "p50", "p90", "p99", "p999", "max")}
                kinds = {"B": ("get", "put"), "C": ("get",), "update": ("put",)}[cell.workload]
                entry.runs.append({"ops_per_second": 1e6 * cell.clients / slower / factor, "server_processor_us_per_op": slower,
                                   **{kind: times for kind in kinds}})
            measured.append(entry)
    return output.Figures(of, measured)


def origin(file_system="ext4"):
    return origins.origin({"Redis": "7 <&>"}, {"redis": "redis-server"}, file_system)


class Ratios(unittest.TestCase):
    def test_the_three_ratios_are_of_the_medians(self):
        found = output.to_json(figures(plan()), origin())
        self.assertEqual(list(found["ratios"]), ["redis_latency", "redis_throughput", "memcached_throughput"])
        for name, value, clients, depth in (("redis_latency", 50, 1, 1), ("redis_throughput", 50, 16, 16),
                                            ("memcached_throughput", 20, 16, 16)):
            self.assertAlmostEqual(found["ratios"][name], value)
            details = found["ratio_details"][name]
            self.assertEqual((details["value_size"], details["clients"], details["depth"]), (1024, clients, depth))
        self.assertEqual([found["ratio_details"][name]["reached"] for name in found["ratios"]], [False, True, True])

    def test_the_text_names_the_chosen_size_and_clients(self):
        self.assertIn("values of 1 KiB, the size of YCSB's own records: latency with 1 client", output.chosen(figures(plan())))
        other = output.chosen(figures(plan(sizes=(64,), clients=(2,))))
        self.assertIn("values of 64 B: latency with 2 clients", other)

    def test_all_figures_are_in_the_json(self):
        found = json.loads(json.dumps(output.to_json(figures(plan()), origin())))
        self.assertEqual(len(found["results"]), 2 * 2 * 3 * (3 * 3 + 4))
        self.assertEqual(len(found["other_ratios"]), 2 * (4 + 3 * 2 * 2))
        self.assertEqual(found["settings"]["depths"], [1, 16])
        self.assertEqual(found["results"][0]["median"]["get"]["p50_us"], 1)


class Reports(unittest.TestCase):
    def test_page_is_whole_and_escaped(self):
        page = output.to_page(figures(plan()), origin())
        self.assertEqual(unbalanced(page), [])
        self.assertIsNone(re.search(r"(src|href)=|@import|url\(", page))
        self.assertIn("7 &lt;&amp;&gt;", page)
        self.assertIn("ycsb &lt;erda&gt;", page)

    def test_files_in_memory_are_no_disk(self):
        for kind, said in (("ext4", "files were on ext4."), ("tmpfs", "on tmpfs, which is memory")):
            self.assertIn(said, output.to_text(figures(plan()), origin(kind)))
            self.assertIn(said, output.to_page(figures(plan()), origin(kind)).replace("&#x27;", "'"))

    def test_every_system_says_what_it_promises(self):
        text = output.to_text(figures(plan()), origin())
        for system in (*systems.MAIN, *systems.DURABLE):
            self.assertIn(f"{system.title}: {system.promise}", text)


if __name__ == "__main__":
    unittest.main()
