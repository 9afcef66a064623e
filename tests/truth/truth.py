#!/usr/bin/env python3
"""Programs of every kind with known shares of CPU time, recorded with the default options.

At least 99 % of the samples must have a stack that reaches the start of its thread, and each part's
calls must have its share within 2 points.

usage: truth.py TALLY [KIND...]           a test of each kind, TAP
       truth.py TALLY --table [KIND...]   the table of docs/accuracy.md: tally's default options,
                                          compared with perf's two ways
       truth.py --list                    the kinds

A program measures its shares itself, by its threads' CPU clocks, in parts that last many sampling
periods (truth.h): 2 points are far more than sampling can be off by.  A kind whose compiler or
package is missing is skipped.
"""
import collections
import contextlib
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from kinds import GET, KINDS  # noqa: E402
from sessions import Failed, Skip, truths  # noqa: E402
import stacks  # noqa: E402

SAMPLES_MIN = 300
SECONDS_MAX = 120  # limit for a kind, which takes less than ten
FIELDS = "comm,pid,tid,ip,sym,symoff,dso"


# How a recorder is told about processes that exist already.
HOW = {
    "-p": lambda pids: ["-p", ",".join(map(str, pids))],
    "-u": lambda pids: ["-u", str(os.stat(f"/proc/{pids[0]}").st_uid)],
    "-a": lambda pids: ["-a"],
}


class Recorder:
    """Records a command, and reads the recording."""

    def __init__(self, name, record, script):
        self.name, self.record, self.script = name, record, script

    def record_command(self, here, command, env):
        done = subprocess.run(
            [*self.record, "-o", f"{here}/recording", "--", *command],
            stdin=subprocess.DEVNULL,
            cwd=here,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=env,
            timeout=SECONDS_MAX,
            check=False,
        )
        if done.returncode:
            raise Failed(
                f"{' '.join(self.record)} ended with {done.returncode}: {done.stderr[-2000:]}"
            )
        return done.stdout, done.stderr

    def record_running(self, here, session, how, env):
        """Records existing processes, from before the session's work until it is done: {part:
        percent}."""
        control, acknowledged = f"{here}/control", f"{here}/acknowledged"
        os.mkfifo(control)
        os.mkfifo(acknowledged)
        with contextlib.ExitStack() as ends:
            targets = session.start(here, env)
            ends.callback(session.stop)
            with open(f"{here}/said", "w+b") as said:
                recorder = subprocess.Popen(
                    [
                        *self.record,
                        *how(targets),
                        "-o",
                        f"{here}/recording",
                        "--control",
                        f"fifo:{control},{acknowledged}",
                    ],
                    stdin=subprocess.DEVNULL,
                    cwd=here,
                    stdout=said,
                    stderr=said,
                    env=env,
                )
                ends.callback(stop, recorder)
                control_to = opened(control, os.O_WRONLY, recorder, said)
                answers = opened(acknowledged, os.O_RDONLY, recorder, said)
                os.write(control_to, b"ping\n")
                if not select.select([answers], [], [], 30)[0] or not os.read(answers, 100):
                    raise Failed(f"{' '.join(self.record)} does not answer: {text_of(said)}")
                true = session.work()
                with contextlib.suppress(
                    OSError
                ):  # the recorder has ended with its processes
                    os.write(control_to, b"stop\n")
                recorder.wait(timeout=SECONDS_MAX)
                os.close(control_to)
                os.close(answers)
                return true, text_of(said), targets

    def samples(self, here, env):
        with subprocess.Popen(
            [*self.script, "-i", f"{here}/recording", "-F", FIELDS],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
            cwd=here,
            env=env,
        ) as script:
            yield from stacks.samples(script.stdout)
        if script.returncode:
            raise Failed(f"{' '.join(self.script)} ended with {script.returncode}")


def text_of(said):
    said.seek(0)
    return said.read().decode(errors="replace")[-2000:]


def opened(path, flags, recorder, said):
    """Opens the other side of a recorder's fifo as soon as the recorder has opened it."""
    for _ in range(3000):
        if recorder.poll() is not None:
            raise Failed(f"{' '.join(recorder.args)}: {text_of(said)}")
        try:
            return os.open(path, flags | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.01)
    raise Failed(f"{' '.join(recorder.args)} does not open {path}")


