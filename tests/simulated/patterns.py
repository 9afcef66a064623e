#!/usr/bin/env python3
"""Misses that can be computed by hand, counted by the whole: program, tool, engine, provider.  TAP.

A pass of a pattern adds (counts of 23 passes less those of 13) / 10, so the start and the end of
the program cancel out.  The CPU has round sizes: L1D 32 KiB in 64 sets of 8, L2 256 KiB, LLC 4 MiB;
TLBs of 64 and 1,024 pages.  An array is read repeatedly in one order by a cache that replaces the
least recently used line.  Either it fits completely (no misses), or in each set with one line too
many each access misses.
Usage: patterns.py TALLY PATTERNS HOTSPOTS
"""
import json
import pathlib
import subprocess
import sys
import tempfile

tally, patterns, hotspots = sys.argv[1:4]
CPU = """base = generic
l1d = 32K 8-way
l2 = 256K 8-way
llc = 4M 16-way
dtlb = 64 4-way
stlb = 1024 8-way
return-stack = 16
history-bits = 14
"""
EVENTS = ("loads", "stores", "branches", "L1-dcache-load-misses", "L1-dcache-store-misses", "L2-load-misses", "LLC-load-misses",
          "L1-dTLB-load-misses", "dTLB-load-misses", "conditional-branch-misses", "indirect-branch-misses", "return-misses")
L1, L2, LLC, TLB, WALK = EVENTS[3], EVENTS[5], EVENTS[6], EVENTS[7], EVENTS[8]
KIB_LINES = 1024 // 64
# The loads and misses of a pass; all other kinds must not happen.  Pages and sets: 64 KiB are 16
# pages, one in each set of the first TLB; 512 KiB are 128, 8 in each set of 4; 8 MiB are 2,048,
# more than the second TLB holds.
EXPECTED = {
    "within-l1": {"loads": 16 * KIB_LINES},
    "beyond-l1": {"loads": 64 * KIB_LINES, L1: 64 * KIB_LINES},
    "beyond-l2": {"loads": 512 * KIB_LINES, L1: 512 * KIB_LINES, L2: 512 * KIB_LINES, TLB: 128},
    "beyond-llc": {"loads": 8192 * KIB_LINES, L1: 8192 * KIB_LINES, L2: 8192 * KIB_LINES, LLC: 8192 * KIB_LINES,
                   TLB: 2048, WALK: 2048},
    "stride-8": {"loads": 8192, L1: 1024},
    "stride-128": {"loads": 512, L1: 512},         # every other set, 16 lines in each
    "straddling": {"loads": 1024, L1: 1024},       # each touches the previous access's line, and a new one
    "stores": {"stores": 1024, "L1-dcache-store-misses": 1024},
    "ways-full": {"loads": 8},
    "ways-twice": {"loads": 16, L1: 16},
    "chase-l1": {"loads": 1024, L1: 1024},
    "chase-l2": {"loads": 8192, L1: 8192, L2: 8192, TLB: None},  # the first TLB sees pages in random order
    "chase-llc": {"loads": 131072, L1: 131072, L2: 131072, LLC: 131072, TLB: None, WALK: None},
    "pages-tlb": {"loads": 48, L1: 48},            # 48 lines of one set; 48 pages, 3 in each set: one is left for the stack's
    "pages-stlb": {"loads": 128, L1: 128, TLB: 128, L2: 128},  # 128 lines in 8 sets of L2
    "pages-walk": {"loads": 2048, L1: 2048, L2: 2048, LLC: 2048, TLB: 2048, WALK: 2048},
    "branch-same": {}, "branch-alternating": {}, "indirect-one": {}, "return-shallow": {},
    "return-deep": {"return-misses": 26 - 16},     # 26 calls, the pass's own too, of which 16 are remembered
}
BETWEEN = {  # share of the branches on random bits: 64 in each of a pass's 16 rounds
    "branch-random": ("conditional-branch-misses", 0.42 * 1024, 0.58 * 1024),
    "chase-llc": (WALK, 0.5 * 131072, 0.75 * 131072),  # 2,048 pages, of which 1,024 are held: a bit over half
}
# The cost of a pass itself: it is called and returns through a line of the stack (whose set depends
# on the stack's beginning), and its loops end.
SLACK = {"loads": 3, "stores": 3, L1: 3, "L1-dcache-store-misses": 3, L2: 3, LLC: 3, TLB: 2, WALK: 2,
         "conditional-branch-misses": 2}
number, failed = 0, False


def report(differences, what):
    global number, failed  # pylint: disable=global-statement
    number += 1
    failed = failed or bool(differences)
    print(f"{'not ok' if differences else 'ok'} {number} - {what}" + "".join(f"\n# {text}" for text in differences), flush=True)


def count(events, *command, options=()):
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile("w", suffix=".cpu") as cpu:
        cpu.write(CPU)
        cpu.flush()
        subprocess.run([tally, "stat", "--provider", "simulated", "--sim-cpu", cpu.name, *options, "-j", "-o", out.name,
                        "-e", ",".join(events), "--", *command], check=True, timeout=300, stdout=subprocess.DEVNULL)
        rows = json.loads(pathlib.Path(out.name).read_text(encoding="utf-8"))["events"]
    return {name: row["value"] for name, row in zip(events, rows)}


def pass_of(name):
    few, many = count(EVENTS, patterns, name, "13"), count(EVENTS, patterns, name, "23")
    return {event: (many[event] - few[event]) / 10 for event in EVENTS}


for pattern in sorted(set(EXPECTED) | set(BETWEEN)):
    seen, wrong = pass_of(pattern), []
    for event in EVENTS if pattern in EXPECTED else ():
        wanted = EXPECTED[pattern].get(event, 0)
        if wanted is None or event == "branches" or (event in ("loads", "stores") and not wanted):
            continue
        if not 0 <= seen[event] - wanted <= SLACK.get(event, 0):
            wrong.append(f"{event}: {seen[event]}, expected {wanted}")
    if pattern in BETWEEN:
        event, low, high = BETWEEN[pattern]
        if not low <= seen[event] <= high:
            wrong.append(f"{event}: {seen[event]}, expected {low} to {high}")
    report(wrong, f"{pattern}: misses are those that were reckoned")
# The example walks over 2,000 rows of 4,096 numbers of 4 bytes: 32,768,000 bytes in 512,000 lines
# and 8,000 pages, each touched once by rows.  By columns, rows are 16 KiB apart: their lines share
# one set of L1, two of L2 and 16 of the LLC, their pages 32 sets of the second TLB.  All of these
# hold less than the 2,000 that come before a line or page is used again.  Before that, main() has
# written a number in each row, each in another column: some of these 2,000 lines are still in the
# outer caches.
NUMBERS, LINES, PAGES = 2000 * 4096, 512000, 8000
WALKS = {"walk_rows": {"loads": NUMBERS, L1: LINES, L2: LINES, LLC: LINES, WALK: PAGES},
         "walk_columns": {"loads": NUMBERS, L1: NUMBERS, L2: NUMBERS, LLC: NUMBERS, WALK: NUMBERS}}
for function, expected in WALKS.items():
    seen = count(tuple(expected), hotspots, "1", options=("--toggle", function))
    report([f"{event}: {seen[event]}, expected {wanted}" for event, wanted in expected.items()
            if not (-2000 if event in (L2, LLC) else 0) <= seen[event] - wanted <= 64], f"the example's {function}: misses are those that were reckoned")
print(f"1..{number}")
sys.exit(failed)
