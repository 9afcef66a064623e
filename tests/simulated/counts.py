#!/usr/bin/env python3
"""Counts of a program whose every instruction is documented by hand, in sum and at each address.
TAP.

counts.S says after each instruction what it reads, writes and branches.  With a period of 1, each
must have as many samples as it counts (one, if it counts twice at once).
Usage: counts.py TALLY PERF COUNTS_S COUNTS
"""
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

tally, perf, source, binary = sys.argv[1:]
TURNS = 1000
# Computed from the numbers beside the letters, not from the letters: a turn has 51 instructions,
# and leaf's two.
EXPECTED = {"instructions": 2 + TURNS * (51 + 2) + 3, "loads": TURNS * 53, "stores": TURNS * 35, "branches": TURNS * 7}


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=240, check=True).stdout


def addresses():
    """Returns the addresses of the instructions, in the order of the source."""
    listing = run("objdump", "-d", "--no-show-raw-insn", binary)
    return [int(address, 16) for address in re.findall(r"^ +([0-9a-f]+):\t", listing, re.MULTILINE)]


def letters():
    for line in pathlib.Path(source).read_text(encoding="ascii").splitlines():
        if "#" in line and "\t" in line:
            code, comment = line.split("#", 1)
            yield code.strip(), comment.split(":")[0]


def at_addresses(letter):
    """Returns the samples of a period of 1: two reads in one iteration are one overflow."""
    expected = collections.Counter()
    for address, (code, comment) in zip(addresses(), letters()):
        times = comment.count(letter) // (2 if "cmpsb" in code else 1)
        turns = 2 if code.startswith("leaf:") else 1
        if times and "fore" not in comment and "after" not in comment:
            expected[address] = times * turns * TURNS
    return expected


def sampled(folder, event):
    run(tally, "record", "--provider", "simulated", "-q", "-e", event, "-c", "1", "-o", f"{folder}/data", "--", binary)
    return collections.Counter(int(line, 16) for line in run(perf, "script", "-i", f"{folder}/data", "-F", "ip", "-G").split())


failed = 0
with tempfile.TemporaryDirectory(prefix="tally-counts-") as scratch:
    print("1..7")
    run(tally, "stat", "--provider", "simulated", "-j", "-o", f"{scratch}/counts", "-e", ",".join(EXPECTED), "--", binary)
    rows = json.loads(pathlib.Path(f"{scratch}/counts").read_text(encoding="utf-8"))["events"]
    for number, (row, (name, value)) in enumerate(zip(rows, EXPECTED.items()), 1):
        right = row["value"] == value
        print(f"{'ok' if right else 'not ok'} {number} - {name}: {row['value']:.0f}{'' if right else f', not {value}'}")
        failed += not right
    for number, (event, letter) in enumerate((("loads", "L"), ("stores", "S"), ("branches", "B")), 5):
        seen, wanted = sampled(scratch, event), at_addresses(letter)
        for address in sorted(set(seen) | set(wanted)):
            if seen[address] != wanted[address]:
                print(f"# {address:x}: {seen[address]}, not {wanted[address]}")
        print(f"{'ok' if seen == wanted else 'not ok'} {number} - {event} at each address")
        failed += seen != wanted
sys.exit(failed > 0)
