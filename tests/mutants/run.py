#!/usr/bin/env python3
"""Takes the library's invariants away one at a time, and shows that a test fails for each.

    run.py [--folder FOLDER] [--jobs N] [NAME...]

Each tests/mutants/NAME.patch is a change of csrc/ below a few lines that say what it is about:

    Invariant: what the code promises
    Breaks:    what goes wrong without it
    Build:     plain, tsan or asan
    Kill:      [Nx] PROGRAM [ARGUMENT...]   a run of a C test program that has to fail; with Nx, one of N runs
    Timeout:   seconds for one run, 120 unless told
    Hang:      yes, where a run that does not end in that time is what is expected

Those named schedule_ are built for the cooperative scheduler, and `make schedule-mutants` runs them.

Several Kill lines are tried in their order, until one fails. Without NAME all mutants are tried. Prints a line for
each, and last `mutants: N killed, M survived`. Fails where one survives, does not apply, does not compile, or hangs
unexpectedly, and where a run fails on the code as it is: then its failure on a mutant would mean nothing.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATCHES = ROOT / "tests" / "mutants"
VARIANTS = ("plain", "tsan", "asan")
HEADER = re.compile(r"(Invariant|Breaks|Build|Kill|Timeout|Hang):\s*(.*)")
REPEATED = re.compile(r"(\d+)x\s+(.*)")
# What a failed run says of itself, the most telling first.
REASONS = (
    re.compile(r"ThreadSanitizer: ([a-z -]+?) \("),
    re.compile(r"AddressSanitizer: ([a-z-]+)"),
    re.compile(r"(LeakSanitizer)"),
    re.compile(r"\[rdm\] (lock order)"),
    re.compile(r"(not ended after \d+ s)"),
)
FAILED_TEST = re.compile(r"^FAILED (\S+)", re.MULTILINE)
HUNG_TEST = re.compile(r"^    not ended after", re.MULTILINE)


class Problem(Exception):
    """Why a mutant says nothing: neither killed nor survived."""


class Mutant:
    """One patch, and what its header asks for."""

    def __init__(self, path):
        self.path = path
        self.name = path.stem
        fields = {}
        self.kills = []
        for line in path.read_text().splitlines():
            if line.startswith("--- "):
                break
            match = HEADER.fullmatch(line)
            if match is None and not line.startswith("  ") and line.strip():
                raise Problem(f"{path.name}: what is \"{line}\" in its header?")
            if match is None:
                continue
            if match[1] == "Kill":
                repeated = REPEATED.fullmatch(match[2])
                times, command = (int(repeated[1]), repeated[2]) if repeated else (1, match[2])
                self.kills.append((times, tuple(shlex.split(command))))
            else:
                fields[match[1]] = match[2]
        if not {"Invariant", "Breaks", "Build"} <= fields.keys() or not self.kills:
            raise Problem(f"{path.name}: Invariant, Breaks, Build and Kill are all needed")
        self.variant = fields["Build"]
        if self.variant not in VARIANTS:
            raise Problem(f"{path.name}: Build is one of {', '.join(VARIANTS)}")
        self.timeout = int(fields.get("Timeout", "120"))
        self.may_hang = fields.get("Hang") == "yes"

    def programs(self):
        return sorted({command[0] for _, command in self.kills})


class Outcome:
    """How one run of a test program ended."""

    def __init__(self, failed, hung, output, seconds):
        self.failed = failed
        self.hung = hung
        self.output = output
        self.seconds = seconds

    def described(self, command):
        tests = FAILED_TEST.findall(self.output)
        what = f"{command[0]} {tests[0]}" if tests else " ".join(command)
        for reason in REASONS:
            match = reason.search(self.output)
            if match is not None:
                return f"{what}: {match[1]}"
        return f"{what}: not ended" if self.hung else what


def copy_sources(to):
    for name in ("csrc", "tests", "make"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("mutants"), dirs_exist_ok=True)
    shutil.copy2(ROOT / "Makefile", to)


def build(tree, variant, programs, jobs):
    """Compiles what is out of date. The make that may have started us has nothing to say in there."""
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    command = ["make", "--no-print-directory", f"-j{jobs}", "BUILD=build", *(f"build/{variant}/{p}" for p in programs)]
    done = subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Problem("does not compile:\n" + done.stdout[-3000:])


def run(tree, variant, command, timeout, may_hang):
    """Runs a test program as tests/c/run.sh does."""
    environment = dict(os.environ)
    # What is expected to hang is given up by the harness itself, which knows the test, rather than by us.
    if may_hang:
        environment["TEST_LIMIT_SECONDS"] = str(timeout)
    begin = time.monotonic()
    process = subprocess.Popen(["tests/c/run.sh", f"build/{variant}", *command], cwd=tree, env=environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", start_new_session=True)
    hung = False
    try:
        output = process.communicate(timeout=timeout * 2 if may_hang else timeout)[0]
    except subprocess.TimeoutExpired:
        hung = True
        os.killpg(process.pid, signal.SIGKILL)
        output = process.communicate()[0]
    hung = hung or HUNG_TEST.search(output) is not None
    return Outcome(process.returncode != 0, hung, output, time.monotonic() - begin)


class Bench:
    """The unmodified code, built, and the folders in which mutants of it are tried."""

    def __init__(self, folder, jobs):
        self.folder = folder
        self.jobs = jobs
        self.original = folder / "original"
        # The runs that fail on the code as it is, whose failure on a mutant means nothing.
        self.useless = {}

    def prepare(self, mutants):
        # What is built is kept for the next time, and make sees by the times of the sources what has changed.
        self.original.mkdir(parents=True, exist_ok=True)
        for name in ("csrc", "tests", "make"):
            shutil.rmtree(self.original / name, ignore_errors=True)
        copy_sources(self.original)
        for variant in VARIANTS:
            programs = sorted({p for m in mutants if m.variant == variant for p in m.programs()})
            if programs:
                build(self.original, variant, programs, self.jobs)

    def try_original(self, variant, command):
        outcome = run(self.original, variant, command, 300, False)
        if outcome.failed:
            self.useless[variant, command] = outcome.output

    def tree_of(self, mutant):
        """A copy with the patch applied. Objects keep their times, so that make compiles only what the patch changed."""
        tree = self.folder / "mutants" / mutant.name
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir(parents=True)
        copy_sources(tree)
        objects = pathlib.Path("build") / mutant.variant
        shutil.copytree(self.original / objects, tree / objects,
                        ignore=lambda folder, names: [n for n in names if not is_object(pathlib.Path(folder) / n)])
        command = ["patch", "--batch", "--silent", "--fuzz=0", "-p1", "-i", str(mutant.path)]
        done = subprocess.run(command, cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise Problem("does not apply any more:\n" + done.stdout)
        return tree

    def attempt(self, mutant):
        """What killed the mutant, or None, and in how many seconds of running."""
        tree = self.tree_of(mutant)
        build(tree, mutant.variant, mutant.programs(), 1)
        seconds = 0.0
        for times, command in mutant.kills:
            if (mutant.variant, command) in self.useless:
                continue
            for _ in range(times):
                outcome = run(tree, mutant.variant, command, mutant.timeout, mutant.may_hang)
                seconds += outcome.seconds
                if outcome.hung and not mutant.may_hang:
                    raise Problem(f"{' '.join(command)} does not end, which its patch does not say:\n"
                                  + outcome.output[-3000:])
                if outcome.failed:
                    shutil.rmtree(tree, ignore_errors=True)
                    return outcome.described(command), seconds
        return None, seconds


def is_object(path):
    return path.is_dir() or path.suffix in (".o", ".d") or path.name == "flags"


def read_mutants(names):
    paths = sorted(path for path in PATCHES.glob("*.patch") if not path.name.startswith("schedule_"))
    unknown = set(names) - {path.stem for path in paths}
    if unknown:
        raise Problem(f"there is no {', '.join(sorted(unknown))}.patch in {PATCHES}")
    return [Mutant(path) for path in paths if not names or path.stem in names]


def main():
    parser = argparse.ArgumentParser(description="Shows that a test fails for each invariant that is taken away.")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "mutants", help="for what is built")
    parser.add_argument("--jobs", type=int, default=2, help="so many mutants at a time")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a patch, without .patch")
    arguments = parser.parse_args()
    begin = time.monotonic()
    try:
        mutants = read_mutants(arguments.names)
        bench = Bench(arguments.folder.resolve(), arguments.jobs)
        bench.prepare(mutants)
    except Problem as problem:
        sys.exit(f"mutants: {problem}")
    killed = survived = 0
    problems = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        runs = sorted({(m.variant, command) for m in mutants for _, command in m.kills})
        for original in [pool.submit(bench.try_original, *key) for key in runs]:
            original.result()
        for (variant, command), output in sorted(bench.useless.items()):
            problems.append(f"{variant} {' '.join(command)} fails on the code as it is:\n{output[-3000:]}")
        print(f"{len(runs)} runs on the code as it is, {len(problems)} failed", flush=True)
        print(f"{'mutant':36} | {'killed by':100} | seconds")
        attempts = [pool.submit(bench.attempt, mutant) for mutant in mutants]
        for mutant, attempt in zip(mutants, attempts):
            try:
                killer, seconds = attempt.result()
            except Problem as problem:
                problems.append(f"{mutant.name}: {problem}")
                print(f"{mutant.name:36} | {'-- ' + str(problem).splitlines()[0]:100} |", flush=True)
                continue
            killed += killer is not None
            survived += killer is None
            print(f"{mutant.name:36} | {killer or '-- SURVIVED':100} | {seconds:7.1f}", flush=True)
    for problem in problems:
        print(problem)
    print(f"{len(mutants)} mutants in {time.monotonic() - begin:.0f} s, {len(problems)} problems")
    print(f"mutants: {killed} killed, {survived} survived")
    sys.exit(1 if problems or survived else 0)


if __name__ == "__main__":
    main()
