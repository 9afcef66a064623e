#!/usr/bin/env python3
"""tally on large recordings, against perf in the same run, on the same files: `bench/large.py [--quick]`.

    --sizes 50 500 2000   megabytes
    --rows WORD …         rows whose name has one of the words
    --quick               50 MB alone, one run of each
    --folder FOLDER       where recordings are made and kept (else a temporary one)

Prints Markdown for docs/performance.md.  What is measured:

- CPU: user and system of the tool and of all that it starts, perf's addr2line among them (the bench adopts and waits for
  what perf leaves behind).  The least of several runs where a run is short: other work on the machine only adds.
- Memory: the peak of RssAnon, looked at every 3 ms.  Pages of mapped files are the page cache's.
- Files are read once before, so the disk is not measured.  Output goes to /dev/null.
- Answers: what both say is compared, apart from the timed runs.
"""
import argparse
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

root = pathlib.Path(__file__).resolve().parent.parent
tally = str(root / "build/tally")
built = root / "build/bench"
inlined_folder = root / "build/bench/inlined"
PR_SET_CHILD_SUBREAPER = 36
ENOUGH_MEMORY_FOR_PERF = 25  # bytes of memory of perf's default report per byte of the recording
LONG_S = 10

TRACEPOINTS = ("sched:sched_switch,sched:sched_wakeup,raw_syscalls:sys_enter,raw_syscalls:sys_exit,"
               "syscalls:sys_enter_openat,syscalls:sys_exit_openat,syscalls:sys_enter_read,syscalls:sys_exit_read,"
               "timer:hrtimer_start,timer:hrtimer_cancel,kmem:kmalloc,irq:softirq_entry")


class Cost:
    def __init__(self, cpu, wall, anonymous):
        self.cpu, self.wall, self.anonymous = cpu, wall, anonymous

    def __str__(self):
        return f"{seconds(self.cpu)}, {seconds(self.wall)}, {mebibytes(self.anonymous)}"


def seconds(value):
    return f"{value * 1000:.0f} ms" if value < 0.9995 else f"{value:.2f} s" if value < 20 else f"{value:.0f} s"


def mebibytes(value):
    return f"{value / 2**20:.0f} MiB" if value < 2**30 else f"{value / 2**30:.1f} GiB"


# ---- measuring ----------------------------------------------------------------------------------------------------

def watch(pid, peak, done):
    """Returns the peak of a process's anonymous memory, once it has ended."""
    try:
        with open(f"/proc/{pid}/status", "rb", buffering=0) as status:
            while not done.wait(0.003):
                found = re.search(rb"RssAnon:\s+(\d+)", os.pread(status.fileno(), 4096, 0))
                if found:
                    peak[0] = max(peak[0], int(found.group(1)) * 1024)
    except OSError:
        pass  # it has ended


def wait_for_orphans():
    """Waits for addr2line, which perf starts and leaves behind.  Returns its CPU seconds."""
    cpu = 0
    while True:
        try:
            _, _, usage = os.wait4(-1, 0)
            cpu += usage.ru_utime + usage.ru_stime
        except ChildProcessError:
            return cpu


def measure_once(command, environment):
    wait_for_orphans()  # those of the programs that compared answers
    start = time.monotonic()
    with open(os.devnull, "r+b") as null:
        process = subprocess.Popen(command, stdin=null, stdout=null, stderr=null, env=environment)
    peak, done = [0], threading.Event()
    watcher = threading.Thread(target=watch, args=(process.pid, peak, done))
    watcher.start()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    done.set()
    watcher.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu = usage.ru_utime + usage.ru_stime + wait_for_orphans()
    if process.returncode:
        raise SystemExit(f"bench: {' '.join(command)} ended with {process.returncode}")
    return Cost(cpu, wall, peak[0])


def measure(command, environment=None):
    """Returns the least of up to three runs; of one run if it takes long."""
    if not command:
        return None
    full = dict(os.environ, **(environment or {}))
    runs = [measure_once(command, full)]
    while len(runs) < arguments.repeat and sum(run.wall for run in runs) < LONG_S:
        runs.append(measure_once(command, full))
    return Cost(*(min(getattr(run, field) for run in runs) for field in ("cpu", "wall", "anonymous")))


