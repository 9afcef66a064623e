#!/usr/bin/env python3
"""Checks every #include below src/ (docs/architecture.md, The wings): none may point upwards, neither
between wings nor between the rooms of one.  CHECKS, below, lists the rest.  TAP.
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
# From top to bottom.  A wing's rooms have floors: a room may include those on lower ones.
WINGS = {
    "command": {},
    "library": {},
    "show": {"browse": 2, "flamegraph": 2, "annotate": 2, "perf": 2, "export": 1, "stat": 1, "output": 0},
    "read": {"view": 5, "diff": 5, "timeline": 5, "report": 4, "profile": 3, "recording": 2, "naming": 1},
    "measure": {"simulation": 3, "recorder": 3, "counting": 2, "session": 1, "provider": 0},
    "file": {"perfdata": 0},
    "code": {"task": 2, "symbol": 1, "unwind": 1, "object": 0},
    "event": {"metric": 1, "counts": 0, "event": 0, "machine": 0, "tracepoint": 0},
    "engine": {"hosts": 2, "engine": 1, "filter": 0, "abi": 0},
    "base": {},
}
ORDER = list(WINGS)
WING_OF = {room: wing for wing, rooms in WINGS.items() for room in rooms or [wing]}
HOSTS = ("sim", "valgrind", "skeleton", "process", "plan")
WING_OF.update({host: "engine" for host in HOSTS})
FREESTANDING = {"abi", "filter", "engine"}
# Headers of the language, not of a library.
LANGUAGE = {"stdint.h", "stddef.h", "stdbool.h", "stdarg.h", "limits.h"}
# `plan` is no host, but the header of the memory that hosts share with tally.
HOSTS_USE = {"engine", "abi", "filter", "plan"}
# The rooms that may use a host: `tally sim` plays scenarios, and the simulated PMU's tool and the preloaded object
# share headers with their providers.
HOSTS_USERS = {"sim": {"simulation"}, "valgrind": {"provider"}, "skeleton": set(), "process": {"provider"},
               "plan": {"provider"}}
# A room's face is ROOM.h: other rooms include it alone.  These have several, for several kinds of users.
FACES = {
    "abi": {"abi.h"},
    "base": None, # each header is a face
    "counting": {"counting.h", "counter_fit.h", "stat_run.h"},
    "engine": {"engine_state.h"}, # hosts
    "naming": {"naming.h", "packed.h"},
    "object": {"object.h", "cache.h"},
    "output": {"output.h", "output_text.h"},
    "profile": {"profile.h", "stacks.h"},
    "provider": {"provider.h", "simulated.h", "process.h", "engine_provider.h", "scripted.h"},
    "session": {"session.h", "ring.h"},
    "symbol": {"symbol.h", "lines.h", "jit_dump.h"},
    "task": {"task.h", "jit.h", "user_stack.h"},
    "unwind": {"unwind.h", "code_walk.h"},
    "sim": {"scenario_play.h", "sim_watch.h"},
    "process": {"process_pmu.h", "process_program.h"},
    "valgrind": None, # its headers describe what both sides write
    "process": None,
}


def room_of(path):
    """Returns (wing, room), and for a host its name as the room."""
    parts = path.relative_to(root / "src").parts
    if parts[0] not in WINGS or len(parts) < 2:
        return None
    if not WINGS[parts[0]]:
        return parts[0], parts[0]
    if parts[1] not in WINGS[parts[0]]:
        return None
    return parts[0], parts[2] if parts[1] == "hosts" else parts[1]


def floor(room):
    return WINGS[WING_OF[room]].get(room, 2 if room in HOSTS else 0)


upward, inside, unknown, names, hosted, guards, gone, silent = [], [], [], {}, [], [], [], []
files = sorted((root / "src").rglob("*.[ch]"))
known, declared, defined, types = {}, {}, {}, {}
for path in files:
    known.setdefault(path.name, []).append(path)
for path in (root / "include").rglob("*.h"):
    for name in re.findall(r"^(?:struct|enum|union) (tally_\w+) \{", path.read_text(), re.M):
        types.setdefault(name, []).append(str(path))
for path in files:
    place = room_of(path)
    names.setdefault(path.name, []).append(str(path))
    if not place:
        unknown.append(str(path))
        continue
    wing, room = place
    is_host = room in HOSTS
    text = path.read_text()
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    if not text.startswith("/*"):
        silent.append(str(path))
    for name in re.findall(r"^(?:struct|enum|union) (tally_\w+) \{", code, re.M):
        types.setdefault(name, []).append(str(path))
    if path.suffix == ".h":
        for name in re.findall(r"^[a-z][\w *]*?\b(tally_\w+)\([^;{}]*\)[^;{}()]*(?:__attribute__\s*\(\(.*?\)\))?;", code, re.M):
            declared[name] = room
    else:
        for name in re.findall(r"^[a-z][\w *]*?\b(tally_\w+)\([^;{}]*\)\s*\{", code, re.M):
            defined[name] = room
    guard = re.search(r"^#ifndef (\w+_H)$", text, re.M)
    if path.suffix == ".h" and guard and not is_host:
        public = (root / "include/tally" / path.name).exists() # its guard is TALLY_NAME_H
        outer = f"{wing}_" if public and path.stem == room else "" if path.stem.startswith(room) else f"{room}_"
        expected = f"TALLY_{outer}{path.stem}_H".upper()
        if guard.group(1) != expected:
            guards.append(f"{path}: the guard is {guard.group(1)}, not {expected}")
    for comment in re.findall(r"/\*.*?\*/", text, re.S):
        for folder, name in re.findall(r"(?<![\w/])([a-z]+)/([a-z][a-z0-9_]*\.[ch])\b", comment):
            if folder in WING_OF and all(there.parent.name != folder for there in known.get(name, ())):
                gone.append(f"{path}: a comment mentions {folder}/{name}, which is not there")
    for number, line in enumerate(text.splitlines(), 1):
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
        where = f"{path}:{number}: {room} includes {include.group(1)}"
        faces = FACES.get(other, {f"{other}.h"})
        if faces is not None and include.group(1).split("/")[1] not in faces:
            inside.append(where)
        if is_host: # it brings the engine to a target, and uses no other host
            if other not in HOSTS_USE:
                hosted.append(where)
        elif other not in WING_OF:
            upward.append(where)
        elif room in FREESTANDING and other not in FREESTANDING:
            upward.append(where + ", but is freestanding")
        elif other in HOSTS_USERS:
            if room not in HOSTS_USERS[other]:
                hosted.append(where)
        elif WING_OF[other] == wing:
            if floor(other) >= floor(room):
                upward.append(where + " on its own floor or above")
        elif ORDER.index(WING_OF[other]) < ORDER.index(wing):
            upward.append(f"{where}, a wing above {wing}")

astray = [f"{name} is declared in {room}, defined in {defined[name]}" for name, room in sorted(declared.items())
          if name in defined and defined[name] != room]
twice = [" and ".join(paths) for paths in names.values() if len(paths) > 1]
several = [f"{name} is defined in {' and '.join(paths)}" for name, paths in types.items() if len(paths) > 1]
CHECKS = ((upward, "no include runs up the house"),
          (inside, "rooms include each other's faces alone"),
          (unknown, "every folder of src is a wing or a room of the design"),
          (twice, "file names are unique in the tree"),
          (several, "names of types are unique in the tree"),
          (hosted, "hosts use the engine, abi and filter alone, and only providers and scenarios use hosts"),
          (guards, "include guards have the names of their files"),
          (gone, "comments mention files that exist"),
          (silent, "each file begins with a comment that says what it is"),
          (astray, "functions are defined in the room that declares them"))
print(f"1..{len(CHECKS)}")
for number, (bad, what) in enumerate(CHECKS, 1):
    for line in bad:
        print(f"# {line}")
    print(f"{'not ok' if bad else 'ok'} {number} - {what}")
sys.exit(any(bad for bad, _ in CHECKS))
