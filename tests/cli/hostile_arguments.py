#!/usr/bin/env python3
"""No command's output or message gives on what an argument, a file's name or a text may try.

    hostile_arguments.py        $TALLY is the binary; prints TAP; works in the current folder
"""
import os
import re
import shutil
import subprocess

from hostile_names import TALLY, is_plain, text_problems

NAME = "a\nFORGED\x1b]0;FORGED\a\u009b1m\u202eDEGROF\u2028FORGED\udc9b\udcff"
OTHER = NAME.replace("\n", "\r")


def commands(recording, counts):
    """Yields lists of arguments; those before the first None are tried as they are."""
    program = "./" + NAME
    for target in [["true"], [program], ["./none" + NAME]]:
        yield ["stat", "-e", "task-clock", *target]
    yield ["stat", "-e", f"task-clock/name={OTHER}/", "true"]
    yield ["stat", "-x,", "-e", "task-clock", program]
    yield ["stat", "-j", "-e", "task-clock", "-o", counts, program]
    yield ["stat", "-e", NAME, "true"]
    yield ["stat", "-G", NAME, "-e", "task-clock", "-a", "true"]
    yield ["stat", "--control", "fifo:" + NAME, "-e", "task-clock", "true"]
    yield ["stat", "-o", "none" + NAME + "/a", "-e", "task-clock", "true"]
    yield ["stat", "--filter", NAME, "-e", "sched:sched_switch", "true"]
    yield ["stat", "-C", NAME, "-e", "task-clock"]
    yield ["record", "-e", "cpu-clock", "-F", "999", "-o", recording, program]
    yield ["record", "-e", "cpu-clock", "-o", "none" + NAME + "/a", "true"]
    yield ["record", "-e", "cpu-clock", "-o", "x", "./none" + NAME]
    for option in "-e", "-p", "-u", "-t", "-G", "-C", "-F", "-c", "--call-graph", "--switch-output=" + NAME:
        yield ["record", *([option] if "=" in option else [option, NAME]), "-o", "x", "true"]
    yield ["record", "--filter", NAME, "-e", "sched:sched_switch", "-o", "x", "true"]
    for option in ("--comm", "--dso", "--sort", "-S", "--time", "--pid", "-C", "--vmlinux", "--symfs", "--" + OTHER):
        yield ["report", "--stdio", option, NAME, "-i", recording]
    yield ["report", "--stdio", "-i", "none" + NAME]
    yield ["report", "--stdio", "-i", program]
    yield ["report", "--stdio", "-i", recording]
    yield ["report", "--stdio", "--header", "-i", recording]
    yield ["script", "-F", NAME, recording]
    yield ["script", recording]
    yield ["annotate", "--stdio", "-i", recording, NAME]
    yield ["annotate", "-i", recording, "-o", NAME + ".html"]
    yield ["export", "-f", NAME, recording]
    yield ["export", "-f", "pprof", "-o", NAME + ".p", recording]
    yield ["timeline", "--stdio", "--time", NAME, recording]
    yield ["timeline", "-o", NAME + ".json", recording]
    yield ["flamegraph", "-o", NAME + ".svg", recording]
    yield ["flamegraph", "-o", recording, recording]
    yield ["flamegraph", "--title", NAME, "-o", "t.html", recording]
    yield ["diff", recording, recording]
    yield ["diff", "--markdown", recording, recording]
    yield ["diff", "--fail-if", NAME + " > 1", recording, recording]
    yield ["diff", recording, "none" + NAME]
    yield ["pack", recording]
    yield ["pack", "none" + NAME]
    yield ["compare", counts, counts]
    yield ["compare", "--markdown", counts, counts]
    yield ["compare", "--fail-if", NAME + " > 1%", counts, counts]
    yield ["compare", counts, recording]
    yield ["compare", counts, "none" + NAME]
    yield ["fold", "folded"]
    yield ["fold", "folded" + NAME]
    yield ["fold", "script" + NAME]
    yield ["flamegraph", "-o", "f.svg", "folded" + NAME]
    yield ["sim", "none" + NAME]
    yield ["sim", "scenario" + NAME]
    yield ["list", NAME]
    yield ["cache", NAME]
    yield ["cache"]
    yield ["completion", NAME]
    yield ["help", NAME]
    yield [NAME]
    yield ["report", "--" + NAME]
    yield ["stat", "--provider", NAME, "true"]
    yield ["top", "--stdio", "-e", NAME]
    yield ["top", "--stdio", "-p", NAME]


def main():
    shutil.copy("/bin/true", NAME)
    raw = NAME.encode("utf-8", "surrogateescape").replace(b"\n", b"")
    for name in "folded", "folded" + NAME:
        with open(name, "wb") as out:
            out.write(b"p" + raw + b";f" + raw + b";g 10\nnot a line" + raw + b"\n")
    with open("script" + NAME, "wb") as out:
        out.write(b"c" + raw + b" 7 [000] 1.0: 5 cycles" + raw + b":\n\t401000 f" + raw + b"+0x1 (/o" + raw + b")\n\n")
    with open("scenario" + NAME, "wb") as out:
        out.write(b'say "' + raw + b'"\n' + raw + b"\n")
    environment = {**os.environ, "XDG_CACHE_HOME": os.path.abspath("cache" + NAME)}
    os.mkdir("cache" + NAME)
    number = 0
    for arguments in commands("recording" + NAME, "counts" + NAME):
        done = subprocess.run([TALLY, *arguments], capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL, env=environment)
        problems = text_problems("messages", done.stderr) + text_problems("output", done.stdout.replace(b"\r\n", b"\n"))
        if done.returncode not in (0, 1, 2, 126, 127):
            problems.append(f"status {done.returncode}")
        if re.search(rb"Sanitizer|runtime error:", done.stderr):
            problems.append("a sanitizer's message")
        if not done.stdout and not done.stderr and "-o" not in arguments:
            problems.append("there is neither output nor a message")
        number += 1
        what = "".join(c if is_plain(c) else "?" for c in " ".join(arguments))[:100]
        print(f"{'not ok' if problems else 'ok'} {number} - {what.encode('ascii', 'replace').decode()}")
        for problem in problems:
            print("#", problem.encode("ascii", "backslashreplace").decode())
    print(f"1..{number}")


main()
