"""include/erda includes itself and the standard library, and no library with which Erda is built."""

import pathlib
import re
import unittest

INCLUDE = pathlib.Path(__file__).parents[2] / "include"
C_HEADERS = {"stddef.h", "stdint.h"}


class PublicHeaders(unittest.TestCase):
    def test_include_no_third_party(self):
        headers = sorted((INCLUDE / "erda").glob("*"))
        self.assertGreater(len(headers), 5)
        for header in headers:
            for line in re.findall(r"^ *# *include.*", header.read_text(encoding="utf-8"), re.M):
                with self.subTest(header=header.name, line=line):
                    standard, own = re.fullmatch(r"#include (?:<([a-z_.]+)>|\"(erda/[a-z_]+\.h)\")", line).groups()
                    if own:
                        self.assertTrue((INCLUDE / own).is_file())
                    else:
                        self.assertTrue("." not in standard or standard in C_HEADERS)


if __name__ == "__main__":
    unittest.main()
