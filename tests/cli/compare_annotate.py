#!/usr/bin/env python3
"""compare_annotate.py PERF_TEXT TALLY_JSON: both give the same percentages to a function's
instructions.
"""
import json
import re
import sys

perf = {}
for line in open(sys.argv[1], encoding="utf-8", errors="replace"):
    found = re.match(r"\s*(\d+\.\d+)\s*:\s+([0-9a-f]+):\s", line)
    if found:
        perf[int(found[2], 16)] = float(found[1])
function = json.load(open(sys.argv[2], encoding="utf-8"))["functions"][0]
tally = {one["address"]: one["percent"] for one in function["instructions"]}
wrong = [f"{address:x}: perf {perf.get(address)}, tally {tally.get(address)}" for address in sorted(perf.keys() | tally.keys())
         if address not in perf or address not in tally or abs(perf[address] - tally[address]) > 0.0051]
# perf's list ends where objdump's does: one of them may lack the padding behind the last
# instruction.
hot = sum(1 for percent in tally.values() if percent)
print("\n".join(wrong[:10]))
print(f"{len(tally)} instructions, {hot} with samples")
sys.exit(1 if wrong or hot < 5 else 0)