def warm(path):
    with open(path, "rb") as file:
        while file.read(1 << 24):
            pass


# ---- recordings ---------------------------------------------------------------------------------------------------

def run_quietly(*command, **options):
    return subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=True, **options)


def inlined():
    """Returns the C++ program, which is built once."""
    program = inlined_folder / "inlined"
    if not program.exists():
        print("building the C++ program (some minutes of CPU, once)", file=sys.stderr)
        run_quietly(sys.executable, root / "bench/make_inlined.py", inlined_folder,
                    "--flags=-fno-omit-frame-pointer")
        run_quietly("ninja", "-C", inlined_folder)
    return program


def record_few(path):
    run_quietly(perf, "record", "-F", "5000", "-e", "cpu-clock", "-g", "--buildid-mmap", "-o", path,
                built / "bench_stacks", "3", "20", "2")


def record_many(path):
    run_quietly(perf, "record", "-F", "5000", "-e", "cpu-clock", "-g", "--buildid-mmap", "-o", path, inlined(), "3", "4")


def record_dwarf(path):
    run_quietly(perf, "record", "-F", "2000", "-e", "cpu-clock", "--call-graph", "dwarf", "-m", "16M", "-o", path,
                inlined(), "1", "2")


def record_tracepoints(path):
    run_quietly(perf, "record", "-a", "-m", "16M", "-e", TRACEPOINTS, "-o", path, "sh", "-c",
                'find /usr/include -name "*.h"; grep -rl nowhere /usr/include/linux; true')


KINDS = {  # name: how the small recording is made, and how it grows
    "few": (record_few, "stacks"),
    "many": (record_many, "stacks"),
    "dwarf": (record_dwarf, "repeat"),
    "tracepoints": (record_tracepoints, "repeat"),
}


def recording(kind, megabytes):
    """Returns the path of a recording of a kind and size, which has been read once."""
    record, way = KINDS[kind]
    small, path = folder / f"{kind}.data", folder / f"{kind}-{megabytes}.data"
    if not small.exists():
        record(small)
    if not path.exists():
        run_quietly(built / "large_recording", way, small, path, megabytes)
    warm(path)
    return str(path)


def forget(kind, megabytes):
    if not arguments.folder:
        (folder / f"{kind}-{megabytes}.data").unlink(missing_ok=True)


# ---- answers ------------------------------------------------------------------------------------------------------

def same_report(path, totals):
    """Compares the periods of every function, by tests/cli/compare_report.py."""
    said = []
    for what, option, fields, width in (("self", "--no-children", "overhead,period,comm,dso,sym", "0,0,16"),
                                        ("total", "--children", "overhead_children,overhead,period,comm,dso,sym",
                                         "0,0,0,16"))[:2 if totals else 1]:
        theirs, ours = folder / "perf.txt", folder / "tally.json"
        with open(theirs, "wb") as file:
            subprocess.run([perf, "report", "--stdio", "--no-group", "--no-inline", "-g", "none", "--percent-limit", "0",
                            "-t", "|", option, "-w", width, "-F", fields, "-i", path],
                           stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.DEVNULL, check=True)
        with open(ours, "wb") as file:
            subprocess.run([tally, "report", "-j", option, *no_inline("report"), "-i", path], stdin=subprocess.DEVNULL,
                           stdout=file, check=True)
        compared = subprocess.run([sys.executable, root / "tests/cli/compare_report.py", what, theirs, ours],
                                  capture_output=True, text=True)
        said.append(what if compared.returncode == 0 else
                    f"{what} **differs** ({(compared.stdout.strip().splitlines() or ['?'])[-1]})")
    differs = any("differs" in part for part in said)
    return "; ".join(said) if differs else "equal: " + ", ".join(said)


