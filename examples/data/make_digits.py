#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes digits.csv from the copy of the UCI data set that scikit-learn ships.

One image per line: 64 pixels from 0 to 16, row by row, then the digit. That is the layout of the
original file `optdigits.tes`. Needs scikit-learn; makes no network request.
"""
import argparse
import pathlib

from sklearn.datasets import load_digits


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = pathlib.Path(__file__).with_name("digits.csv")
    parser.add_argument("output", nargs="?", type=pathlib.Path, default=default)
    output = parser.parse_args().output

    digits = load_digits()
    lines = []
    for pixels, label in zip(digits.data, digits.target):
        values = [int(value) for value in pixels]
        assert len(values) == 64 and all(0 <= value <= 16 for value in values)
        assert 0 <= label <= 9
        lines.append(",".join(str(value) for value in [*values, int(label)]))
    output.write_text("\n".join(lines) + "\n", encoding="ascii")
    print(f"{output}: {len(lines)} images")


if __name__ == "__main__":
    main()
