#!/usr/bin/env python3
"""Each view accepts each event's name, as tally itself prints it.

    event_names.py RECORDING...        $TALLY is the binary; prints TAP

A name that is accepted selects samples, or there are none that the view could show.  It is never
unknown.
"""
import json
import os
import subprocess
import sys
import tempfile

TALLY = os.environ["TALLY"]


def run(*arguments):
    done = subprocess.run([TALLY, *arguments], capture_output=True, timeout=120, check=False, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def views(path, folder):
    """Returns the options of each view; the event's name follows them."""
    out = os.path.join(folder, "out")
    return [["report", "--stdio", "-e"], ["report", "-j", "-e"], ["script", "-e"], ["script", "-j", "-e"], ["script", "--csv", "-e"],
            ["annotate", "--stdio", "-i", path, "-e"], ["annotate", "-j", "-i", path, "-e"], ["timeline", "--stdio", "-e"], ["timeline", "-o", out + ".json", "-e"],
            ["fold", "-e"], ["flamegraph", "-o", out + ".html", "-e"], ["export", "-f", "speedscope", "-o", out + ".s", "-e"],
            ["export", "-f", "pprof", "-o", out + ".p", "-e"]]


def printed_names(path):
    """Returns the names that views print, with the number of samples of each by script."""
    names = {}
    _, out, _ = run("script", "-j", "-F", "event", path)
    for line in out.splitlines():
        name = json.loads(line)["event"]
        names[name] = names.get(name, 0) + 1
    status, out, _ = run("report", "-j", path)
    if not status:
        for event in json.loads(out)["events"]:
            names.setdefault(event["event"], 0)
    _, out, _ = run("script", "-F", "event", path)
    for line in out.splitlines():
        if line.rstrip().endswith(":") and not line.startswith("\t"):
            names.setdefault(line.strip()[:-1], 0)
    return names


def problems_of(path, folder):
    names = printed_names(path)
    if not names and run("script", path)[1].strip():
        yield "no view prints a name"
    for name, count in names.items():
        for view in views(path, folder) + [["diff"]]:
            arguments = ["diff", "--event", name, path, path] if view == ["diff"] else [*view, name] + ([path] if view[0] != "annotate" else [])
            status, out, err = run(*arguments)
            if "has no event" in err:
                yield f"{' '.join(view)}: {name!r} is refused: {err.strip()}"
            elif status not in (0, 1):
                yield f"{' '.join(view)} {name!r}: status {status}: {err.strip()}"
            elif view == ["script", "-j", "-e"] and count and len(out.splitlines()) < count:
                yield f"script has {len(out.splitlines())} of {count} samples of {name!r}"


def main():
    with tempfile.TemporaryDirectory() as folder:
        for number, path in enumerate(sys.argv[1:], 1):
            problems = list(problems_of(path, folder))
            print(f"{'not ok' if problems else 'ok'} {number} - {os.path.basename(path)}: each view accepts the events' names")
            for problem in problems[:5]:
                print("#", problem[:300].encode("ascii", "backslashreplace").decode())
    print(f"1..{len(sys.argv) - 1}")


main()
