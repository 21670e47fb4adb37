"""tools/report: charts are well-formed and show their numbers; pages need no other file."""

import pathlib
import re
import sys
import unittest
import xml.etree.ElementTree as ElementTree

from balance import unbalanced
from report import charts, machine, overview
from report.charts import Axis, Scale, Series
from report.page import Card, Column, Page

SVG = "{http://www.w3.org/2000/svg}"


def titles(svg: str) -> list[str]:
    return [element.text for element in ElementTree.fromstring(svg).iter(f"{SVG}title")]


class Numbers(unittest.TestCase):
    def test_three_digits_and_a_unit(self):
        for value, text in ((0, "0"), (0.0123, "0.0123"), (1, "1"), (999.6, "1 k"), (1234, "1.23 k"), (99950, "100 k"),
                            (1234567, "1.23 M"), (2e9, "2 G")):
            self.assertEqual(charts.number(value), text)

    def test_sizes(self):
        for value, text in ((64, "64 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (16384, "16 KiB"), (2**30, "1 GiB")):
            self.assertEqual(charts.size(value), text)

    def test_times(self):
        for value, text in ((0.271, "0.271 µs"), (15.41, "15.4 µs"), (1500, "1.5 ms"), (2.5e6, "2.5 s")):
            self.assertEqual(charts.microseconds(value), text)


class Scales(unittest.TestCase):
    def test_linear_begins_at_zero_and_holds_all(self):
        scale = Scale(Axis("y"), [3, 97], 200, 0, zero=True)
        self.assertEqual(scale.ticks, [0, 25, 50, 75, 100])
        self.assertEqual(scale(0), 200)
        self.assertEqual(scale(100), 0)
        self.assertEqual(scale(50), 100)

    def test_log_gives_each_decade_the_same_room(self):
        scale = Scale(Axis("y", log=True), [0.2, 900], 0, 400, zero=True)
        self.assertEqual([round(tick, 9) for tick in scale.ticks], [0.1, 1, 10, 100, 1000])
        self.assertAlmostEqual(scale(1) - scale(0.1), 100)
        self.assertAlmostEqual(scale(1000) - scale(100), 100)

    def test_log_of_nothing_is_refused(self):
        with self.assertRaises(ValueError):
            Scale(Axis("y", log=True), [0, 1], 0, 1, zero=True)

    def test_one_value_has_a_place(self):
        for log in (False, True):
            position = Scale(Axis("x", log=log, ticks=[64]), [64], 0, 100, zero=False)(64)
            self.assertTrue(0 <= position <= 100, position)


class Overview(unittest.TestCase):
    def test_chart_in_the_documents_shows_their_table(self):
        self.assertEqual(overview.CHART.read_text(encoding="utf-8"), overview.draw(overview.TABLE.read_text(encoding="utf-8")))


class Charts(unittest.TestCase):
    SERIES = (
        Series("Erda <shm> & \"co\"", [(64, 0.25), (1024, 0.5), (16384, 4)]),
        Series("Redis", [(64, 25), (1024, None), (16384, 40)]),
    )
    SIZES = Axis("Value size", log=True, format=charts.size, ticks=[64, 1024, 16384])

    def test_lines_show_every_value_that_there_is(self):
        svg = charts.lines("a < b", self.SIZES, Axis("Latency", log=True, format=charts.microseconds), self.SERIES)
        self.assertEqual(ElementTree.fromstring(svg).get("aria-label"), "a < b")
        self.assertEqual(
            titles(svg),
            ["Erda <shm> & \"co\", 64 B: 0.25 µs", "Erda <shm> & \"co\", 1 KiB: 0.5 µs", "Erda <shm> & \"co\", 16 KiB: 4 µs",
             "Redis, 64 B: 25 µs", "Redis, 16 KiB: 40 µs"],
        )

    def test_points_are_where_their_values_belong(self):
        svg = charts.lines("t", self.SIZES, Axis("Latency", log=True), [Series("s", [(64, 1), (1024, 10), (16384, 100)])])
        line = next(ElementTree.fromstring(svg).iter(f"{SVG}polyline")).get("points")
        points = [tuple(map(float, point.split(","))) for point in line.split()]
        self.assertAlmostEqual(points[1][0] - points[0][0], points[2][0] - points[1][0], delta=0.2)
        self.assertAlmostEqual(points[0][1] - points[1][1], points[1][1] - points[2][1], delta=0.2)
        self.assertGreater(points[0][1], points[2][1])
        for x, y in points:
            self.assertTrue(0 <= x <= charts.WIDTH and 0 <= y <= charts.HEIGHT, (x, y))

    def test_bars_are_as_high_as_their_values(self):
        svg = charts.bars("t", Axis("ops/s"), ["64 B", "1 KiB"], [Series("a", [(0, 100), (1, 50)]), Series("b", [(0, 25), (1, None)])])
        self.assertEqual(titles(svg), ["a, 64 B: 100", "a, 1 KiB: 50", "b, 64 B: 25"])
        bars = [group for group in ElementTree.fromstring(svg).iter(f"{SVG}g") if group.get("class", "").startswith("bar")]
        heights = [float(bar.find(f"{SVG}rect").get("height")) for bar in bars]
        self.assertAlmostEqual(heights[0] / heights[1], 2, places=1)
        self.assertAlmostEqual(heights[0] / heights[2], 4, places=1)

    def test_series_differ_without_colour(self):
        series = [Series(f"s{i}", [(1, i + 1)]) for i in range(len(charts.COLOURS))]
        svg = charts.lines("t", Axis("x", ticks=[1]), Axis("y"), series)
        points = [g for g in ElementTree.fromstring(svg).iter(f"{SVG}g") if g.find(f"{SVG}title") is not None]
        shapes = {re.sub(r"[-0-9.]+", "", ElementTree.tostring(point[1], encoding="unicode")) +
                  str(self._outline(point[1])) for point in points}
        self.assertEqual(len(shapes), len(charts.COLOURS))

    @staticmethod
    def _outline(shape: ElementTree.Element) -> list[tuple[float, float]]:
        points = [tuple(map(float, point.split(","))) for point in shape.get("points", "").split()]
        return [(round(x - points[0][0], 1), round(y - points[0][1], 1)) for x, y in points]


class Pages(unittest.TestCase):
    def page(self) -> str:
        page = Page("A & B", "lead <b>")
        page.heading("Figures")
        page.cards([Card("82×", "what", "target 60", True), Card("2×", "what", "target 10", False)])
        page.charts([("title", "more", charts.bars("t", Axis("y"), ["g"], [Series("a", [(0, 1)])]))])
        page.table("cells", [Column("Name", text=True), Column("p50", group="Erda"), Column("p99", group="Erda")],
                   [["x<y", "1", "2"], ["x<y", "3", "4"], ["z", "5", "6"]])
        page.origin(machine.machine(), {"hash": "0123456789abcdef", "date": "d", "changed_files": 1}, [("Redis", "7")], ["a > b"])
        return page.html()

    def test_every_element_is_closed_and_every_text_escaped(self):
        text = self.page()
        self.assertEqual(unbalanced(text), [])
        for escaped in ("A &amp; B", "lead &lt;b&gt;", "x&lt;y", "a &gt; b", "0123456789ab, and 1 changed file"):
            self.assertIn(escaped, text)

    def test_nothing_comes_from_elsewhere(self):
        self.assertIsNone(re.search(r"(src|href)=|@import|url\(", self.page()))

    def test_every_colour_of_a_chart_is_in_the_style(self):
        for number in range(len(charts.COLOURS)):
            self.assertEqual(self.page().count(f"--c{number}: #"), 2)  # Light and dark.

    def test_a_row_has_as_many_cells_as_there_are_columns(self):
        with self.assertRaises(ValueError):
            Page("t", "l").table("c", [Column("a"), Column("b")], [["1"]])


class Machine(unittest.TestCase):
    def test_describes_this_machine(self):
        found = machine.machine()
        self.assertGreater(found["processors"], 0)
        self.assertGreater(found["memory_bytes"], 0)
        self.assertIn(f"Linux {found['kernel']}", machine.describe(found))

    def test_folder_without_a_commit(self):
        self.assertEqual(machine.describe_commit(machine.commit(pathlib.Path("/"))), "unknown")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
