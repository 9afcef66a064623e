#!/usr/bin/env python3
"""Writing and reading fail at each system call in turn: a full disk, a broken disk, a quota, a kill.

Usage: io_faults.py quick|full [CASE…].  TAP.  $TALLY is the program, $FAIL_CALL the program of
fail_call.c, $WORKLOAD the program to record.

For N = 1, 2, … the N-th call on the output (or on the input) fails.  Rules:

- A command that reports success has written the whole output, and it is on disk.
- One that fails says why, once, and claims nothing else.  What had the output's name before is still
  there: a view's old output unchanged, the last recording as FILE or as FILE.old.
- What a recorder wrote before is readable.  Nothing else is left behind.
- A killed view leaves the old output or the new one.  A killed recorder's file is readable.

`quick` tries a few Ns, `full` all of them.
"""
import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile

TALLY = os.environ["TALLY"]
FAIL_CALL = os.environ["FAIL_CALL"]
WORKLOAD = os.environ["WORKLOAD"]
SECONDS = 120
COMPLAINTS = 5
CODES = ["ENOSPC", "EIO", "EDQUOT"]
WRITES = "write,pwrite,writev,copy,truncate,sync,datasync,chmod,open,link,rename,renameat,renameat2"
READS = "read,pread,open,mmap"
OLD = b"old\n"
SANITIZER = re.compile(rb"Sanitizer|runtime error:")
# A sentence that promises a result.
PROMISE = re.compile(rb"wrote |has the names of", re.IGNORECASE)

# Commands that write OUT, from the recordings FILE and OTHER and the counts COUNTS.
VIEWS = {
    "fold": ["fold", "-i", "FILE", "-o", "OUT"],
    "flamegraph": ["flamegraph", "-i", "FILE", "-o", "OUT.svg"],
    "annotate": ["annotate", "-i", "FILE", "-o", "OUT.html"],
    "export": ["export", "-f", "pprof", "-i", "FILE", "-o", "OUT.pb.gz"],
    "timeline": ["timeline", "-i", "FILE", "-o", "OUT.json"],
    "pack": ["pack", "-i", "FILE", "-o", "OUT"],
    "compare": ["compare", "COUNTS", "COUNTS", "-o", "OUT"],
    "sim": ["sim", "SCENARIO", "-o", "OUT"],
    "stat": ["stat", "-e", "task-clock", "-x,", "-o", "OUT", "true"],
    "stat --append": ["stat", "-e", "task-clock", "-x,", "-o", "OUT", "--append", "true"],
}
# Their output differs from run to run.
MEASURES = ("stat", "stat --append")

# Commands that write to standard output, which is a file.
PRINTERS = {
    "report": ["report", "--stdio", "-i", "FILE"],
    "report -j": ["report", "-j", "-i", "FILE"],
    "script": ["script", "-i", "FILE"],
    "fold": ["fold", "-i", "FILE"],
    "flamegraph": ["flamegraph", "-i", "FILE", "-o", "-"],
    "annotate": ["annotate", "--stdio", "-i", "FILE"],
    "diff": ["diff", "FILE", "OTHER"],
    "export": ["export", "-f", "speedscope", "-i", "FILE", "-o", "-"],
    "timeline": ["timeline", "-i", "FILE"],
    "compare": ["compare", "COUNTS", "COUNTS"],
    "list": ["list"],
    "doctor": ["doctor"],
    "cache": ["cache"],
    "completion": ["completion", "bash"],
    "help": ["help"],
    "--version": ["--version"],
}
READERS = ("report", "script", "fold", "annotate", "diff", "export", "timeline")


def run(words, fault=None, stdout=None, env=None):
    """Runs tally, under fail_call with `fault`: (calls, part of the path, how, which).  Returns the
    finished process and the number of calls that matched."""
    command = [TALLY] + words
    if fault:
        command = [FAIL_CALL, fault[0], fault[1], fault[2], fault[3], "count"] + command
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=stdout or subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=SECONDS, check=False, env=dict(os.environ, **(env or {})))
    if not fault:
        return done, 0
    with open("count", encoding="ascii") as file:
        return done, int(file.read())


