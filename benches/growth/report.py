#!/usr/bin/env python3
"""Runs the growth programs, fits how each curve grows, and fails where one grows worse than it may.

report.py --out FOLDER [--full] PROGRAM...

A program prints one line of JSON for each point of a curve: series, what, n, value, must, limit. The exponent of a
curve is the slope of log(value) against log(n): 0 is flat, 1 is linear. Writes FOLDER/growth.json and a picture for
each series, FOLDER/growth-SERIES.svg.
"""

import argparse
import json
import math
import os
import subprocess
import sys

FLAT = 0.15
# Memory that was free before hides the first part of a curve, which then rises faster; by the square would be 2.
LINEAR = 1.25
# A cost that ends below so many times its least has not grown: other work on the machine does as much.
NOISE = 1.75
# Nor has one that ends so little above: less than a load that misses the nearest cache.
NOISE_NS = 3
# Below this much memory a curve is what the allocator rounds to.
LEAST_KIB = 1024


def run(programs, full):
    points = []
    environment = dict(os.environ, RDM_CACHE_DIR="")
    for program in programs:
        command = [program] + (["full"] if full else [])
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            sys.exit(f"growth: {program} failed with status {done.returncode}: {done.stderr.strip()}")
        points += [json.loads(line) for line in done.stdout.splitlines()]
    return points


def curves_of(points):
    curves = {}
    for point in points:
        curve = curves.setdefault((point["series"], point["what"]), {
            "series": point["series"], "what": point["what"], "must": point["must"], "points": []})
        curve["points"].append({"n": point["n"], "value": point["value"], "limit": point["limit"]})
    return list(curves.values())


def slope(points):
    """The slope of log(value) against log(n), by least squares; 0 for fewer than two points."""
    logs = [(math.log(p["n"]), math.log(p["value"])) for p in points if p["value"] > 0]
    if len(logs) < 2:
        return 0.0
    mean_x = sum(x for x, _ in logs) / len(logs)
    mean_y = sum(y for _, y in logs) / len(logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def judge(curve):
    """Sets the curve's exponent and whether it may be so."""
    points = curve["points"]
    is_memory = curve["what"].startswith("memory")
    if curve["must"] == "bounded":
        curve["exponent"] = slope(points)
        curve["ok"] = all(point["value"] <= point["limit"] for point in points)
        return
    if is_memory:
        points = [point for point in points if point["value"] >= LEAST_KIB]
    exponent = slope(points)
    if is_memory and len(points) > 1:
        # A leak that is little beside what was there at first shows in the last step.
        exponent = max(exponent, slope(points[-2:]))
    curve["exponent"] = exponent
    curve["ok"] = exponent <= (FLAT if curve["must"] == "flat" else LINEAR)
    if not is_memory:
        curve["ok"] = curve["ok"] or points[-1]["value"] < NOISE * min(point["value"] for point in points) + NOISE_NS


def print_table(curves):
    print(f"{'':<36}{'':<34}{'n':>22}{'value':>24}{'exponent':>10}  may be")
    for curve in curves:
        first, last = curve["points"][0], curve["points"][-1]
        verdict = "" if curve["ok"] else "  TOO FAST"
        print(f"{curve['series']:<36}{curve['what']:<34}{first['n']:>11}..{last['n']:<9}"
              f"{first['value']:>12.1f}..{last['value']:<10.1f}{curve['exponent']:>10.2f}  {curve['must']}{verdict}")


# ---- Pictures -------------------------------------------------------------------------------------------------------

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 80, 250, 40, 60
COLOURS = ["#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad"]


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


def decades(least, most):
    return range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)


def power(exponent):
    return f"{10 ** exponent:,}" if 0 <= exponent <= 6 else f"1e{exponent}"


def picture(name, curves):
    """Both axes logarithmic, so that what is flat is level and what is linear rises one decade a decade."""
    points = [point for curve in curves for point in curve["points"] if point["value"] > 0]
    across = decades(min(p["n"] for p in points), max(max(p["n"] for p in points), 10))
    up = decades(min(p["value"] for p in points), max(max(p["value"] for p in points), 10))

    def place(n, value):
        x = LEFT + (math.log10(n) - across[0]) / (across[-1] - across[0] or 1) * (WIDTH - LEFT - RIGHT)
        y = HEIGHT - BOTTOM - (math.log10(value) - up[0]) / (up[-1] - up[0] or 1) * (HEIGHT - TOP - BOTTOM)
        return round(x, 1), round(y, 1)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
           f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="24" font-size="15">{escape(name)}</text>']
    for exponent in across:
        x, _ = place(10 ** exponent, 10 ** up[0])
        out.append(f'<path d="M{x} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>')
        out.append(f'<text x="{x}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{power(exponent)}</text>')
    for exponent in up:
        _, y = place(10 ** across[0], 10 ** exponent)
        out.append(f'<path d="M{LEFT} {y}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{power(exponent)}</text>')
    for i, curve in enumerate(curves):
        colour = COLOURS[i % len(COLOURS)]
        places = [place(p["n"], p["value"]) for p in curve["points"] if p["value"] > 0]
        line = " ".join(f"{x},{y}" for x, y in places)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in places]
        y = TOP + 16 + i * 36
        out.append(f'<text x="{WIDTH - RIGHT + 14}" y="{y}" fill="{colour}">{escape(curve["what"])}</text>')
        out.append(f'<text x="{WIDTH - RIGHT + 14}" y="{y + 15}" fill="#555">exponent {curve["exponent"]:.2f}</text>')
    middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
    out.append(f'<text x="{middle}" y="{HEIGHT - 14}" text-anchor="middle">n, how many of them</text>')
    return "\n".join(out) + "\n</svg>\n"


def write(folder, curves):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "growth.json"), "w", encoding="utf-8") as file:
        json.dump(curves, file, indent=1)
        file.write("\n")
    for series in dict.fromkeys(curve["series"] for curve in curves):
        name = "growth-" + series.replace(" ", "-") + ".svg"
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(picture(series, [curve for curve in curves if curve["series"] == series]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("programs", nargs="+")
    options = parser.parse_args()
    curves = curves_of(run(options.programs, options.full))
    for curve in curves:
        judge(curve)
    print_table(curves)
    write(options.out, curves)
    bad = sum(not curve["ok"] for curve in curves)
    print(f"growth: {len(curves)} curves, {sum(len(c['points']) for c in curves)} points, {bad} that grow too fast")
    sys.exit(1 if bad or not curves else 0)


if __name__ == "__main__":
    main()
