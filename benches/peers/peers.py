#!/usr/bin/env python3
"""Runs the peers in turn, in rounds, and puts their figures side by side.

peers.py --out FILE [--rounds N] [--seconds S] [--threads N,N] [--skipped NAME=WHY]... NAME=PROGRAM...
peers.py --markdown FILE     the tables of an earlier run's FILE, for docs/performance.md

Every program prints one line of JSON for each measurement and takes --seconds and --threads; exit status 77 says that
it has nothing to measure here. The first program named is the one that the others are compared with.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys

NOTHING_TO_MEASURE = 77
LIMIT_S = 120
TITLES = {
    "device_lookup": "device lookup, or what stands for it (set-device, context check), ns",
    "stream_lookup": "the stream that a thread submits to, ns",
    "event_create_destroy": "event made and ended, ns",
    "event_create_record_destroy": "event made, recorded and ended, ns",
    "stream_get_put": "stream had and given back, ns",
    "launch_empty": "empty kernel, each thread its own stream, ns",
    "evaluation": "arange * 2 + 1, read back and checked, evaluations a second in all",
    "evaluation_as_documented": "the same as the peer's documentation has it, evaluations a second in all",
}


def is_rate(name):
    return name.startswith("evaluation")


def output_of(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def describe_machine():
    processor = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            processor = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        pass
    gpu = ""
    if shutil.which("nvidia-smi"):
        gpu = output_of(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    return {
        "processor": processor,
        "cores": len(os.sched_getaffinity(0)),
        "gpu": gpu.splitlines()[0] if gpu else "none",
        "system": platform.system(),
    }


def run_peer(name, program, arguments):
    """The peer's measurements of one round, why there are none, and how many wrong values a run that failed read."""
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return [], f"FAILED: took longer than {LIMIT_S} s", 0
    except OSError as error:
        return [], f"FAILED: {error}", 0
    tail = done.stderr.strip().splitlines()[-1:] or ["no message"]
    if done.returncode == NOTHING_TO_MEASURE:
        return [], tail[0], 0
    rows = []
    for line in done.stdout.splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            return [], f"FAILED: printed a line that is no JSON: {line[:80]}", 0
    if done.returncode != 0:
        # What was wrong is kept, so that it is counted; the figures of such a run are not used.
        wrong = sum(row.get("wrong", 0) for row in rows)
        return [], f"FAILED with status {done.returncode}, {wrong} wrong values: {tail[0]}", wrong
    return rows, "", 0


def collect(peers, rounds, arguments):
    samples, missing, all_wrong = {}, {}, 0
    for number in range(rounds):
        # Each round begins with another peer, so that none always has the machine as another left it.
        turn = number % len(peers)
        for name, program in peers[turn:] + peers[:turn]:
            if name in missing:
                continue
            rows, why, wrong = run_peer(name, program, arguments)
            all_wrong += wrong
            if why:
                missing[name] = why
                samples = {key: value for key, value in samples.items() if key[0] != name}
                continue
            for row in rows:
                samples.setdefault((name, row["name"], row["threads"]), []).append(row)
        print(f"round {number + 1} of {rounds} done", file=sys.stderr)
    return samples, missing, all_wrong


def summarize(samples):
    results = []
    for (peer, name, threads), rows in samples.items():
        values = [row["per_second" if is_rate(name) else "ns_per_op"] for row in rows]
        results.append({
            "peer": peer, "name": name, "threads": threads, "unit": "per_second" if is_rate(name) else "ns_per_op",
            "median": statistics.median(values), "least": min(values), "most": max(values), "rounds": len(values),
            "wrong": sum(row["wrong"] for row in rows),
        })
    return results


def ratio(ours, theirs):
    """How many times better ours is. None where the rounds overlap: the difference is then no finding."""
    if ours is None or (ours["least"] <= theirs["most"] and theirs["least"] <= ours["most"]):
        return None
    if ours["unit"] == "per_second":
        return ours["median"] / theirs["median"]
    return theirs["median"] / ours["median"]


