#!/usr/bin/env python3
"""Tests of report.py: that it tells flat from growing, and fails for the latter."""

import json
import os
import subprocess
import sys
import tempfile

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "report.py")


def run(folder, what, must, values, limit=0):
    """report.py on a program that prints one curve: n is 10, 100, 1000 and so on."""
    path = os.path.join(folder, "program")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n")
        for i, value in enumerate(values):
            point = {"series": "a <series>", "what": what, "n": 10 ** (i + 1), "value": value, "must": must,
                     "limit": limit}
            file.write(f"echo '{json.dumps(point)}'\n")
    os.chmod(path, 0o755)
    out = os.path.join(folder, "out")
    return subprocess.run([sys.executable, PROGRAM, "--out", out, path], capture_output=True, text=True), out


CASES = [
    ("flat", "cost, ns", "flat", [20, 21, 19, 22], 0, True),
    ("noise over a short curve", "cost, ns", "flat", [20, 33], 0, True),
    ("noise of a nanosecond or two", "cost, ns", "flat", [1.9, 4.0], 0, True),
    ("a scan", "cost, ns", "flat", [20, 40, 300, 3000], 0, False),
    ("a tree", "cost, ns", "flat", [20, 40, 60, 80], 0, False),
    ("linear memory", "memory, KiB", "linear", [2e3, 2e4, 2e5, 2e6], 0, True),
    ("memory by the square", "memory, KiB", "linear", [2e3, 2e5, 2e7, 2e9], 0, False),
    ("a late leak", "memory, KiB", "flat", [20000, 20001, 20010, 40000], 0, False),
    ("little memory", "memory, KiB", "flat", [1, 10, 100, 1000], 0, True),
    ("bounded", "driver streams", "bounded", [8, 9, 10, 10], 10, True),
    ("out of bounds", "driver streams", "bounded", [8, 9, 10, 11], 10, False),
]

for name, what, must, values, limit, good in CASES:
    with tempfile.TemporaryDirectory() as folder:
        done, out = run(folder, what, must, values, limit)
        assert (done.returncode == 0) == good, (name, done)
        assert os.path.getsize(os.path.join(out, "growth-a-<series>.svg")) > 500, name
        with open(os.path.join(out, "growth.json"), encoding="utf-8") as file:
            assert json.load(file)[0]["ok"] == good, name
with tempfile.TemporaryDirectory() as folder:
    failed = subprocess.run([sys.executable, PROGRAM, "--out", folder, "/bin/false"], capture_output=True, text=True)
    assert failed.returncode != 0 and "failed with status" in failed.stderr, failed
print(f"report.py: {len(CASES) + 1} tests passed")