def contents(path):
    """Returns a file's bytes, or None."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def numbers(count, full, wanted):
    """Returns 1 to count, or some of them."""
    if full or count <= wanted:
        return range(1, count + 1)
    return sorted({1 + i * (count - 1) // (wanted - 1) for i in range(wanted)})


def says(done, code):
    """Returns what is wrong with the messages of a run that failed with this errno, or None."""
    text = os.strerror(getattr(errno, code)).lower().encode()
    if SANITIZER.search(done.stderr):
        return "sanitizer"
    if done.returncode not in (1, 2):
        return f"status {done.returncode}"
    if text not in done.stderr.lower():
        return "does not say why"
    if done.stderr.lower().count(text) > 1:
        return "says why twice"
    if PROMISE.search(done.stderr):
        return "promises a result"
    return None


class Walk:
    """The runs of one case."""

    def __init__(self, name):
        self.name, self.complaints, self.ends = name, [], {}

    def note(self, where, fault, done):
        """Counts a run, and keeps its fault."""
        kind = "failed" if done.returncode else "whole"
        self.ends[kind] = self.ends.get(kind, 0) + 1
        if fault:
            self.complaints.append(f"{where}: {fault}, status {done.returncode}\n" + done.stderr[-800:].decode(errors="replace"))
        return len(self.complaints) < COMPLAINTS

    def show(self, number):
        """Prints the TAP line."""
        print(("not ok" if self.complaints else "ok") + f" {number} - {self.name}: "
              + (", ".join(f"{n} {kind}" for kind, n in sorted(self.ends.items())) or "no call failed"), flush=True)
        for complaint in self.complaints:
            print("# " + complaint.replace("\n", "\n# "), flush=True)


def is_readable(path):
    """True if all of a recording can be read."""
    read, _ = run(["script", "-i", path])
    return not read.returncode and b"warning" not in read.stderr


def leftovers(known):
    """Returns the names in the folder of outputs that don't belong there."""
    return [name for name in os.listdir("faulty") if name not in known]


def clear(out, old):
    """Empties the folder of outputs, and puts the old output there."""
    shutil.rmtree("faulty", ignore_errors=True)
    os.mkdir("faulty")
    if old is not None:
        with open(out, "wb") as file:
            file.write(old)


def walk_view(name, words, full):
    """An output file of a view."""
    walk = Walk(f"{name}: writing fails")
    words = [word.replace("OUT", "faulty/out") for word in words]
    out = next(word for word in words if word.startswith("faulty/out"))
    appends = "--append" in words
    old = None if name == "sim" else OLD
    clear(out, old)
    whole, count = run(words, (WRITES, "faulty", "EIO", "0"))
    expected = contents(out)
    known = set(os.listdir("faulty"))
    if whole.returncode or not count or not expected:
        walk.note("without a fault", "fails", whole)
        return walk
    for n in numbers(count, full, 8):
        for code in CODES if full else [CODES[n % len(CODES)]]:
            clear(out, old)
            done, _ = run(words, (WRITES, "faulty", code, str(n)))
            now = contents(out)
            if done.returncode:
                fault = says(done, code)
                if not fault and name not in ("sim",) and not (now or b"").startswith(OLD) and name not in MEASURES:
                    fault = "the old output is gone"
                if not fault and appends and not now.startswith(OLD):
                    fault = "the old output is gone"
            else:
                same = now and (now != OLD) if name in MEASURES else now == expected or (name == "sim" and is_readable(out))
                fault = None if same else "reports success, but the output is not whole"
            if not fault and leftovers(known):
                fault = f"leaves {leftovers(known)}"
            if not walk.note(f"call {n} of {count}, {code}", fault, done):
                return walk
        clear(out, old)
        done, _ = run(words, (WRITES, "faulty", "KILL", str(n)))
        now = contents(out)
        fault = None
        if name not in MEASURES and name != "sim" and now not in (OLD, expected):
            fault = "a kill leaves a part"
        if not walk.note(f"killed in call {n}", fault, done):
            return walk
    return walk


