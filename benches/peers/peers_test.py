#!/usr/bin/env python3
"""Tests of peers.py: what it makes of peers that measure, that have nothing to measure, and that fail."""

import json
import os
import subprocess
import sys
import tempfile

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers.py")


def row(peer, name, value, wrong=0):
    return json.dumps({"peer": peer, "name": name, "threads": 1, "operations": 9, "ns_per_op": value,
                       "per_second": 1e9 / value, "wrong": wrong})


def write_peer(folder, name, lines, status=0, message=""):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
        file.write(f"echo '{message}' >&2\nexit {status}\n")
    os.chmod(path, 0o755)
    return f"{name}={path}"


def run(folder, *peers):
    out = os.path.join(folder, "out.json")
    done = subprocess.run([sys.executable, PROGRAM, "--out", out, "--rounds", "2", *peers], capture_output=True,
                          text=True)
    with open(out, encoding="utf-8") as file:
        return done, json.load(file)


def test_ratios(folder):
    """Ours at 10 ns is 5 times better than 50 ns; in evaluations the larger figure is the better one."""
    ours = write_peer(folder, "ours", [row("ours", "device_lookup", 10.0), row("ours", "evaluation", 100.0)])
    other = write_peer(folder, "other", [row("other", "device_lookup", 50.0), row("other", "evaluation", 50.0)])
    done, report = run(folder, ours, other)
    assert done.returncode == 0, done
    factors = {r["name"]: r["ours_is_better_by"] for r in report["results"] if r["peer"] == "other"}
    tables = subprocess.run([sys.executable, PROGRAM, "--markdown", os.path.join(folder, "out.json")],
                            capture_output=True, text=True)
    assert "| 1 | 10 | 50 (5x) |" in tables.stdout, tables
    assert abs(factors["device_lookup"] - 5) < 1e-9 and abs(factors["evaluation"] - 0.5) < 1e-9, factors


def test_overlap(folder):
    """No ratio where the rounds of the two overlap: 10 or 30 ns against 20 ns."""
    path = os.path.join(folder, "wavering")
    with open(path, "w", encoding="utf-8") as file:
        state = os.path.join(folder, "state")
        file.write(f"#!/bin/sh\nif [ -e {state} ]; then echo '{row('ours', 'device_lookup', 30.0)}'; "
                   f"else touch {state}; echo '{row('ours', 'device_lookup', 10.0)}'; fi\n")
    os.chmod(path, 0o755)
    other = write_peer(folder, "other", [row("other", "device_lookup", 20.0)])
    _, report = run(folder, f"ours={path}", other)
    assert all(r["ours_is_better_by"] is None for r in report["results"]), report


def test_absent(folder):
    ours = write_peer(folder, "ours", [row("ours", "device_lookup", 10.0)])
    absent = write_peer(folder, "absent", [], 77, "there is no GPU")
    done, report = run(folder, ours, absent)
    assert done.returncode == 0 and report["missing"] == {"absent": "there is no GPU"}, done


def test_wrong_values(folder):
    """A peer that reads back wrong values ends with status 1; so does the run, and it says how many."""
    ours = write_peer(folder, "ours", [row("ours", "device_lookup", 10.0)])
    bad = write_peer(folder, "bad", [row("bad", "evaluation", 10.0, wrong=3)], 1, "3 wrong values")
    done, report = run(folder, ours, bad)
    assert done.returncode == 1 and "3 wrong values" in report["missing"]["bad"], done
    assert " 3 wrong values" in done.stdout.splitlines()[-1], done
    lying = write_peer(folder, "lying", [row("lying", "evaluation", 10.0, wrong=3)])
    done, _ = run(folder, ours, lying)
    assert done.returncode == 1 and "6 wrong values" in done.stdout, done


def test_broken(folder):
    """A peer that fails, or prints a line that is no JSON, is left out and fails the run."""
    ours = write_peer(folder, "ours", [row("ours", "device_lookup", 10.0)])
    done, report = run(folder, ours, write_peer(folder, "garbled", ["not JSON"]))
    assert done.returncode == 1 and "no JSON" in report["missing"]["garbled"], report
    done, _ = run(folder, ours, write_peer(folder, "crashed", [], 139, "gone"))
    assert done.returncode == 1, done


TESTS = [test_ratios, test_overlap, test_absent, test_wrong_values, test_broken]

for test in TESTS:
    with tempfile.TemporaryDirectory() as folder:
        test(folder)
print(f"peers.py: {len(TESTS)} tests passed")
