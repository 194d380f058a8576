#!/usr/bin/env python3
"""Counts what each hot path takes under callgrind, instructions and atomic steps, and compares it with a file.

counts.py check|update PROGRAM COUNTS_FILE COMPILER_VERSION

`check` fails where a path takes more than 2 % + 2 instructions more than the file says. With another compiler or C
library than the file's it is 15 % + 2, since code then differs that nobody changed. A path that the file does not have,
or that is gone, fails too: `update` writes the file anew. Atomic steps (locked instructions: what threads contend for)
may not grow at all, with whatever tools: one of them is a single instruction, and what a lookup costs on many cores.
"""

import json
import os
import platform
import re
import subprocess
import sys
import tempfile

SLACK_INSTRUCTIONS = 2
SLACK_SAME_TOOLS = 0.02
SLACK_OTHER_TOOLS = 0.15
# Paths that now and then do more than mostly, such as one that grows a table, do not come to a whole number.
SLACK_ATOMICS = 0.1
PREFIX = "count_"
# String functions are chosen by what the processor can do, and count differently: the plain ones are asked for.
TUNABLES = "glibc.cpu.hwcaps=-AVX2,-AVX,-AVX512F,-AVX512VL,-AVX512BW,-ERMS,-FSRM,-BMI2,-MOVBE,-RTM"


def run_callgrind(program):
    """What callgrind wrote, and how many rounds the program says that it went."""
    environment = {"PATH": os.environ.get("PATH", "/usr/bin"), "RDM_CACHE_DIR": "", "GLIBC_TUNABLES": TUNABLES}
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "callgrind.out")
        command = ["valgrind", "--tool=callgrind", "--collect-bus=yes", f"--callgrind-out-file={out}",
                   "--compress-strings=no", program]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            sys.exit(f"instruction-counts: {program} failed under valgrind:\n{done.stderr}")
        rounds = int(re.search(r"^rounds (\d+)$", done.stdout, re.MULTILINE).group(1))
        with open(out, encoding="utf-8") as file:
            return file.read(), rounds


def count(text, rounds):
    """Of each path, instructions and atomic steps for one operation: the cost of all that its count_ function calls."""
    totals = {}
    function = ""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("events:"):
            assert line.split()[1:] == ["Ir", "Ge"], line
        elif line.startswith("fn="):
            function = line[3:]
        elif line.startswith("calls="):
            # Position, instructions, and atomic steps where there are any.
            cost = [int(number) for number in next(lines).split()[1:]] + [0]
            if function.startswith(PREFIX):
                total = totals.setdefault(function[len(PREFIX):], [0, 0])
                total[0] += cost[0]
                total[1] += cost[1]
    return {name: {"instructions": round(total[0] / rounds, 1), "atomics": round(total[1] / rounds, 2)}
            for name, total in totals.items()}


def tools(compiler):
    return {"compiler": compiler, "library": " ".join(platform.libc_ver()), "machine": platform.machine()}


def judge(new, old, slack):
    room = old["instructions"] * slack + SLACK_INSTRUCTIONS
    if new["atomics"] > old["atomics"] + SLACK_ATOMICS:
        return "WORSE: atomic steps"
    if new["instructions"] > old["instructions"] + room:
        return "WORSE"
    if new["atomics"] < old["atomics"] - SLACK_ATOMICS or new["instructions"] < old["instructions"] - room:
        return "better"
    return ""


def compare(now, kept, same_tools):
    """Prints each path, and gives how many are worse, and how many better, than the slack allows."""
    slack = SLACK_SAME_TOOLS if same_tools else SLACK_OTHER_TOOLS
    nothing = {"instructions": "-", "atomics": "-"}
    verdicts = []
    for name in sorted(now.keys() | kept.keys()):
        new, old = now.get(name), kept.get(name)
        if new is None or old is None:
            verdict = "WORSE: gone" if new is None else "WORSE: not in the file"
        else:
            verdict = judge(new, old, slack)
        verdicts.append(verdict)
        old, new = old or nothing, new or nothing
        print(f"{name:<26}{old['instructions']:>10}{new['instructions']:>10}{old['atomics']:>10}{new['atomics']:>10}"
              f"  {verdict}".rstrip())
    return sum(verdict.startswith("WORSE") for verdict in verdicts), verdicts.count("better")


def check(now, path, current_tools):
    with open(path, encoding="utf-8") as file:
        kept = json.load(file)
    if kept["tools"]["machine"] != current_tools["machine"]:
        print(f"instruction-counts: skipped: the file is of {kept['tools']['machine']}")
        return 0
    same_tools = kept["tools"] == current_tools
    if not same_tools:
        print(f"warning: the file was made with {kept['tools']}, this is {current_tools}: wider bounds")
    print(f"{'':<26}{'instructions':>20}{'atomic steps':>20}")
    print(f"{'path':<26}{'file':>10}{'now':>10}{'file':>10}{'now':>10}")
    worse, better = compare(now, kept["counts"], same_tools)
    if better:
        print("some are better: `make instruction-counts-update` keeps that")
    print(f"instruction-counts: {len(now)} paths, {worse} worse, {better} better, "
          f"{'the same' if same_tools else 'other'} tools")
    return 1 if worse else 0


def main():
    if len(sys.argv) != 5 or sys.argv[1] not in ("check", "update"):
        sys.exit(__doc__)
    _, action, program, path, compiler = sys.argv
    now = count(*run_callgrind(program))
    if not now:
        sys.exit("instruction-counts: callgrind saw none of the paths")
    if action == "check":
        sys.exit(check(now, path, tools(compiler)))
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"tools": tools(compiler), "counts": dict(sorted(now.items()))}, file, indent=1)
        file.write("\n")
    print(f"instruction-counts: {len(now)} paths written to {path}")


if __name__ == "__main__":
    main()