def stop(process):
    if process.poll() is None:
        process.kill()
        process.wait()


def places(tool):
    """Returns where a tool may be.

    An ordinary user's PATH lacks servers, Debian's postgres, and versions of Python."""
    yield shutil.which(tool)
    yield f"/usr/sbin/{tool}"
    yield from sorted(pathlib.Path("/usr/lib/postgresql").glob(f"*/bin/{tool}"), reverse=True)
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    yield from sorted(pyenv.glob(f"versions/*/bin/{tool}"))


def find(tool):
    """Returns a tool's path, or None.

    None also for a version manager's stand-in for a missing version."""
    asks = {"go": "version", "nginx": "-v", "fpc": "-iV", "erl": "-version"}
    asks.update(dict.fromkeys(["luajit", "lua5.4"], "-v"))
    for path in places(tool):
        if not path or not os.access(path, os.X_OK):
            continue
        said = subprocess.run(
            [path, asks.get(tool, "--version")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        if not said.returncode and not (tool == "go" and b"gccgo" in said.stdout):
            return str(path)
    return None


def fill(words, here):
    """Returns a command with its folders, and its tool's path."""
    words = [word.replace("{here}", here).replace("{source}", str(HERE)) for word in words]
    if "/" not in words[0]:
        words[0] = find_or_skip(words[0])
    return words


def find_or_skip(tool):
    found = find(tool)
    if not found:
        raise Skip(f"no {tool} here: {GET.get(tool, 'install ' + tool)}")
    return found


def build(kind, here, env):
    for command in kind.build:
        done = subprocess.run(
            fill(command, here),
            cwd=here,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        if done.returncode:
            raise Failed(f"{' '.join(command)}: {done.stdout[-2000:]}")


class Result:
    """What the samples of a kind show, and the truth."""

    def __init__(self, kind, samples, true, owners):
        starts = stacks.Starts(kind.starts)
        self.count = len(samples)
        self.complete = percent(sum(starts.complete(sample) for sample in samples), self.count)
        self.parts = []  # (name, true, of the leaf, of the path)
        for name, path in kind.paths.items():
            if name not in true:
                raise Failed(f"the program says nothing of {name}: {true}")
            own = [sample for sample in samples if sample.pid == owners.get(name, sample.pid)]
            leaf = having(own, path[-1:])
            whole = having(own, path)
            self.parts.append(
                (name, true[name], percent(leaf, self.count), percent(whole, self.count))
            )
        self.ends = common(sample_end(sample) for sample in samples if not starts.complete(sample))
        self.stacks = common(
            abridged([frame.name for frame in reversed(sample.frames)]) for sample in samples
        )

    def worst(self):
        """Returns the largest distance of a path's share from the truth, in points."""
        return max((abs(whole - true) for _, true, _, whole in self.parts), default=0.0)


def having(samples, path):
    """Returns how many samples have the path.  Most share their stack with another sample."""
    counts = collections.Counter(sample.frames for sample in samples)
    return sum(count for frames, count in counts.items() if stacks.has_path(frames, path))


def percent(part, whole):
    return 100 * part / whole if whole else 0.0


def sample_end(sample):
    return " < ".join(
        f"{frame.name} ({os.path.basename(frame.file)})" for frame in sample.frames[-3:]
    )


def abridged(names):
    return ";".join([*names[:4], "…", *names[-6:]] if len(names) > 12 else names)


def common(texts):
    return collections.Counter(texts).most_common()


def measure(kind, recorder, here):
    env = {
        **os.environ,
        "LC_ALL": "C.UTF-8",
        "XDG_CACHE_HOME": here,
        "GOCACHE": os.path.expanduser("~/.cache/go-build"),  # otherwise Go compiles its library each time
        "GO111MODULE": "off",
        "GOFLAGS": "",
    }
    build(kind, here, env)
    owners = {}  # parts that are processes of their own
    if kind.session:
        session = kind.session(
            [find_or_skip(tool) for tool in kind.needs], fill(kind.run, here) if kind.run else []
        )
        true, said, pids = recorder.record_running(here, session, HOW[kind.how], env)
        owners = session.pids
    else:
        output, said = recorder.record_command(here, fill(kind.run, here), env)
        true, pids = kind.truths(output, said) if kind.truths else truths(output), ()
    samples = [
        sample
        for sample in recorder.samples(here, env)
        if (not kind.comm or re.fullmatch(kind.comm, sample.comm))
        and (not pids or sample.pid in pids)
    ]
    for pid in {sample.pid for sample in samples}:  # files that run-time compilers left for profilers
        for path in (f"/tmp/perf-{pid}.map", f"/tmp/jit-{pid}.dump"):
            pathlib.Path(path).unlink(missing_ok=True)
    return Result(kind, samples, true, owners), said


def too_long(*_):
    raise Failed(f"not done after {SECONDS_MAX} s")


@contextlib.contextmanager
def scratch():
    """A folder for a kind, and a time limit."""
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS_MAX)
    with contextlib.ExitStack() as ends, tempfile.TemporaryDirectory(
        prefix="tally-truth-", ignore_cleanup_errors=True
    ) as here:
        ends.callback(signal.alarm, 0)
        os.chmod(here, 0o755)  # servers run as another user
        yield here


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
        with scratch() as here:
            try:
                result, said = measure(kind, recorder, here)
            except Skip as why:
                number += 1
                print(f"ok {number} - {kind.name} # SKIP {why}")
                continue
            except (Failed, subprocess.TimeoutExpired) as why:
                line(False, f"{kind.name}: runs", str(why))
                continue
        said = "\n".join(said.splitlines()[-4:])
        ends = "\n".join(
            [said, "stacks that are not complete end (innermost of the last three first):"]
            + [f"{count:6} {end}" for end, count in result.ends[:8]]
        )
        shown = "\n".join(
            [said, "the stacks:"] + [f"{count:6} {stack}" for stack, count in result.stacks[:12]]
        )
        line(result.count >= SAMPLES_MIN, f"{kind.name}: {result.count} samples", said)
        line(
            result.complete >= kind.complete,
            f"{kind.name}: {result.complete:.1f} % of the stacks are complete",
            ends,
        )
        for name, true, leaf, whole in result.parts:
            for what, share in ((f"{name} has", leaf), (f"{name} with its callers has", whole)):
                good = abs(share - true) <= kind.points
                line(good, f"{kind.name}: {what} {share:.1f} %, in truth {true:.1f} %", shown)
                shown = shown if good else ""  # printed once
    print(f"1..{number}")


def table(kinds, recorders):
    version = subprocess.run(
        ["perf", "--version"], stdout=subprocess.PIPE, text=True, check=False
    ).stdout.strip()
    print(f"{os.uname().release}, {os.cpu_count()} CPUs; {version}\n")
    print("| kind | " + " | ".join(f"{recorder.name}" for recorder in recorders) + " |")
    print("|---|" + "---|" * len(recorders))
    for kind in kinds:
        cells = []
        for recorder in recorders:
            with scratch() as here:
                try:
                    result, _ = measure(kind, recorder, here)
                    error = f", {result.worst():.1f}" if result.parts else ""
                    cells.append(f"{result.complete:.1f} %{error}")
                except Skip as why:
                    cells.append(f"skipped: {why}")
                except (Failed, subprocess.TimeoutExpired) as why:
                    cells.append("could not")
                    print(f"{kind.name}: {recorder.name}: {why}", file=sys.stderr)
        print(f"| {kind.what} | " + " | ".join(cells) + " |", flush=True)


def chosen(names):
    unknown = set(names) - {kind.name for kind in KINDS}
    if unknown:
        sys.exit(f"truth.py: no such kind: {' '.join(sorted(unknown))}")
    return [kind for kind in KINDS if not names or kind.name in names]


def main(arguments):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that servers are stopped
    if arguments == ["--list"]:
        print("\n".join(kind.name for kind in KINDS))
        return
    program = os.path.abspath(arguments[0])
    tally = Recorder("tally", [program, "record"], [program, "script"])
    if arguments[1:2] == ["--table"]:
        perf = [
            Recorder(
                f"perf {' '.join(how)}",
                ["perf", "record", "-F", "999", *how],
                ["perf", "script", "--no-inline"],
            )
            for how in (["-g"], ["--call-graph", "dwarf"])
        ]
        table(chosen(arguments[2:]), [tally, *perf])
    else:
        test(chosen(arguments[1:]), tally)


if __name__ == "__main__":
    main(sys.argv[1:])