def add_ratios(results, base):
    by_key = {(row["peer"], row["name"], row["threads"]): row for row in results}
    for row in results:
        # What is only there in another form is compared with ours of the plain form.
        ours = by_key.get((base, row["name"].removesuffix("_as_documented"), row["threads"]))
        row["ours_is_better_by"] = None if row["peer"] == base else ratio(ours, row)


def print_table(results, order):
    for name, title in TITLES.items():
        rows = [row for row in results if row["name"] == name]
        if not rows:
            continue
        peers = [peer for peer in order if any(row["peer"] == peer for row in rows)]
        print(f"\n{title}")
        print(f"{'threads':>8}" + "".join(f"{peer:>34}" for peer in peers))
        for threads in sorted({row["threads"] for row in rows}):
            cells = []
            for peer in peers:
                row = next((r for r in rows if r["peer"] == peer and r["threads"] == threads), None)
                if row is None:
                    cells.append(f"{'-':>34}")
                    continue
                spread = f"{row['median']:.5g} ({row['least']:.4g}..{row['most']:.4g})"
                factor = row["ours_is_better_by"]
                cells.append(f"{spread + (f' {factor:.3g}x' if factor else '    '):>34}")
            print(f"{threads:>8}" + "".join(cells))


def print_markdown(report):
    """The medians, the ratio of ours to each in brackets."""
    machine = report["machine"]
    print(f"{machine['processor']}, {machine['cores']} cores; {machine['gpu']}; {report['rounds']} rounds of "
          f"{report['seconds']} s each.")
    order = list(dict.fromkeys(row["peer"] for row in report["results"]))
    for name, title in TITLES.items():
        rows = [row for row in report["results"] if row["name"] == name]
        peers = [peer for peer in order if any(row["peer"] == peer for row in rows)]
        if not rows:
            continue
        print(f"\n{title[0].upper()}{title[1:]}:\n\n| threads | " + " | ".join(peers) + " |")
        print("| ---: |" + " ---: |" * len(peers))
        for threads in sorted({row["threads"] for row in rows}):
            cells = []
            for peer in peers:
                row = next((r for r in rows if r["peer"] == peer and r["threads"] == threads), None)
                factor = row["ours_is_better_by"] if row else None
                figure = f"{row['median']:,.0f}" if row and row["median"] >= 100 else f"{row['median']:.3g}" if row else ""
                cells.append(figure + (f" ({factor:.3g}x)" if factor else ""))
            print(f"| {threads} | " + " | ".join(cells) + " |")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--markdown":
        with open(sys.argv[2], encoding="utf-8") as file:
            print_markdown(json.load(file))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", default="0.2")
    parser.add_argument("--threads", default="1,2,4,8,16")
    parser.add_argument("--skipped", action="append", default=[])
    parser.add_argument("peers", nargs="+")
    options = parser.parse_args()
    peers = [tuple(peer.split("=", 1)) for peer in options.peers]
    skipped = dict(text.split("=", 1) for text in options.skipped)
    arguments = ["--seconds", options.seconds, "--threads", options.threads]
    samples, missing, wrong = collect(peers, options.rounds, arguments)
    results = summarize(samples)
    add_ratios(results, peers[0][0])
    print_table(results, [name for name, _ in peers])
    print("\nmedian (least..most) of the rounds; Nx: ours is N times better, said only where no two rounds overlap")
    missing.update(skipped)
    for name, why in missing.items():
        print(f"{name}: not in the table: {why}")
    report = {
        "machine": describe_machine(), "rounds": options.rounds, "seconds": float(options.seconds),
        "results": results, "missing": missing,
    }
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
        file.write("\n")
    wrong += sum(row["wrong"] for row in results)
    failed = sum(why.startswith("FAILED") for why in missing.values())
    measured = len({row["peer"] for row in results})
    print(f"peers: {measured} peers, {len(results)} figures, {options.rounds} rounds, {wrong} wrong values, "
          f"{len(missing)} not there, {failed} failed")
    sys.exit(1 if wrong or failed or not measured else 0)


if __name__ == "__main__":
    main()
