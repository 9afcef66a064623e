#!/usr/bin/env python3
"""Checks that each planted fault of tests/mutants and tests/fuzz/mutants still finds its lines.  TAP.

`make mutants` and `make fuzz-mutants` plant them one by one, which takes long; code that moves breaks them at once.
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
CHANGES = re.compile(r"^file (\S+)\n((?:<<<<\n.*?^====\n.*?^>>>>\n?)+)", re.S | re.M)
stale, count = [], 0
for path in sorted([*(root / "tests/mutants").iterdir(), *(root / "tests/fuzz/mutants").iterdir()]):
    if not path.is_file():
        continue
    count += 1
    changes = list(CHANGES.finditer(path.read_text()))
    if not changes:
        stale.append(f"{path.relative_to(root)}: no change is in it")
    for change in changes:
        target = root / change[1]
        text = target.read_text() if target.exists() else ""
        for old in re.findall(r"<<<<\n(.*?)^====\n", change[2], re.S | re.M):
            if text.count(old) != 1:
                stale.append(f"{path.relative_to(root)}: {change[1]} has its lines {text.count(old)} times, not once")

print("1..2")
print(f"{'not ok' if stale else 'ok'} 1 - each planted fault finds its lines once")
for line in stale:
    print(f"# {line}")
print(f"{'ok' if count > 60 else 'not ok'} 2 - {count} faults were read")
sys.exit(bool(stale) or count <= 60)
