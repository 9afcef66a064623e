#!/usr/bin/env python3
"""The summary of failed tests that `make check` prints.  TAP; the argument is
scripts/summary.py.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

script = sys.argv[1]
number = 0


def check(name, holds, said):
    global number
    number += 1
    print(f"{'ok' if holds else 'not ok'} {number} - {name}")
    if not holds:
        print("\n".join("# " + line for line in said.splitlines()))


def summary(tests, alone=()):
    with tempfile.TemporaryDirectory() as directory:
        logs = pathlib.Path(directory) / "meson-logs"
        logs.mkdir()
        for name, results in ("testlog.json", tests), ("alone.json", alone):
            (logs / name).write_text("".join(json.dumps(result) + "\n" for result in results))
        ran = subprocess.run([sys.executable, script, directory], stdout=subprocess.PIPE, encoding="utf-8")
        return ran.returncode, ran.stdout


def test(result, stdout):
    return {"name": "tally:cli / cli_x", "result": result, "stdout": stdout}


passes = "".join(f"ok {i} - fine\n# of what is fine\n" for i in range(3, 2000))
failing = test("FAIL", "ok 1 - fine\nnot ok 2 - broken\n# why it broke\n" + passes + "1..1999\n")

status, said = summary([failing])
check("a failure early in a long output is shown with what it saw",
      status == 1 and "not ok 2 - broken\n# why it broke\n" in said and "of what is fine" not in said, said[-2000:])

status, said = summary([failing], [test("OK", "ok 1 - fine\nok 2 - broken\n1..2\n")])
check("what a failure saw is shown though the test passed alone",
      status == 0 and "not ok 2 - broken\n# why it broke\n" in said and said.endswith("\n2 passed, 0 failed, 0 skipped\n"),
      said[-2000:])

status, said = summary([test("TIMEOUT", passes + "# the last it said\n")])
check("of a test that was ended the last lines are shown", status == 1 and "# the last it said\n" in said, said[-2000:])

status, said = summary([test("FAIL", "not ok 1 - long\n# begins\n" + "# goes on\n" * 5000 + "# ends\n1..1\n")])
check("a long failure is shown by its beginning and its end",
      "# begins\n" in said and "# ends\n" in said and said.count("\n") < 500, said[-2000:])
print(f"1..{number}")
