#!/usr/bin/env python3
"""Counts single tests in meson's logs: `summary.py BUILD-DIRECTORY...`.

A TAP program counts by its lines, another program as one test.  Skips are listed with their reasons, failures with
their output.  A test that was run once more, alone (alone.json), counts by its second run; what failed in its first is
listed.  The last line is "N passed, N failed, N skipped"; the status is 1 when anything failed or nothing ran.

`summary.py --failed SUITE,... BUILD-DIRECTORY` prints the names of the tests of these suites that failed.
"""
import json
import pathlib
import re
import sys

GOOD = ("OK", "SKIP", "EXPECTEDFAIL")


def tests_of(directory, log="testlog.json"):
    path = pathlib.Path(directory) / "meson-logs" / log
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def what_failed(test):
    """Each line that is not ok with the comments behind it, in whichever part of the output; how a run ends that did not
    get to its end, or has no such lines."""
    lines = (test.get("stdout") or "").splitlines()
    shown = []
    fails = False
    for line in lines:
        if re.match(r"(not )?ok\b|1\.\.\d", line):
            fails = line.startswith("not ok")
        if fails:
            shown.append(line)
    if not shown or test["result"] != "FAIL":
        shown += ["[how it ends:]"] + lines[-60:]
    if len(shown) > 400:
        shown[200:-200] = [f"[… {len(shown) - 400} lines …]"]
    return "\n".join(shown) + "\n" + (test.get("stderr") or "")[-3000:]


if sys.argv[1] == "--failed":
    for test in tests_of(sys.argv[3]):
        suites, _, name = test["name"].rpartition(" / ")  # "tally:cli / cli_stat"
        if test["result"] not in GOOD and suites.partition(":")[2] in sys.argv[2].split(","):
            print(name)
    sys.exit(0)

passed = failed = 0
skipped = []
failures = []
again = []

for directory in sys.argv[1:]:
    alone = {test["name"]: test for test in tests_of(directory, "alone.json")}
    for test in tests_of(directory):
        if test["name"] in alone:
            first = [line for line in (test.get("stdout") or "").splitlines() if line.startswith("not ok")]
            again.append(f"{pathlib.Path(directory).name}: {test['name']}: first {'; '.join(first) or test['result']}; "
                         f"alone {alone[test['name']]['result']}")
            failures.append((f"{pathlib.Path(directory).name}: {test['name']}, beside others", test))
            test = alone[test["name"]]
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
        good = test["result"] in GOOD
        if not ok and not bad and test["result"] == "OK" and "SKIP" not in output:
            ok = 1
        if not good and not bad:
            bad = 1
        if bad:
            failures.append((name, test))
        passed += ok
        failed += bad

for name, test in failures:
    print(f"--- {name}: {test['result']}\n{what_failed(test)}")
for reason in skipped:
    print(f"skipped: {reason}")
for line in again:
    print(f"run again: {line}")
print(f"{passed} passed, {failed} failed, {len(skipped)} skipped")
sys.exit(1 if failed or not passed else 0)
