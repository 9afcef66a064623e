#!/usr/bin/env python3
"""Everything that the documents name exists: clauses, unit tests, mutants, specification rows,
files.

TAP.  Each row of docs/lineage.md has a row of docs/spec.md and a test, or "outside" and the reason.
docs/architecture.md has a line for each file of the engine.
Usage: lineage.py SOURCE_ROOT CONFORMANCE
"""
import pathlib
import re
import subprocess
import sys

root, conformance = pathlib.Path(sys.argv[1]), sys.argv[2]
listed = subprocess.run([conformance, "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout
clauses = {line.split()[0] for line in listed.splitlines()}
spec = (root / "docs/spec.md").read_text()
rows = set(re.findall(r"(?:^- |\. )([A-H]\d+) ", spec, re.MULTILINE))
programs = {}  # program of tests/unit: its tests; -Wunused finds tests that are never run
for path in (root / "tests/unit").glob("test_*.c"):
    programs[path.stem[len("test_"):]] = set(re.findall(r"^static void (\w+)\(void \*\*", path.read_text(), re.MULTILINE))

CLAUSE = re.compile(r"[A-H]\d+\.[a-z0-9_]+")
UNIT = re.compile(r"([a-z0-9_]+)\.([a-z0-9_]+)")
FILE = re.compile(r"(?:src|tests|docs|include|examples|scripts|bench)/[\w./-]*\w")


def is_missing(token):
    """True if a word in backquotes names a clause or a file that doesn't exist."""
    if CLAUSE.fullmatch(token):
        return token not in clauses
    return bool(FILE.fullmatch(token)) and not (root / token).exists()


def complaint(row):
    """Returns what is wrong with a row of docs/lineage.md: document, today, rows, tests."""
    cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip())[1:-1]]
    if len(cells) != 4 or not all(cells):
        return "has not its four cells"
    bad = [name for name in cells[2].split() if name not in rows and name != "—"]
    mutants = re.findall(r"mutant `(\w+)`", cells[3])
    bad += [f"mutant {name}" for name in mutants if not (root / "tests/mutants" / name).exists()]
    tests = re.findall(r"`([^`]+)`", re.sub(r"mutant `\w+`", "", cells[3]))
    for test in tests:
        unit = UNIT.fullmatch(test)
        if CLAUSE.fullmatch(test) or FILE.fullmatch(test):
            if is_missing(test):
                bad.append(test)
        elif not unit or unit.group(2) not in programs.get(unit.group(1), ()):
            bad.append(test)
    if bad:
        return "names " + ", ".join(bad)
    return None if tests or mutants or cells[3].startswith("outside: ") else "has no test and doesn't say why"


lineage, missing = [], []
for number, line in enumerate((root / "docs/lineage.md").read_text().splitlines(), 1):
    if line.startswith("|") and not re.match(r"\|[-|]+\|$|\| (the document says|what is said)", line):
        reason = complaint(line)
        lineage.append(f"docs/lineage.md:{number}: {reason}" if reason else None)
for path in sorted((root / "docs").glob("*.md")):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        missing += [f"docs/{path.name}:{number}: {token}" for token in re.findall(r"`([^`]+)`", line) if is_missing(token)]

design = (root / "docs/architecture.md").read_text()
unsaid = [str(path) for path in sorted((root / "src/engine/engine").glob("*.c")) if f"`{path.name}`" not in design]

wrong = [reason for reason in lineage if reason]
if not clauses or len(lineage) < 100 or len(rows) < 50:
    wrong.append(f"{len(clauses)} clauses, {len(lineage)} rows of docs/lineage.md, {len(rows)} of docs/spec.md were found")
print("1..3")
for number, (bad, what) in enumerate(((wrong, "every statement of docs/lineage.md has rows and tests that are there"),
                                      (missing, "clauses and files that docs/ names are there"),
                                      (unsaid, "docs/architecture.md has a line for each file of the engine")), 1):
    for line in bad:
        print(f"# {line}")
    print(f"{'not ok' if bad else 'ok'} {number} - {what}")
sys.exit(1 if wrong or missing or unsaid else 0)
