#!/usr/bin/env python3
"""Memory runs out at each allocation in turn: a command ends with an error message or works without
it.

Usage: allocation.py quick|full [CASE…].  TAP.  $TALLY is the program, $FAIL_ALLOCATION the library
preloaded into it, $TALLY_FAILING the program with that library linked in; one of the two exists, as
fail_allocation.c explains.  $WORKLOAD is the program to record.

For N = 1, 2, … the N-th allocation fails.  The run must end in time, by itself, with status 0, 1 or
2.  If it fails, a message must say that memory is out; if it succeeds, the answer must be complete,
or a message must say that it isn't.  A recorder's file must be readable.  `quick` tries a few Ns at
the beginning, at the end and in between; `full` tries every one, also with all later allocations
failing.
"""
import os
import re
import subprocess
import sys
import tempfile
import time

TALLY = os.environ["TALLY"]
PRELOAD = os.environ.get("FAIL_ALLOCATION")
PROGRAM = TALLY if PRELOAD else os.environ["TALLY_FAILING"]
WORKLOAD = os.environ["WORKLOAD"]
QUICK = 40
SECONDS = 60
COMPLAINTS = 10
SANITIZER = re.compile(rb"Sanitizer|runtime error:")
# "cannot create shared object descriptor" is the dynamic linker's word for it.
WORDS = re.compile(rb"memory|Cannot allocate|allocat|not enough|cannot create shared object", re.IGNORECASE)

CASES = {
    "report of names": ["report", "--stdio", "-i", "NAMED"],
    "script of names": ["script", "-i", "NAMED"],
    "report": ["report", "--stdio", "-i", "FILE"],
    "report -g": ["report", "--stdio", "-g", "-i", "FILE"],
    "report -j": ["report", "-j", "-i", "FILE"],
    "script": ["script", "-i", "FILE"],
    "report of stacks": ["report", "--stdio", "-g", "-i", "STACKS"],
    "record": ["record", "-o", "NEW", "--", "/bin/true"],
    "record -g": ["record", "-g", "-o", "NEW", "--", "/bin/true"],
    "record stacks": ["record", "--call-graph", "dwarf,4096", "-o", "NEW", "--", "/bin/true"],
}


class Run:
    """One run of a command in which the N-th allocation fails, or none (0)."""

    def __init__(self, words, n, onward, scratch):
        environment = dict(os.environ, FAIL_AT=str(n), FAIL_COUNT=os.path.join(scratch, "count"), PAGER="cat",
                           XDG_CACHE_HOME=os.path.join(scratch, "no-cache"), NO_COLOR="1")
        if PRELOAD:
            environment["LD_PRELOAD"] = PRELOAD
        if onward:
            environment["FAIL_ONWARD"] = "1"
        self.is_late = False
        try:
            done = subprocess.run([PROGRAM] + words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=environment, timeout=SECONDS, check=False)
            self.status, self.out, self.err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            self.is_late, self.status, self.out, self.err = True, None, b"", late.stderr or b""

    def said(self):
        """Returns the run's messages on standard error without figures, which differ from run to
        run."""
        return re.sub(rb"[0-9][0-9.,]*( [kKMG]i?B| B|)", b"0", self.err)

    def fault(self, whole):
        """Returns what is wrong with the run's end, compared with a run that has enough memory, or
        None."""
        if self.is_late:
            return f"does not end in {SECONDS} s"
        if SANITIZER.search(self.err):
            return "sanitizer: " + SANITIZER.split(self.err, 1)[1][:300].decode(errors="replace")
        # libelf is loaded on demand, so each thread that uses it gets memory for its variables then; glibc
        # ends the process if there is none.
        if self.status == 127 and b"thread-local data" in self.err:
            return None
        if self.status not in (0, 1, 2, 126):  # 126: the program to be recorded could not be started
            return f"status {self.status}"
        if self.status and not WORDS.search(self.err):
            return f"status {self.status} without a word about memory"
        if not self.status and self.out != whole.out and self.said() == whole.said():
            return "shows less, and does not say so"
        return None


