#!/usr/bin/env python3
"""Checks the length of messages that tally prints beside its results: at most 100 characters each.  TAP.

Warnings, notes and hints about a recording are counted as they stand in the source, with a format's letters.
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
LONGEST = 100
LITERALS = re.compile(r'"(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*')
PREFIX = re.compile(r"^(tally( \w+)?: )?(warning: |hint: )?(nothing was sampled: )?")


def messages(path):
    """Yields the line and the text of each string of a file; adjacent literals are one string."""
    text = path.read_text()
    for found in LITERALS.finditer(text):
        parts = re.findall(r'"((?:[^"\\]|\\.)*)"', found[0])
        yield text.count("\n", 0, found.start()) + 1, "".join(parts).replace("\\n", "").replace('\\"', '"')


def is_warning(path, text):
    return path.name == "warnings.c" or re.match(r"(tally( \w+)?: (warning: )?|hint: )\w", text)


long, seen = [], 0
for path in sorted((root / "src").rglob("*.c")):
    for line, text in messages(path):
        if not is_warning(path, text):
            continue
        seen += 1
        length = len(PREFIX.sub("", text))
        if length > LONGEST:
            long.append(f"{path.relative_to(root)}:{line}: {length} characters: {text}")

print("1..2")
print(f"{'not ok' if long else 'ok'} 1 - warnings and hints have at most {LONGEST} characters")
for line in long:
    print(f"# {line}")
print(f"{'ok' if seen > 80 else 'not ok'} 2 - {seen} messages were found")
sys.exit(bool(long) or seen <= 80)
