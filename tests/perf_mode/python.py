#!/usr/bin/env python3
"""Python scripts that were written for perf get from `tally perf script -s` what perf gives them: perf's own scripts
print the same, and so does handlers.py, which prints what it is given.  TAP; $TALLY and $PERF are the binaries."""
import pathlib
import subprocess
import sys
import tempfile

import lines
from lines import check

SCRIPTS = pathlib.Path("/usr/lib/perf-core/scripts/python")


def record(folder, name, *arguments):
    done = subprocess.run([lines.PERF, "record", "-q", "-o", name, *arguments], cwd=folder, capture_output=True, check=False)
    return done.returncode == 0 and (folder / name).exists()


def same(folder, recording, script, *arguments):
    texts = {program: lines.run(program, ["script", "-i", recording, "-s", script, *arguments], folder)
             for program in ("perf", "tally")}
    why = lines.difference(texts["perf"][1], texts["tally"][1])
    name = f"{pathlib.Path(script).name} of {recording}: {len(texts['perf'][1].splitlines())} lines"
    check(name, not why and texts["perf"][1] and texts["tally"][0] == 0, why + texts["tally"][2])


def by_name(folder):
    status, out, err = lines.run("tally", ["script", "-l"], folder)
    check("the list of perf's scripts", status == 0 and "syscall-counts" in out, out + err)
    status, out, err = lines.run("tally", ["script", "record", "syscall-counts", "-o", "perf.data", "true"], folder)
    check("record by a script's name", (folder / "perf.data").exists(), out + err)
    status, out, err = lines.run("tally", ["script", "report", "syscall-counts"], folder)
    check("report by its name", status == 0 and "syscall events:" in out, out + err)
    status, out, err = lines.run("tally", ["script", "syscall-counts", "true"], folder)
    check("both at once", status == 0 and "syscall events:" in out, out + err)
    status, out, err = lines.run("tally", ["script", "nosuch"], folder)
    check("a name that is none is refused", status != 0 and "there is no script 'nosuch'" in err, out + err)


def endings(folder):
    for name, text, wanted in (("ends.py", "import sys\ndef trace_begin(): sys.exit(7)\n", 7),
                               ("fails.py", "def process_event(about): raise KeyError\n", 1),
                               ("wrong.py", "def (\n", 1)):
        (folder / name).write_text(text)
        status, out, err = lines.run("tally", ["script", "-i", "clock", "-s", name], folder)
        check(f"exit status of {name}", status == wanted, (status, out, err))


def main():
    if not SCRIPTS.exists():
        print("1..0 # SKIP perf's scripts are not installed")
        return 0
    handlers = str(pathlib.Path(__file__).with_name("handlers.py"))
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        work = [sys.executable, "-c", "print(sum(i * i for i in range(1000000)))"]
        if not record(folder, "calls", "-e", "raw_syscalls:sys_enter,sched:sched_switch", "ls", "/usr/bin"):
            print("1..0 # SKIP tracepoints can't be recorded here")
            return 0
        record(folder, "clock", "-e", "cpu-clock", "--", *work)
        record(folder, "chains", "-g", "-e", "page-faults", "-c", "1", "--", "true")
        record(folder, "data", "-d", "-e", "page-faults", "-c", "1", "--", *work)
        record(folder, "opened", "-e", "syscalls:sys_enter_openat,syscalls:sys_exit_openat", "--", *work)
        record(folder, "woken", "-a", "-e", "sched:sched_wakeup,irq:softirq_entry,timer:hrtimer_start", "sleep", "0.1")
        same(folder, "calls", str(SCRIPTS / "syscall-counts.py"))
        same(folder, "calls", str(SCRIPTS / "syscall-counts.py"), "ls")
        same(folder, "calls", str(SCRIPTS / "syscall-counts-by-pid.py"))
        same(folder, "clock", str(SCRIPTS / "stackcollapse.py"))
        for recording in ("calls", "clock", "chains", "data", "opened", "woken"):
            same(folder, recording, handlers)
        by_name(folder)
        endings(folder)
    return lines.finish()


sys.exit(main())