def walk_printer(name, words, full):
    """Standard output is a file on a disk that is full, broken or closed late."""
    walk = Walk(f"{name}: standard output fails")
    calls = "write,writev,close"
    clear("faulty/out", None)

    def printed(fault):
        with open("faulty/out", "wb") as file:
            return run(words, fault, file)

    whole, count = printed((calls, "faulty", "EIO", "0"))
    expected = contents("faulty/out")
    if whole.returncode or not count or not expected:
        walk.note("without a fault", "fails", whole)
        return walk
    for n in numbers(count, full, 2):
        for code in CODES if full else [CODES[n % len(CODES)]]:
            done, _ = printed((calls, "faulty", code, str(n)))
            fault = says(done, code) if done.returncode else "reports success, but its output failed"
            if not walk.note(f"call {n} of {count}, {code}", fault, done):
                return walk
    return walk


def walk_reader(name, words, full):
    """The input fails."""
    walk = Walk(f"{name}: reading fails")
    whole, count = run(words, (READS, "/in.data", "EIO", "0"))
    if whole.returncode or not count:
        walk.note("without a fault", "fails", whole)
        return walk
    for n in numbers(count, full, 4):
        done, _ = run(words, (READS, "/in.data", "EIO", str(n)))
        fault = says(done, "EIO") if done.returncode else None
        if not done.returncode and done.stdout != whole.stdout and done.stderr == whole.stderr:
            fault = "shows less, and does not say so"
        if not walk.note(f"call {n} of {count}", fault, done):
            return walk
    done, _ = run(words, ("read,pread", "/in.data", "EINTR", "%2"))
    if done.returncode or done.stdout != whole.stdout:
        walk.note("each second call is interrupted", "does less", done)
    return walk


# ---- recordings ------------------------------------------------------------------

RECORDS = {
    "record": [],
    "record -g without compression": ["-g", "-z", "0"],
    "record --switch-output": ["--switch-output=20ms"],
    "record --timestamp-filename": ["--timestamp-filename"],
}


def recordings(out):
    """Returns the files of a recording."""
    folder = os.path.dirname(out)
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.startswith(os.path.basename(out)))


def fault_of_files(out, before, is_whole):
    """Returns what is wrong with the files that a recorder left, or None."""
    kept = False
    for path in recordings(out):
        if contents(path) == before:
            kept = True
            continue
        if not os.path.getsize(path):
            if is_whole:
                return f"{path} is empty"
            continue
        read, _ = run(["script", "-i", path])
        if read.returncode and (is_whole or b"no usable data" not in read.stderr and b"no samples" not in read.stderr):
            return f"{path} can't be read: " + read.stderr.decode(errors="replace")
    if not kept:
        return "the last recording is gone"
    if leftovers({os.path.basename(path) for path in recordings(out)}):
        return f"leaves {leftovers(set())}"
    return None


def walk_record(name, options, full):
    """A recorder's output fails."""
    walk = Walk(f"{name}: writing fails")
    out, before = "faulty/out", contents("in.data")
    words = ["record", "-e", "cpu-clock", "-F", "2000"] + options + ["-o", out, "--", WORKLOAD, "threads"]
    clear(out, before)
    whole, count = run(words, (WRITES, "faulty", "EIO", "0"))
    fault = fault_of_files(out, before, True) or (None if count else "no call")
    if whole.returncode or fault:
        walk.note("without a fault", fault or "fails", whole)
        return walk
    for n in numbers(count, full, 10):
        for code in CODES if full else [CODES[n % len(CODES)]]:
            clear(out, before)
            done, _ = run(words, (WRITES, "faulty", code, str(n)))
            fault = says(done, code) if done.returncode else None
            fault = fault or fault_of_files(out, before, done.returncode == 0)
            if not walk.note(f"call {n} of {count}, {code}", fault, done):
                return walk
        clear(out, before)
        done, _ = run(words, (WRITES, "faulty", "KILL", str(n)))
        if not walk.note(f"killed in call {n}", fault_of_files(out, before, False), done):
            return walk
    return walk


