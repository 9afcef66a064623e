#!/usr/bin/env python3
"""Checks every #include below src/ and hosts/: none may point upwards (docs/architecture.md, The floors).
TAP.
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
FLOORS = {
    "abi": 1, "base": 1, "filter": 1,
    "engine": 2, "object": 2, "machine": 2, "tracepoint": 2, "event": 2,
    "sim": 3, "valgrind": 3, # hosts
    "perfdata": 3, "symbol": 3, "unwind": 3, "counts": 3,
    "provider": 4, "task": 4,
    "naming": 5, "recording": 6, "profile": 7, "report": 8,
    "session": 5, "counting": 6, "recorder": 7, "simulation": 7,
    "library": 9, "output": 9, "export": 9, "stat": 9,
    "annotate": 10, "diff": 10, "flamegraph": 10, "timeline": 10, "browse": 10,
    "command": 11,
}
FREESTANDING = {"abi", "filter", "engine"}
# Headers of the language, not of a library.
LANGUAGE = {"stdint.h", "stddef.h", "stdbool.h", "stdarg.h", "limits.h"}
HOSTS_USE = {"engine", "abi", "filter"}

upward, unknown, names, hosted = [], [], {}, []
files = sorted(path for path in (root / "src").rglob("*.[ch]"))
for path in files:
    room = path.relative_to(root / "src").parts[0]
    if room not in FLOORS:
        unknown.append(str(path))
        continue
    names.setdefault(path.name, []).append(str(path))
    for number, line in enumerate(path.read_text().splitlines(), 1):
        system = re.match(r'\s*#\s*include\s+<([^>]+)>', line)
        # layout.c compares our definitions with the system's header, using only asserts.
        if system and room in FREESTANDING and system.group(1) not in LANGUAGE and path.name != "layout.c":
            upward.append(f"{path}:{number}: {room} is freestanding, but includes <{system.group(1)}>")
        include = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not include or "/" not in include.group(1):
            continue
        other = include.group(1).split("/")[0]
        if other in ("tally", room):
            continue
        if other not in FLOORS or FLOORS[other] >= FLOORS[room]:
            upward.append(f"{path}:{number}: {room} (floor {FLOORS[room]}) includes {include.group(1)}")
        elif room in FREESTANDING and other not in FREESTANDING:
            upward.append(f"{path}:{number}: {room} is freestanding, but includes {include.group(1)}")

# A host brings the engine to a target.  It uses no other room except its own files, and no other
# host.
for path in sorted((root / "hosts").rglob("*.[ch]")):
    host = path.relative_to(root / "hosts").parts[0]
    names.setdefault(path.name, []).append(str(path))
    for number, line in enumerate(path.read_text().splitlines(), 1):
        include = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if include and "/" in include.group(1) and include.group(1).split("/")[0] not in HOSTS_USE | {"tally", host}:
            hosted.append(f"{path}:{number}: the host {host} includes {include.group(1)}")

twice = [" and ".join(paths) for paths in names.values() if len(paths) > 1 and not paths[0].endswith(".build")]

print("1..4")
for number, (bad, what) in enumerate(((upward, "no include runs up the house"),
                                      (unknown, "every folder of src is a room of the design"),
                                      (twice, "file names are unique in the tree"),
                                      (hosted, "hosts use the engine, abi and filter alone")), 1):
    for line in bad:
        print(f"# {line}")
    print(f"{'not ok' if bad else 'ok'} {number} - {what}")
sys.exit(1 if upward or unknown or twice or hosted else 0)
