#!/usr/bin/env python3
"""Programs of every kind whose shares of CPU time are known, recorded with the default options: of the samples at least 99 %
must have a stack that reaches to where its thread begins, and each part's calls must have its share within 2 points.

usage: truth.py TALLY KIND...     a test of each kind, TAP
       truth.py TALLY --table [KIND...]   the table of docs/accuracy.md: tally's default, and perf's two ways beside it
       truth.py --list            the kinds

A program measures its shares itself, by its threads' CPU clocks, in parts that last many sampling periods (truth.h), so that
2 points are far more than sampling can be off by.  A kind whose compiler or package is not there is skipped.
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from kinds import GET, KINDS  # noqa: E402
import stacks  # noqa: E402

COMPLETE_PERCENT = 99
SHARE_POINTS = 2
SAMPLES_MIN = 300
SECONDS_MAX = 120
FIELDS = "comm,pid,tid,ip,sym,symoff,dso"


class Skip(Exception):
    """Why a kind can't be run here."""


class Failed(Exception):
    """Why a kind could not be run though all is there."""


class Recorder:
    """Records a command, and reads what was recorded."""

    def __init__(self, name, record, script):
        self.name, self.record, self.script = name, record, script

    def record_command(self, here, command, env):
        done = subprocess.run([*self.record, "-o", f"{here}/recording", "--", *command], stdin=subprocess.DEVNULL, cwd=here,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", env=env,
                              timeout=SECONDS_MAX, check=False)
        if done.returncode:
            raise Failed(f"{' '.join(self.record)} ended with {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout, done.stderr

    def samples(self, here, env):
        with subprocess.Popen([*self.script, "-i", f"{here}/recording", "-F", FIELDS], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, errors="replace", cwd=here, env=env) as script:
            yield from stacks.samples(script.stdout)
        if script.returncode:
            raise Failed(f"{' '.join(self.script)} ended with {script.returncode}")


def fill(words, here):
    """A command with its folders, and its tool's path."""
    words = [word.replace("{here}", here).replace("{source}", str(HERE)) for word in words]
    if "/" not in words[0]:
        tool = find(words[0])
        if not tool:
            raise Skip(f"no {words[0]} here: {GET.get(words[0], 'install ' + words[0])}")
        words[0] = tool
    return words


def find(tool):
    """A tool's path; None where it is absent, or but a shim of a version manager that has no version."""
    found = shutil.which(tool)
    versions = pathlib.Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    for path in (found, *sorted(versions.glob(f"*/bin/{tool}"))):
        if path and subprocess.run([path, "version" if tool == "go" else "--version"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode in (0, 1):
            return str(path)
    return None


def build(kind, here, env):
    for command in kind.build:
        done = subprocess.run(fill(command, here), cwd=here, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=SECONDS_MAX, check=False)
        if done.returncode:
            raise Failed(f"{' '.join(command)}: {done.stdout[-2000:]}")


def truths(output):
    """What the program says of itself: {part: percent}."""
    return {match.group(1): float(match.group(2)) for match in re.finditer(r"^([\w.-]+) ([0-9.]+)$", output, re.M)}


class Result:
    """What the samples of a kind say, and what is true."""

    def __init__(self, kind, samples, true):
        starts = stacks.Starts(kind.starts)
        self.count = len(samples)
        self.complete = percent(sum(starts.complete(sample) for sample in samples), self.count)
        self.parts = []  # (name, true, of the leaf, of the path)
        for name, path in kind.paths.items():
            if name not in true:
                raise Failed(f"the program says nothing of {name}: {true}")
            leaf = sum(stacks.has_path(sample, path[-1:]) for sample in samples)
            whole = sum(stacks.has_path(sample, path) for sample in samples)
            self.parts.append((name, true[name], percent(leaf, self.count), percent(whole, self.count)))
        self.ends = common(sample_end(sample) for sample in samples if not starts.complete(sample))
        self.stacks = common(abridged([frame.name for frame in reversed(sample.frames)]) for sample in samples)

    def worst(self):
        """The largest distance of a path's share from the truth, in points."""
        return max((abs(whole - true) for _, true, _, whole in self.parts), default=0.0)


def percent(part, whole):
    return 100 * part / whole if whole else 0.0


def sample_end(sample):
    return " < ".join(f"{frame.name} ({os.path.basename(frame.file)})" for frame in sample.frames[-3:])


def abridged(names):
    return ";".join([*names[:4], "…", *names[-6:]] if len(names) > 12 else names)


def common(texts):
    counts = {}
    for text in texts:
        counts[text] = counts.get(text, 0) + 1
    return sorted(counts.items(), key=lambda item: -item[1])


def measure(kind, recorder, here):
    env = {**os.environ, "LC_ALL": "C.UTF-8", "XDG_CACHE_HOME": here, **kind.env,
           "GOCACHE": os.path.join(tempfile.gettempdir(), f"tally-truth-go-{os.getuid()}"), "GO111MODULE": "off", "GOFLAGS": ""}
    build(kind, here, env)
    output, said = recorder.record_command(here, fill(kind.run, here), env)
    samples = [sample for sample in recorder.samples(here, env) if not kind.comm or re.fullmatch(kind.comm, sample.comm)]
    for pid in {sample.pid for sample in samples}:  # what run-time compilers left for profilers
        for path in (f"/tmp/perf-{pid}.map", f"/tmp/jit-{pid}.dump"):
            pathlib.Path(path).unlink(missing_ok=True)
    return Result(kind, samples, truths(output)), said


def test(kinds, recorder):
    number = 0

    def line(good, what, shown=""):
        nonlocal number
        number += 1
        print(f"{'ok' if good else 'not ok'} {number} - {what}")
        if not good:
            for text in shown.splitlines()[:40]:
                print("#", text[:400])
        sys.stdout.flush()

    for kind in kinds:
        with tempfile.TemporaryDirectory(prefix="tally-truth-", ignore_cleanup_errors=True) as here:
            try:
                result, said = measure(kind, recorder, here)
            except Skip as why:
                number += 1
                print(f"ok {number} - {kind.name} # SKIP {why}")
                continue
            except (Failed, subprocess.TimeoutExpired) as why:
                line(False, f"{kind.name}: runs", str(why))
                continue
        ends = "\n".join([said, "stacks that are not complete end (innermost of the last three first):"] +
                         [f"{count:6} {end}" for end, count in result.ends[:8]])
        shown = "\n".join([said, "the stacks:"] + [f"{count:6} {stack}" for stack, count in result.stacks[:12]])
        line(result.count >= SAMPLES_MIN, f"{kind.name}: {result.count} samples", said)
        line(result.complete >= COMPLETE_PERCENT, f"{kind.name}: {result.complete:.1f} % of the stacks are complete", ends)
        for name, true, leaf, whole in result.parts:
            for what, share in ((f"{name} has", leaf), (f"{name} with its callers has", whole)):
                good = abs(share - true) <= SHARE_POINTS
                line(good, f"{kind.name}: {what} {share:.1f} %, in truth {true:.1f} %", shown)
                shown = shown if good else ""  # once
    print(f"1..{number}")


def table(kinds, recorders):
    print("| kind | " + " | ".join(f"{recorder.name}: complete, off by" for recorder in recorders) + " |")
    print("|---|" + "---|" * len(recorders))
    for kind in kinds:
        cells = []
        for recorder in recorders:
            with tempfile.TemporaryDirectory(prefix="tally-truth-", ignore_cleanup_errors=True) as here:
                try:
                    result, _ = measure(kind, recorder, here)
                    cells.append(f"{result.complete:.1f} %, {result.worst():.1f}")
                except Skip as why:
                    cells.append(f"skipped: {why}")
                except (Failed, subprocess.TimeoutExpired) as why:
                    cells.append(f"failed: {str(why).splitlines()[0][:60]}")
        print(f"| {kind.what} | " + " | ".join(cells) + " |", flush=True)


def chosen(names):
    unknown = set(names) - {kind.name for kind in KINDS}
    if unknown:
        sys.exit(f"truth.py: no such kind: {' '.join(sorted(unknown))}")
    return [kind for kind in KINDS if not names or kind.name in names]


def main(arguments):
    if arguments == ["--list"]:
        print("\n".join(kind.name for kind in KINDS))
        return
    program = os.path.abspath(arguments[0])
    tally = Recorder("tally", [program, "record"], [program, "script"])
    if arguments[1:2] == ["--table"]:
        perf = [Recorder(f"perf {' '.join(how)}", ["perf", "record", "-F", "999", *how], ["perf", "script"])
                for how in (["-g"], ["--call-graph", "dwarf"])]
        table(chosen(arguments[2:]), [tally, *perf])
    else:
        test(chosen(arguments[1:]), tally)


if __name__ == "__main__":
    main(sys.argv[1:])
