#!/usr/bin/env python3
"""Counts single tests in meson's logs: `summary.py BUILD-DIRECTORY...`.

A TAP program counts by its lines, another program as one test.  Skips are listed with their reasons, failures with
their output.  The last line is "N passed, N failed, N skipped"; the status is 1 when anything failed or nothing ran.
"""
import json
import pathlib
import re
import sys

passed = failed = 0
skipped = []
failures = []

for directory in sys.argv[1:]:
    for line in (pathlib.Path(directory) / "meson-logs/testlog.json").read_text().splitlines():
        test = json.loads(line)
        name = f"{pathlib.Path(directory).name}: {test['name']}"
        output = test.get("stdout") or ""
        ok = bad = 0
        for tap in output.splitlines():
            match = re.match(r"(not )?ok\b[^#]*(#\s*SKIP\b\s*(.*))?", tap, re.IGNORECASE)
            if not match:
                skip_all = re.match(r"1\.\.0\s*#\s*SKIP\b\s*(.*)", tap, re.IGNORECASE)
                if skip_all:
                    skipped.append(f"{name}: {skip_all.group(1)}")
            elif match.group(2):
                skipped.append(f"{name}: {tap.split('#')[0].strip()} ({match.group(3) or 'no reason'})")
            elif match.group(1):
                bad += 1
            else:
                ok += 1
        good = test["result"] in ("OK", "SKIP", "EXPECTEDFAIL")
        if not ok and not bad and test["result"] == "OK" and "SKIP" not in output:
            ok = 1
        if not good and not bad:
            bad = 1
        if bad:
            failures.append((name, test["result"], output, test.get("stderr") or ""))
        passed += ok
        failed += bad

for name, result, output, errors in failures:
    print(f"--- {name}: {result}\n{output[-6000:]}{errors[-3000:]}")
for reason in skipped:
    print(f"skipped: {reason}")
print(f"{passed} passed, {failed} failed, {len(skipped)} skipped")
sys.exit(1 if failed or not passed else 0)
