#!/usr/bin/env python3
"""Compares docs/security.md with the code: each variable, library, program and path that tally takes
from its surroundings is in a table there, and each row is in the code.  `--rows TABLE` prints the
names in a table's first column instead.  TAP.
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
TABLES = {"variable": [], "library": [], "program": [], "path": []}
table = None
for line in (root / "docs/security.md").read_text().splitlines():
    first = line.split("|")[1].strip() if line.startswith("| ") else None
    if first in TABLES:
        table = first
    elif first is None and not line.startswith("|"):
        table = None
    elif table and first is not None:
        TABLES[table] += re.findall(r"`([^`]*)`", first)
if sys.argv[2:3] == ["--rows"]:
    print("\n".join(TABLES[sys.argv[3]]))
    sys.exit(0)

COMMENT = re.compile(r"/\*.*?\*/", re.S)
CHARACTER = re.compile(r"'(?:[^'\\]|\\.)'")
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
texts = {}
for path in sorted((root / "src").rglob("*.[ch]")):
    texts[str(path.relative_to(root))] = CHARACTER.sub("0", COMMENT.sub("", path.read_text()))

HOME_OF = {"variables": "src/base/environment.c", "libraries": "src/base/loaded.c"}
# The preloaded object is in a program: it hands on the program's environment, and executes what the program executes.
IN_PROGRAMS = "src/engine/hosts/process/"
astray, variables, libraries, programs, paths = [], set(), set(), set(), set()
for name, text in texts.items():
    literals = LITERAL.findall(text)
    plain = LITERAL.sub('""', text)
    if name not in (HOME_OF["variables"], IN_PROGRAMS + "process_environment.c"):
        astray += [f"{name}: {call}" for call in re.findall(r"\b(?:secure_)?getenv\s*\(|\benviron\b", plain)]
    if name != HOME_OF["libraries"]:
        astray += [f"{name}: {call}" for call in re.findall(r"\bdlm?open\s*\(", plain)]
    # A variable is a literal argument, or one of a list in the same file.
    arguments = re.findall(r"\b(?:tally_environment(?:_of_caller)?|setenv)\(([^,)]*)", text)
    for argument in arguments:
        literal = LITERAL.fullmatch(argument.strip())
        if literal:
            variables.add(literal.group(1))
    if any("[" in argument for argument in arguments) or name == HOME_OF["variables"]:
        lists = "".join(re.findall(r"\]\s*=\s*\{.*?\};", text, re.S))
        variables |= {text for text in LITERAL.findall(lists) if re.fullmatch(r"[A-Z][A-Z_]{3,}|container", text)}
    if "tally_loaded_open(" in text:
        libraries |= {text for text in literals if re.fullmatch(r"lib[\w.+-]+\.so[\w.]*", text)}
    calls = LITERAL.sub(lambda literal: literal.group(0).replace("(", "\0"), text)
    for call in re.finditer(r"(?<![\w.>])(?:f?exec(?:l|le|lp|v|ve|vp|vpe|veat)|posix_spawnp?|popen|system)\s*\([^;]*\)(?=;)", calls):
        if not name.startswith(IN_PROGRAMS):
            programs.add(re.sub(r"\s+", " ", call.group(0)))
    if name.startswith("src/"):
        paths |= {(name, text) for text in literals
                  if re.match(r"/(bin|boot|dev|etc|home|lib|opt|proc|root|run|sbin|sys|tmp|usr|var|\.dockerenv)(/|$)", text)}

# Names of standard streams, mappings that are no files, and commands that messages recommend.
NO_FILES = re.compile(r"/usr/?$|/dev/(stdin|stdout|fd/1|zero|hugepages/|null)|/(bin:|bin/sh)|.*: |/usr/local/sbin:")
unlisted = sorted({f"{name}: {text}" for name, text in paths
                   if not NO_FILES.match(text) and
                   not any(text == row or text.startswith((row.rstrip("/") + "/", row + "-", row + "%"))
                           for row in TABLES["path"])})

number = 0
def check(what, bad):
    global number
    number += 1
    for line in bad:
        print(f"# {line}")
    print(f"{'not ok' if bad else 'ok'} {number} - {what}")

check("the environment is read in one file, and libraries are loaded in one", astray)
for what, found, listed in (("variable", variables, TABLES["variable"]), ("library", libraries, TABLES["library"]),
                            ("program", programs, TABLES["program"])):
    check(f"each {what} of the code is in docs/security.md", sorted(found - set(listed)))
    check(f"each {what} in docs/security.md is in the code", sorted(set(listed) - found))
check("each path of the code is in docs/security.md", unlisted)
check("the tables have rows", [f"{name}: none" for name, rows in TABLES.items() if len(rows) < 3])
print(f"1..{number}")
