#!/usr/bin/env python3
"""Compares call chains of the simulated PMU's samples with those that the program has by
construction.

TAP.  Samples of each event have a period that moves over every instruction of the program,
including prologues and returns.  Each sample in one of its functions must have that function's only
chain.
Usage: chains.py TALLY PERF PROGRAM
"""
import collections
import pathlib
import subprocess
import sys
import tempfile

tally, perf, program = sys.argv[1:4]
OUTER = ["main"]
CHAINS = {name: chain.split() + OUTER for name, chain in {
    "one": "one", "one_two": "one_two one", "one_two_three": "one_two_three one_two one",
    "one_two_three_four": "one_two_three_four one_two_three one_two one",
    "one_two_leaf": "one_two_leaf one_two one", "one_alloca": "one_alloca one", "caller": "caller",
    "by_pointer": "by_pointer caller"}.items()}
EVENTS = {"instructions": 97, "loads": 13, "stores": 7, "branches": 11, "conditional-branch-misses": 3, "return-misses": 1,
          "L1-dcache-load-misses": 1, "est-cycles": 101}
# Functions that must be among the samples: all, except that one_two_leaf does not store.
ALL = [*CHAINS, "descend"]
EVERYWHERE = {"instructions": ALL, "loads": ALL, "branches": ALL, "est-cycles": ALL,
              "stores": [name for name in ALL if name != "one_two_leaf"]}


def chains_of(event, period):
    with tempfile.TemporaryDirectory(prefix="tally-chains-") as folder:
        subprocess.run([tally, "record", "--provider", "simulated", "-q", "-e", event, "-c", str(period), "-o", f"{folder}/data",
                        "--", program, "200"], check=True, timeout=240, stdin=subprocess.DEVNULL)
        text = subprocess.run([perf, "script", "--no-inline", "-i", f"{folder}/data", "-F", "ip,sym"], check=True,
                              capture_output=True, text=True, timeout=240).stdout
    for block in filter(str.strip, text.split("\n\n")):
        yield [(line.split() + ["?"])[1] for line in block.splitlines() if line.strip()]


def wrong(chain):
    """Returns what is wrong with it, or None; also None if the leaf is not the program's."""
    leaf = chain[0]
    if leaf == "descend":
        depth = len([name for name in chain if name == "descend"])
        ok = depth <= 24 and chain[:depth] == ["descend"] * depth and chain[depth:depth + 1] == OUTER
    elif leaf in CHAINS:
        ok = chain[:len(CHAINS[leaf])] == CHAINS[leaf]
    elif leaf == "main":
        ok = True
    else:
        return None
    # The frames below main: libc's start, and _start.
    ok = ok and chain[-1] == "_start" and len(chain) - chain.index("main") == 4
    return None if ok else " < ".join(chain)


print(f"1..{len(EVENTS)}")
failed = False
for number, (event, period) in enumerate(EVENTS.items(), 1):
    leaves, errors = collections.Counter(), []
    for chain in chains_of(event, period):
        leaves[chain[0]] += 1
        error = wrong(chain)
        if error:
            errors.append(error)
    seen = {name for name in [*CHAINS, "descend"] if leaves[name]}
    missing = set(EVERYWHERE.get(event, ())) - seen
    total = sum(leaves[name] for name in [*CHAINS, "descend", "main"])
    bad = errors or missing or not total
    failed = failed or bool(bad)
    print(f"{'not ok' if bad else 'ok'} {number} - {event}: each of {total} samples in the program has its chain", flush=True)
    for error in errors[:10]:
        print(f"# {error}")
    if bad:
        print(f"# {len(errors)} of {total} are wrong; not seen: {' '.join(sorted(missing)) or 'none'}")
sys.exit(failed)