# Calls that a signal may interrupt.  stdio's writes are not among them: tally's handlers restart them.
STORMS = (("poll,ppoll,epoll,epoll_wait", ""), ("read,write", "anon_inode"), ("read,write", "socket:"))
RECORD_STORMS = STORMS + (("read,pread,write,pwrite,copy", "faulty"),)


def walk_storm(name, words):
    """A command that waits, whose calls are interrupted."""
    walk = Walk(f"{name}: each second call is interrupted")
    total = 0
    for calls, part in RECORD_STORMS if name == "record" else STORMS:
        clear("faulty/out", None)
        done, count = run(words, (calls, part, "EINTR", "%2"))
        total += count
        fault = None if not done.returncode and b"warning" not in done.stderr else "fails, or warns"
        if not fault and name == "record" and run(["script", "-i", "faulty/out"])[0].returncode:
            fault = "the recording can't be read"
        if not walk.note(f"{count} calls: {calls} of {part}", fault, done):
            break
    if not total:
        walk.complaints.append("no call was interrupted")
    return walk


WAITERS = {
    "record": ["record", "-g", "-e", "cpu-clock", "-o", "faulty/out", "--", WORKLOAD, "threads"],
    "stat": ["stat", "-e", "task-clock", "-I", "50", "-x,", "-o", "faulty/out", "--", WORKLOAD, "threads"],
    "top": ["top", "--stdio", "-e", "cpu-clock", "--duration", "0.3", "-p", str(os.getpid())],
}


def prepare():
    """Records what the cases read.  Returns why nothing can be recorded, or None."""
    os.mkdir("input")
    for path in ("input/in.data", "input/other.data"):
        for _ in range(20):
            made, _ = run(["record", "-q", "-g", "-e", "cpu-clock", "-F", "500", "-o", path, "--", WORKLOAD, "threads"])
            if made.returncode or not run(["report", "--stdio", "-i", path])[0].returncode:
                break
        if made.returncode:
            return made.stderr.decode().split("\n", maxsplit=1)[0]
    shutil.copy("input/in.data", "in.data")
    counts, _ = run(["stat", "-e", "task-clock", "-r", "3", "-j", "-o", "counts.json", "true"])
    if counts.returncode:
        return counts.stderr.decode().split("\n", maxsplit=1)[0]
    return None


def main():
    full = sys.argv[1] == "full"
    chosen = sys.argv[2:]
    os.environ.update(LC_ALL="C", PAGER="cat", NO_COLOR="1")
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        os.environ.update(HOME=scratch, XDG_CACHE_HOME=os.path.join(scratch, "cache"))
        why_not = prepare()
        if not why_not:
            probe, _ = run(["help"], ("write", "", "EIO", "0"))
            why_not = "calls can't be watched here" if probe.returncode == 125 else None
        if why_not:
            print("1..0 # SKIP " + why_not)
            return
        paths = {"FILE": "input/in.data", "OTHER": "input/other.data", "COUNTS": "counts.json", "SCENARIO": os.path.join(os.environ["SOURCE"], "examples/stacks.sim")}
        walks = []
        for table, walker in ((VIEWS, walk_view), (PRINTERS, walk_printer), (RECORDS, walk_record)):
            for name, words in table.items():
                walks.append((name, lambda name=name, words=words, walker=walker: walker(name, [paths.get(w, w) for w in words], full)))
        for name in READERS:
            walks.append((name, lambda name=name: walk_reader(name, [paths.get(w, w) for w in PRINTERS[name]], full)))
        for name, words in WAITERS.items():
            walks.append((name, lambda name=name, words=words: walk_storm(name, words)))
        number = 0
        for name, walk in walks:
            if chosen and name not in chosen:
                continue
            number += 1
            walk().show(number)
        print(f"1..{number}")
        os.chdir("/")


if __name__ == "__main__":
    main()
