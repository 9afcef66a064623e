#!/usr/bin/env python3
"""`tally perf stat` prints what perf stat prints: the command lines of stat.tsv with both, line by line; and programs
and scripts that read it find what they look for.  TAP; $TALLY and $PERF are the binaries."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import lines
from lines import check

# The differences that stay, and the lines that perf alone prints.
DIFFERENCES = {
    "verbose": r"(Using CPUID|Control descriptor|cs: \d).*\n",
    "delay": r"Events (disabled|enabled)\n",
    "group": r"(?!)",  # without a PMU perf refuses to run: "The cycles event is not supported."
    "order": r"(?!)",  # perf's rows are in the order of the tracepoints' folder, tally's in that of their names
}


def both(command, folder, sleeper):
    """What perf and tally print for a row: the texts, and the exit statuses."""
    texts, statuses = {}, {}
    for program in "perf", "tally":
        file = folder / "counts"
        file.unlink(missing_ok=True)
        words = lines.words_of(command, {"SELF": str(sleeper.pid), "FILE": str(file)})
        statuses[program], out, err = lines.run(program, ["stat", *words], folder)
        texts[program] = out + err + (file.read_text() if file.exists() else "")
    return texts, statuses


def shape(text):
    text = re.sub(r"# started on .*", "# started on", text)
    text = re.sub(r"  \([\d.]+%\)$", "", text, flags=re.M)  # a count that was scaled a little
    text = re.sub(r"\+- [\d.]+ seconds", "+- N seconds", text)  # as many digits as the error needs
    return lines.shape(text)


def rows_of_intervals(text):
    """Intervals: the set of different lines.  Which of them had events, and how many there were, is chance."""
    return "\n".join(sorted({line for line in text.splitlines() if "<not counted>" not in line}))


def compare(command, named, folder, sleeper):
    for _ in range(3):  # a count of 0 has no rate, and the like
        texts, statuses = both(command, folder, sleeper)
        if named:
            texts["perf"] = re.sub(DIFFERENCES[named], "", texts["perf"])
            if "event is not supported" in texts["perf"]:
                check(f"perf stat {command}", named == "group" and texts["tally"].count("<not supported>") == 2, texts)
                return
        shapes = {program: shape(text) for program, text in texts.items()}
        if named == "order":
            shapes = {program: "\n".join(sorted(text.splitlines())) for program, text in shapes.items()}
        if "-I" in command or "interval" in command:
            shapes = {program: rows_of_intervals(text) for program, text in shapes.items()}
        why = lines.difference(shapes["perf"], shapes["tally"])
        if not why and statuses["perf"] == statuses["tally"]:
            break
    check(f"perf stat {command}", not why and statuses["perf"] == statuses["tally"], why or statuses)


def tally(folder, *arguments, **more):
    return lines.run("tally", ["stat", *arguments], folder, **more)


def readers(folder):
    """Rules by which scripts read perf stat."""
    _, _, err = tally(folder, "-e", "task-clock,cs,faults", "--", "sleep", "0.02")
    check("a script finds the seconds", re.search(r"([\d.]+)\s+seconds time elapsed", err), err)
    check("and those of user and sys", re.search(r"([\d.]+) seconds user\n +([\d.]+) seconds sys", err), err)
    # JMH's LinuxPerfNormProfiler and LinuxPerfProfiler
    _, _, err = tally(folder, "--log-fd", "2", "-x,", "-e", "task-clock,cs", "--", "true")
    split = [line.split(",") for line in err.splitlines() if not line.startswith("#")]
    check("JMH's rules: value and event by commas", [row[2] for row in split] == ["task-clock", "cs"] and
          all(float(row[0]) >= 0 for row in split), err)
    _, _, err = tally(folder, "-I", "20", "-x,", "-e", "task-clock", "--", "sleep", "0.05")
    check("JMH's rules: time, value, unit and event of intervals",
          err and all(re.fullmatch(r" +[\d.]+,([\d.]+|<not counted>),msec,task-clock,.*", line) for line in err.splitlines()), err)
    # pmu-tools' interval-normalize: the time, then the value, then the event
    times = [float(line.split(",")[0]) for line in err.splitlines()]
    check("a reader of intervals gets rising times", len(times) > 1 and times == sorted(times), err)
    _, _, err = tally(folder, "-j", "-e", "task-clock,cs", "--", "true")
    documents = [json.loads(line) for line in err.splitlines()]
    check("JSON: a document for each event", [d["event"] for d in documents] == ["task-clock", "cs"] and
          all(float(d["counter-value"]) >= 0 for d in documents), err)
    _, _, err = tally(folder, "-e", "faults", "--", "python3", "-c", "x = bytearray(20000000)", env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
    count = [int(found[0]) for found in re.findall(r"^\s*(\d*)\s+(faults)", err, re.M)]
    check("LC_ALL=C: a count is one number", count and count[0] > 4000, err)
    _, _, err = tally(folder, "-r", "5", "-e", "task-clock", "--", "true")
    check("the spread over runs", re.search(r"\+-\s*[0-9.]+%", err), err)
    _, _, err = tally(folder, "-e", "cs", "-I", "20", "--", "sleep", "0.05")
    words = [line.split()[:2] for line in err.splitlines() if not line.startswith("#")]
    check("a script leaves out lines that begin with #", words and all(float(w[0]) > 0 for w in words), err)


def by_name(folder):
    """A link of the name perf is enough."""
    link = folder / "perf"
    link.symlink_to(lines.TALLY)
    done = subprocess.run([link, "stat", "-e", "cs", "true"], capture_output=True, text=True, check=False)
    check("started by the name perf", "Performance counter stats for 'true':" in done.stderr, done.stderr)
    done = subprocess.run([link, "--version"], capture_output=True, text=True, check=False)
    check("perf --version", re.match(r"perf version \d+\.\d+", done.stdout), done.stdout)
    done = subprocess.run([link, "nosuch"], capture_output=True, text=True, check=False)
    check("a command that perf mode lacks is refused", done.returncode == 1 and "is not a perf-command" in done.stderr, done.stderr)


def small_commands(folder):
    """Commands that have little to do."""
    recorded = subprocess.run([lines.PERF, "record", "-q", "-o", "whole", "true"], cwd=folder, capture_output=True, check=False)
    subprocess.run([lines.PERF, "record", "-q", "-B", "-o", "without", "true"], cwd=folder, capture_output=True, check=False)
    if not recorded.returncode:
        def inject(*arguments):
            return lines.run("tally", ["inject", *arguments], folder)
        status, _, err = inject("-b", "-i", "whole", "-o", "copy")
        check("inject -b copies a recording with build-ids", status == 0 and
              (folder / "copy").read_bytes() == (folder / "whole").read_bytes(), err)
        status, _, err = inject("-b", "-i", "without", "-o", "other")
        check("and refuses one without", status == 1 and "no build-ids" in err and not (folder / "other").exists(), err)
        status, _, err = inject("-i", "whole", "-o", "whole")
        check("inject doesn't write over its input", status == 2 and (folder / "whole").stat().st_size, err)
    status, out, err = lines.run("tally", ["config", "-l"], folder)
    check("config -l", status == 0 and not out + err, out + err)


def main():
    with tempfile.TemporaryDirectory() as place, subprocess.Popen(["sleep", "600"]) as sleeper:
        folder = pathlib.Path(place)
        for command, named in lines.rows(pathlib.Path(__file__).with_name("stat.tsv")):
            compare(command, named, folder, sleeper)
        readers(folder)
        by_name(folder)
        small_commands(folder)
        sleeper.kill()
    return lines.finish()


sys.exit(main())
