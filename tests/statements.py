#!/usr/bin/env python3
"""Counts conditional expressions below src/ (docs/decisions.md, Statements): a branch is an `if`, and `?:` is for two
short values on one line.  With arguments after the root: the counts of these folders or files, and each line that
breaks a rule.  TAP otherwise.
"""
import pathlib
import re
import sys

MOST_PER_1000_LINES = 12
NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def blank(match):
    """Keeps the lines, and one character of a literal."""
    text = match.group(0)
    return re.sub(r"[^\n]", " ", text) if text.startswith("/") else text[0] + "_" * (len(text) - 2) + text[-1]


def count(path):
    """Returns the lines of code, the number of conditional expressions, the lines that begin with a part of one, and
    the lines with more than one."""
    text = NOT_CODE.sub(blank, path.read_text())
    # Colons also separate the operands of assembly.
    lines = re.sub(r"__asm__[^;]*;", lambda found: found[0].replace(":", " "), text).splitlines()
    starts = [number for number, line in enumerate(lines, 1) if re.match(r"\s*[?:](?!:)", line)]
    nested = [number for number, line in enumerate(lines, 1) if line.count("?") > 1]
    return sum(bool(line.strip()) for line in lines), sum(line.count("?") for line in lines), starts, nested


root = pathlib.Path(sys.argv[1])
places = [pathlib.Path(name) for name in sys.argv[2:]] or [root / "src"]
totals, starts, nested = [0, 0], [], []
for place in places:
    here = [0, 0]
    for path in sorted(place.rglob("*.[ch]")) if place.is_dir() else [place]:
        lines, conditionals, first, twice = count(path)
        here = [here[0] + lines, here[1] + conditionals]
        starts += [f"{path}:{number}" for number in first]
        nested += [f"{path}:{number}" for number in twice]
        if len(sys.argv) > 2 and conditionals:
            print(f"{conditionals:6} in {lines:6} lines  {path}")
    totals = [totals[0] + here[0], totals[1] + here[1]]
per_1000 = 1000 * totals[1] / max(totals[0], 1)
print(f"# {totals[1]} conditional expressions in {totals[0]} lines of code: {per_1000:.1f} per 1,000")
CHECKS = ((per_1000 > MOST_PER_1000_LINES, f"at most {MOST_PER_1000_LINES} conditional expressions per 1,000 lines"),
          (starts, "no line begins with ? or :"),
          (nested, "no line has two conditional expressions"))
print(f"1..{len(CHECKS)}")
for number, (bad, what) in enumerate(CHECKS, 1):
    for line in bad if isinstance(bad, list) else ():
        print(f"# {line}")
    print(f"{'not ok' if bad else 'ok'} {number} - {what}")
sys.exit(any(bad for bad, _ in CHECKS))