def same_text(theirs, ours):
    """Compares the outputs of two commands while they run."""
    with subprocess.Popen(theirs, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as left, \
            subprocess.Popen(ours, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as right:
        total = 0
        while True:
            a, b = left.stdout.read(1 << 20), right.stdout.read(1 << 20)
            if a != b:
                left.kill(), right.kill()
                same = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
                line = a.rfind(b"\n", 0, same) + 1
                return (f"text **differs** after {total + same} bytes: "
                        f"`{a[line:line + 80].decode(errors='replace').strip()}` / "
                        f"`{b[line:line + 80].decode(errors='replace').strip()}`").replace("\n", "⏎").replace("|", "¦")
            if not a:
                return f"equal: {total / 1e6:.0f} MB of text"
            total += len(a)


def same_stacks(theirs, ours, path):
    """The same for unwound stacks: differences must have a cause that tests/cli/compare_script.py knows."""
    texts = [folder / "perf.txt", folder / "tally.txt", folder / "records.txt"]
    for text, command in zip(texts, (theirs, ours, [tally, "script", "--records", "-i", path])):
        with open(text, "wb") as file:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.DEVNULL, check=True)
    compared = subprocess.run([sys.executable, root / "tests/cli/compare_script.py", *texts], capture_output=True,
                              text=True)
    last = (compared.stdout.strip().splitlines() or ["?"])[-1]
    counts = re.findall(r"(\S+) ([1-9]\d*)\b", last)
    return ("equal but for known causes: " if compared.returncode == 0 else "**differs**: ") + \
        ", ".join(f"{number} {name}" for name, number in counts)


def same_weight(path):
    """Compares the sum of all folded stacks with the recording's period, by a program of 30 lines."""
    folded = subprocess.run([tally, "fold", "-i", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    total = sum(int(line[line.rfind(b" ") + 1:]) for line in folded.stdout.splitlines())
    bare = subprocess.run([built / "bench_interning", path], capture_output=True, text=True, check=True).stdout
    expected = int(re.search(r"period (\d+)", bare).group(1))
    return f"equal: weight {total}" if total == expected else f"weight **differs**: {total}, not {expected}"


def no_inline(command):
    """Returns a command's option to leave inlined functions out, if it has one."""
    text = subprocess.run([tally, command, "--help"], capture_output=True, text=True).stdout
    return ["--no-inline"] if "--no-inline" in text else []


# ---- rows ---------------------------------------------------------------------------------------------------------

failed = 0
per_byte = {}  # work: {megabytes: seconds}


def verdict(holds):
    global failed
    failed += not holds
    return "met" if holds else "**missed**"


def print_row(work, size, theirs, ours, goals, answers):
    """Prints one line; `goals` are (text, holds)."""
    ratio = f"{theirs.cpu / ours.cpu:.1f}×, memory 1/{theirs.anonymous / max(ours.anonymous, 1):.1f}" if theirs else ""
    rate = f"{ours}, {size / ours.wall:.0f} MB/s" if size else f"{ours}"
    said = "; ".join(f"{text}: {verdict(holds)}" for text, holds in goals)
    print(f"| {work} | {theirs or ''} | {rate} | {ratio} | {said} | {answers} |", flush=True)


def at_least(theirs, ours, ratio, memory=None):
    goals = [(f"≥ {ratio}×", theirs.cpu / ours.cpu >= ratio)]
    return goals + ([(f"memory ≤ 1/{memory}", theirs.anonymous / max(ours.anonymous, 1) >= memory)] if memory else [])


def report_default(megabytes):
    path = recording("few", megabytes)
    available = int(re.search(r"MemAvailable:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1)) * 1024
    fits = available > ENOUGH_MEMORY_FOR_PERF * megabytes * 1e6
    theirs = measure([perf, "report", "--stdio", "--no-inline", "-i", path] if fits else None)
    ours = measure([tally, "report", "--stdio", "-g", *no_inline("report"), "-i", path])
    goals = at_least(theirs, ours, 60 if megabytes <= 50 else 100, 20) if theirs else []
    print_row(f"report, perf's default (call trees, self and total), {megabytes} MB", megabytes, theirs, ours, goals,
              same_report(path, True) if theirs else "not run: too little memory for perf")


def report_caller(megabytes, kind="few"):
    path = recording(kind, megabytes)
    theirs = measure([perf, "report", "--stdio", "--no-inline", "-g", "caller", "--no-children", "-i", path])
    ours = measure([tally, "report", "--stdio", "-g", "caller", "--no-children", *no_inline("report"), "-i", path])
    floor = measure([str(built / "bench_interning"), path])
    per_byte.setdefault(f"report -g caller, {kind}", {})[megabytes] = ours.cpu
    what = "a few functions" if kind == "few" else "1,200 call sites"
    print_row(f"report -g caller --no-children, {what}, {megabytes} MB", megabytes, theirs, ours,
              at_least(theirs, ours, 12, 10), same_report(path, False))
    print_row(f"… its floor: a bare interning loop, {megabytes} MB", megabytes, None, floor,
              [(f"tally ≤ 1.6 × the floor (is {ours.cpu / floor.cpu:.2f}, wall {ours.wall / floor.wall:.2f})",
                ours.cpu / floor.cpu <= 1.6)], "")


def report_caller_many(megabytes):
    report_caller(megabytes, "many")


def report_inlines(megabytes):
    path = recording("many", megabytes)
    if not no_inline("report"):
        print(f"| report -g caller with inlines, {megabytes} MB | | not there yet | | | |")
        return
    with tempfile.TemporaryDirectory(dir=folder) as caches:
        cold = measure_once([tally, "report", "--stdio", "-g", "caller", "--no-children", "-i", path],
                            dict(os.environ, XDG_CACHE_HOME=caches))
        again = measure([tally, "report", "--stdio", "-g", "caller", "--no-children", "-i", path],
                        {"XDG_CACHE_HOME": caches})
    print_row(f"report -g caller with inlines, cold, {megabytes} MB", megabytes, None, cold, [], "")
    print_row(f"… with a warm cache, {megabytes} MB", megabytes, None, again, [], "")


def report_flat(megabytes):
    path = recording("few", megabytes)
    theirs = measure([perf, "report", "--stdio", "-g", "none", "--no-children", "-i", path])
    ours = measure([tally, "report", "--stdio", "--no-children", "-i", path])
    print_row(f"report without call trees, {megabytes} MB", megabytes, theirs, ours, at_least(theirs, ours, 4),
              same_report(path, False))


def script_inlines(megabytes):
    path = recording("dwarf", megabytes)
    theirs = measure_once([perf, "script", "-i", path], dict(os.environ))
    with tempfile.TemporaryDirectory(dir=folder) as caches:
        cold = measure_once([tally, "script", "-i", path], dict(os.environ, XDG_CACHE_HOME=caches))
        again = measure([tally, "script", "-i", path], {"XDG_CACHE_HOME": caches})
    answers = same_stacks([perf, "script", "-i", path], [tally, "script", "-i", path], path) if megabytes <= 50 else ""
    work = f"script with inlines, stack copies, {megabytes} MB"
    print_row(f"{work}, cold", megabytes, theirs, cold, at_least(theirs, cold, 50), answers)
    print_row(f"{work}, warm cache", megabytes, theirs, again, at_least(theirs, again, 200), "")


def script_unwound(megabytes):
    path = recording("dwarf", megabytes)
    theirs, ours = [perf, "script", "--no-inline", "-i", path], [tally, "script", "--no-inline", "-i", path]
    cost = measure(theirs), measure(ours)
    print_row(f"script --no-inline, stack copies, {megabytes} MB", megabytes, *cost, [], same_stacks(theirs, ours, path))


def script_default(megabytes):
    path = recording("few", megabytes)
    theirs, ours = [perf, "script", "--no-inline", "-i", path], [tally, "script", "--no-inline", "-i", path]
    both = megabytes <= 500  # larger ones only show the growth
    cost = measure(theirs if both else None), measure(ours)
    per_byte.setdefault("script", {})[megabytes] = cost[1].cpu
    print_row(f"script, default fields, {megabytes} MB", megabytes, *cost, at_least(*cost, 15) if both else [],
              same_text(theirs, ours) if both else "")


def script_tracepoints(megabytes):
    path = recording("tracepoints", megabytes)
    theirs, ours = [perf, "script", "-i", path], [tally, "script", "-i", path]
    cost = measure(theirs), measure(ours)
    print_row(f"script, tracepoints, {megabytes} MB", megabytes, *cost, at_least(*cost, 8), same_text(theirs, ours))


def flame_graph(megabytes):
    path = recording("few", megabytes)
    ours = measure([tally, "flamegraph", "-o", str(folder / "out.svg"), "-i", path])
    per_byte.setdefault("flame graph", {})[megabytes] = ours.cpu
    goals = [("≤ 0.8 s wall", ours.wall <= 0.8), ("≤ 1.2 s CPU (the fastest folder 41, the classic scripts 145, as "
             "measured elsewhere)", ours.cpu <= 1.2)] if megabytes == 500 else []
    print_row(f"flame graph, {megabytes} MB", megabytes, None, ours, goals, same_weight(path))


ROWS = (  # work, sizes, recording, function
    ("report default", (50, 500), "few", report_default),
    ("report caller", (50, 500, 2000), "few", report_caller),
    ("report flat", (50, 500), "few", report_flat),
    ("script default", (50, 500, 2000), "few", script_default),
    ("flame graph", (50, 500, 2000), "few", flame_graph),
    ("report caller many", (50, 500), "many", report_caller_many),
    ("report inlines", (50, 500), "many", report_inlines),
    ("script unwound", (50, 500), "dwarf", script_unwound),
    ("script inlines", (50, 500), "dwarf", script_inlines),
    ("script tracepoints", (50, 500), "tracepoints", script_tracepoints),
)


def others():
    """Runs benches of one part, which have goals of their own, and prints their output."""
    dwarf = str(folder / "dwarf.data")
    if wanted("unwinding") and (built / "bench_unwind").exists():
        if not os.path.exists(dwarf):
            record_dwarf(dwarf)
        print("\nDWARF unwinding (goal: ≥ 15 million frames a second warm, on one core):\n\n```", flush=True)
        subprocess.run([built / "bench_unwind", dwarf], stdin=subprocess.DEVNULL)
        print("```", flush=True)
    if wanted("addresses") and (built / "bench_lines").exists():
        print("\n18,000 addresses with inlines (goal: ≤ 0.8 s cold, ≤ 20 ms cached):\n\n```", flush=True)
        subprocess.run([built / "bench_lines", inlined()], stdin=subprocess.DEVNULL)
        print("```", flush=True)
    if wanted("recorder") and (root / "bench/recorder").exists():
        print("\nRecording:\n", flush=True)
        subprocess.run([root / "bench/recorder"], stdin=subprocess.DEVNULL)


def wanted(name):
    return not arguments.rows or any(word in name for word in arguments.rows)


def print_growth():
    print("\nTime grows with the file (CPU nanoseconds a byte):\n\n| work | " +
          " | ".join(f"{size} MB" for size in arguments.sizes) + " |\n|---" + "|---" * len(arguments.sizes) + "|")
    for work, times in per_byte.items():
        cells = [f"{times[size] * 1e3 / size:.2f}" if size in times else "" for size in arguments.sizes]
        print(f"| {work} | " + " | ".join(cells) + " |", flush=True)


def main():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    version = subprocess.run([perf, "--version"], capture_output=True, text=True).stdout.strip()
    print(f"`make bench-large` on {os.uname().release}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f} when it "
          f"began; {version}\n")
    print("| work | perf: CPU, wall, memory | tally: CPU, wall, memory, MB/s | CPU, memory | goals | answers |")
    print("|---|---|---|---|---|---|", flush=True)
    for kind in KINDS:
        for size in arguments.sizes:
            rows = [row for row in ROWS if row[2] == kind and size in row[1] and wanted(row[0])]
            for row in rows:
                row[3](size)
            if rows:
                forget(kind, size)
    if len(arguments.sizes) > 1:
        print_growth()
    others()
    print(f"\n{failed} goals missed" if failed else "\nall goals met")


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--sizes", type=int, nargs="+", default=[50, 500, 2000])
parser.add_argument("--rows", nargs="+", default=[])
parser.add_argument("--quick", action="store_true")
parser.add_argument("--repeat", type=int, default=3)
parser.add_argument("--folder", type=pathlib.Path)
arguments = parser.parse_args()
if arguments.quick:
    arguments.sizes, arguments.repeat = [50], 1
perf = shutil.which("perf") or sys.exit("bench: perf is not installed (Debian: linux-perf)")
temporary = None if arguments.folder else tempfile.TemporaryDirectory(
    prefix="tally-bench-", dir=os.environ.get("TMPDIR", "/var/tmp"))
folder = arguments.folder or pathlib.Path(temporary.name)
folder.mkdir(parents=True, exist_ok=True)
main()
