#!/usr/bin/env python3
"""`tally perf report --stdio` and `tally perf diff` print what perf prints: the command lines of report.tsv with both,
on the same recordings, line by line.  TAP; $TALLY and $PERF are the binaries, $PROGRAM is report_program."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import lines
from lines import check

PROGRAM = os.environ["PROGRAM"]

# Recordings: who makes them, and the rest of the command line.
RECORDINGS = {
    "flat": ("perf", [PROGRAM]),
    "chains": ("perf", ["-g", PROGRAM]),
    "several": ("perf", ["-e", "cpu-clock", "-e", "page-faults", "-e", "context-switches", "sh", "-c",
                         "seq 200000 | sort -R | sort -n | tail -1"]),
    "group": ("perf", ["-e", "{cpu-clock,page-faults}", PROGRAM]),
    "groupchains": ("perf", ["-g", "-e", "{cpu-clock,page-faults}", PROGRAM]),
    "system": ("perf", ["-a", "-e", "cpu-clock:k", "sleep", "0.5"]),
    "trace": ("perf", ["-e", "sched:sched_switch", "sh", "-c", "sleep 0.02; sleep 0.02; sleep 0.02"]),
    "python3": ("perf", ["python3", "-c", "import json; [json.dumps(list(range(100000))) for _ in range(20)]"]),
    "xz": ("perf", ["sh", "-c", f"exec xz -1 -c {PROGRAM} {PROGRAM} {lines.PERF} > /dev/null"]),
    "sqlite3": ("perf", ["sqlite3", ":memory:", "with recursive n(i) as (select 1 union all select i + 1 from n limit "
                         "400000) select count(*) from (select i * 7 % 1001 as k from n order by k)"]),
    "gcc": ("perf", ["gcc", "-O2", "-x", "c", "-c", "-o", "/dev/null", str(pathlib.Path(__file__).with_name("report_program.c"))]),
    "pipe": ("perf", ["-g", "sh", "-c", f"exec {PROGRAM} > /dev/null"]),
    "empty": ("perf", ["-e", "context-switches:u", "true"]),
    "ours": ("tally", [PROGRAM]),
    "ourchains": ("tally", ["-g", PROGRAM]),
}
# Lines that differ in any recording, and why.
ANYWHERE = [
    r"_dl_start_user|\b_start\b",  # the loader's label _dl_start_user has no size: tally has no symbol of it
    r"@plt|\.plt\b",  # perf names stubs that call libraries "@plt", tally by their functions
]


def record(folder):
    """Makes the recordings.  Returns why some are missing, by name."""
    missing = {}
    for name, (program, words) in RECORDINGS.items():
        tool = next(word for word in words if "/" in word or shutil.which(word))
        if name in ("python3", "xz", "sqlite3", "gcc") and not shutil.which(name):
            missing[name] = f"{name} is not installed"
            continue
        if name == "pipe":
            with open(folder / name, "wb") as file:
                subprocess.run([lines.PERF, "record", "-q", "-o", "-", *words], stdout=file, stderr=subprocess.DEVNULL, check=False)
            continue
        done = lines.run(program, ["record", "-q", "-o", str(folder / name), *words], folder)
        if done[0] or not (folder / name).exists():
            missing[name] = f"{program} record {tool}: " + done[2].strip().replace("\n", " ")[:120]
    return missing


def shape(text):
    """Without the tip, which is another each time, and blanks at the ends of lines."""
    text = re.sub(r"(?m)^# \(Tip: .*\)$", "# (Tip)", text)
    text = re.sub(r"\[\.\.\.\] \(inlined\)", "[...]", text)  # perf prints memory that it has not set
    if "(deleted)" in text:  # the machine has another program whose file is gone: tally may know its names
        text = re.sub(r"\.{3,}", "...", re.sub(" +", " ", text))
        text = re.sub(r"(?m)^.*\(deleted\).*\n", "", text)
    kept = [line.rstrip() for line in text.splitlines() if not any(re.search(rule, line) for rule in ANYWHERE)]
    return "\n".join(kept)


def same_branches(shapes):
    """True if the trees have the same branches, in whatever order."""
    frames = {program: sorted(re.sub(r"^[ |-]+", "", line) for line in text.splitlines())
              for program, text in shapes.items()}
    frames = {program: [line for line in text if line] for program, text in frames.items()}
    return frames["perf"] == frames["tally"]


def compare(command, folder, missing):
    name, *words = lines.words_of(command.replace(";", r"\;"), {})
    title = f"perf report {command}"
    if name in missing:
        check(title, True, skipped=missing[name])
        return
    shapes, stubs = {}, False
    for program in "perf", "tally":
        status, out, err = lines.run(program, ["report", "--stdio", "-i", str(folder / name), *words], folder)
        shapes[program] = shape(out) + f"\nexit status {status}"
        stubs |= "plt" in out
        if status:
            shapes[program] += "\n" + err
    why = lines.difference(shapes["perf"], shapes["tally"])
    # Where a stub's name that tally alone knows was left out, perf has an address; and a caller without a symbol has
    # its address in memory in perf, in its file in tally.
    has_chains = "chains" in name or name == "pipe"
    if why and (stubs or has_chains):
        shapes = {program: re.sub(r"(?m)^.*\b0x[0-9a-f]{16}.*\n", "", text) for program, text in shapes.items()}
        why = lines.difference(shapes["perf"], shapes["tally"])
    # Branches of one share in different objects: perf orders them by where it has the objects in memory.
    if why and has_chains and same_branches(shapes):
        why = ""
    check(title, not why, why[:3000])


def diff(command, folder, missing):
    """perf diff of two of the recordings."""
    words = lines.words_of(command, {name: str(folder / name) for name in RECORDINGS})
    shapes = {}
    if missing:
        check(f"perf diff {command}", True, skipped="; ".join(missing.values()))
        return
    for program in "perf", "tally":
        status, out, _ = lines.run(program, ["diff", *words], folder)
        shapes[program] = shape(out) + f"\nexit status {status}"
    why = lines.difference(shapes["perf"], shapes["tally"])
    check(f"perf diff {command}", not why, why[:3000])


def main():
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        missing = record(folder)
        for command, _ in lines.rows(pathlib.Path(__file__).with_name("report.tsv")):
            compare(command, folder, missing)
        for command in ("flat ours", "flat flat", "-s dso flat several", "chains flat", "-t , flat ours", "-q ours flat", "ours flat",
                        "several several -s comm,dso", "group several", "flat trace"):
            diff(command, folder, missing)
    return lines.finish()


sys.exit(main())