def counted(words, scratch):
    """Runs without a failure.  Returns the run and its number of allocations."""
    run = Run(words, 0, False, scratch)
    if run.status != 0:
        return run, 0
    with open(os.path.join(scratch, "count"), encoding="ascii") as file:
        return run, int(file.read())


def file_fault(path, run):
    """A recorder that reports success has made a recording; one that failed left none, or a short
    one."""
    if not os.path.exists(path) or (run.status and os.path.getsize(path) == 0):
        return None if run.status else "made no recording"
    read = subprocess.run([TALLY, "script", "-i", path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, timeout=SECONDS, check=False)
    if read.returncode not in ((0,) if run.status == 0 else (0, 1)):
        return f"reading what it left: status {read.returncode}, {read.stderr[-300:].decode(errors='replace')}"
    return None


def walk(words, scratch, numbers, onward, whole):
    """Returns the faults of all runs, and how many runs ended in which way."""
    complaints, tally = [], {"whole": 0, "did without": 0, "refused": 0}
    new = os.path.join(scratch, "new")
    for n in numbers:
        if os.path.exists(new):
            os.unlink(new)
        run = Run(words, n, onward, scratch)
        fault = run.fault(whole)
        if not fault and new in words:
            fault = file_fault(new, run)
        if fault:
            complaints.append(f"N={n}{' and on' if onward else ''}: {fault}\n" + run.err[-1500:].decode(errors="replace"))
        kind = "refused" if run.status else "whole" if run.out == whole.out and run.said() == whole.said() else "did without"
        tally[kind] += 1
        if len(complaints) >= COMPLAINTS:
            break
    return complaints, tally


def strided(count, wanted):
    """Returns 1, count, and numbers evenly in between."""
    return sorted({1 + i * (count - 1) // max(wanted - 1, 1) for i in range(wanted)}) if count > wanted else list(range(1, count + 1))


def record_samples(how, what, path):
    """The workload lasts a tenth of a second: on a busy machine it may run too briefly for a
    sample."""
    for _ in range(20):
        made = subprocess.run([TALLY, "record", "-q", "-e", "cpu-clock", "-F", "200"] + how +
                              ["-o", path, "--", WORKLOAD, what], capture_output=True, check=False)
        if made.returncode or not subprocess.run([TALLY, "report", "--stdio", "-i", path], capture_output=True,
                                                 check=False).returncode:
            break
    return made


def main():
    full = sys.argv[1] == "full"
    cases = sys.argv[2:] or list(CASES)
    os.environ["LC_ALL"] = "C"  # setlocale(3) falls back to it without memory
    with tempfile.TemporaryDirectory() as scratch:
        paths = {name: os.path.join(scratch, name.lower()) for name in ("NAMED", "FILE", "STACKS", "NEW")}
        # A sample of a clock reading is in the vdso, whose code is in no file.
        for name, how, what in (("NAMED", ["-g"], "threads"), ("FILE", ["-g", "--no-pack"], "clock"),
                                ("STACKS", ["--call-graph", "dwarf,4096", "--no-pack"], "threads")):
            made = record_samples(how, what, paths[name])
            if made.returncode:
                print("1..0 # SKIP nothing can be recorded: " + made.stderr.decode().split("\n")[0])
                return
        for index, name in enumerate(cases):
            began = time.monotonic()
            words = [paths.get(word, word) for word in CASES[name]]
            whole, count = counted(words, scratch)
            if not count:
                print(f"not ok {index + 1} - {name}: nothing refused, status {whole.status}")
                continue
            complaints, tally = walk(words, scratch, range(1, count + 1) if full else strided(count, QUICK), False, whole)
            if not complaints:
                more, _ = walk(words, scratch, range(1, count + 1) if full else strided(count, QUICK // 4), True, whole)
                complaints += more
            print(("not ok" if complaints else "ok") + f" {index + 1} - {name}: {count} allocations; "
                  + ", ".join(f"{n} {kind}" for kind, n in tally.items()) + f"; {time.monotonic() - began:.0f} s", flush=True)
            for complaint in complaints:
                print("# " + complaint.replace("\n", "\n# "), flush=True)
        print(f"1..{len(cases)}")


if __name__ == "__main__":
    main()
