#!/usr/bin/env python3
"""perf mode's script, record, evlist, buildid-list, kallsyms and list: the command lines of script.tsv with perf and with
tally, on recordings by perf and by tally of real programs, line by line; and programs that read them.  TAP; $TALLY and
$PERF are the binaries."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import lines
from lines import check, skip

# The differences that stay.  A function gets what perf and what tally printed, and returns whether both are right.
FRAME = re.compile(r"\t *([0-9a-f]+) ?(.*)")


def callers_alike(perf, tally):
    """Stacks: the same samples and addresses.  tally looks up the instruction before a return address, which is the
    call itself, so it names the caller, its line and its inlined functions where perf names the code behind it; the
    names differ only of frames that are return addresses, and rarely."""
    texts = [[line for line in text.splitlines() if "(inlined)" not in line] for text in (perf, tally)]
    different, frames = 0, 0
    if len(texts[0]) != len(texts[1]):
        return False
    for ours, theirs in zip(*texts):
        found = FRAME.match(ours), FRAME.match(theirs)
        frames += bool(found[0])
        if ours == theirs:
            continue
        if not (found[0] and found[1]) or found[0][1] != found[1][1]:
            return False
        different += 1
    return different <= 2 + frames / 50


def without(pattern):
    """perf alone prints these lines."""
    return lambda perf, tally: re.sub(pattern, "", perf, flags=re.M) == tally


def without_names(text):
    """Sorted lines without the names of tasks in switches.  A switch to a task whose creation was not recorded: perf
    has no name yet.  Records of one time, on two CPUs, have no order."""
    return sorted(re.sub(r"^ *\S+( +\d+ \[.*PERF_RECORD_SWITCH)", r"\1", line) for line in text.splitlines())


def without_rounds(dump):
    """A dump's blocks, sorted, without those of the ends of rounds, and with callers' names left out."""
    blocks = [block for block in dump.split("\n\n") if not re.search(r"FINISHED_ROUND|: event: 68\n", block)]
    return sorted(re.sub(r"^(\t *[0-9a-f]+) .*", r"\1", block, flags=re.M) for block in blocks)


DIFFERENCES = {
    "callers": callers_alike,
    # perf gives up the order of time, tally doesn't, and leaves out the ends of rounds
    "rounds": lambda perf, tally: sorted(re.sub(r"PERF_RECORD_FINISHED_ROUND\n", "", perf).splitlines()) == sorted(tally.splitlines()),
    # the same of -D, where a round has a block of lines
    "dump": lambda perf, tally: without_rounds(perf) == without_rounds(tally),
    "switches": lambda perf, tally: without_names(perf) == without_names(tally),
    "sdt": without(r".*\[SDT event\]\n"),  # tally lists no probes of perf's cache
    "metrics": lambda perf, tally: re.sub(r".*\[SDT event\]\n", "", perf).split("\n\nMetric")[0].rstrip() == tally.rstrip(),
}


PROGRAMS = {
    "LEAVES": ["-e", "cpu-clock", "-F", "997", "--", "python3", "-c", "print(sum(i * i for i in range(600000)))"],
    "STACKS": ["-g", "-e", "cpu-clock", "-F", "997", "--", "xz", "-1", "-k", "-c", lines.TALLY],
    "TRACE": ["-e", "sched:sched_process_exec,sched:sched_switch", "-e", "cs", "-c", "1", "--", "sleep", "0.05"],
    "WHOLE": ["-a", "-e", "{cs:k,page-faults:k},sched:sched_waking,cpu-clock:k", "--switch-events", "--", "gcc", "-E", "-"],
}


def record(program, name, folder):
    """Records into a file.  Returns its path, or None where this user may not."""
    data = folder / f"{name}-{program}.data"
    status, _, err = lines.run(program, ["record", "-o", str(data), *PROGRAMS[name]], folder)
    if status or not data.exists() or not data.stat().st_size:
        return None, err
    return data, err


def compare(command, named, places, folder):
    words = lines.words_of(command, places)
    texts = {}
    for program in "perf", "tally":
        status, out, err = lines.run(program, words, folder)
        texts[program] = status == 0, out
        if status:
            texts[program] = False, ""
    if "@plt" in texts["perf"][1]:  # perf has no names for the slots of a .plt.sec, tally has those of their functions
        texts = {program: (done, re.sub(r"[\w.]*@plt\b", "@plt", text)) for program, (done, text) in texts.items()}
    # code in memory: perf has its offset in the file, tally its address
    texts = {program: (done, re.sub(r"[0-9a-f]+ [^\n()]*(?=\((?:/memfd:|/tmp/perf-\d+\.map))", "", text))
             for program, (done, text) in texts.items()}
    if named == "refused":
        check(f"perf {command}: both refuse it", not texts["perf"][0] and not texts["tally"][0], err)
        return
    is_right = texts["tally"][0] and texts["perf"] == texts["tally"]
    if not is_right and "WHOLE" in command:  # records of one time, on two CPUs, have no order
        is_right = sorted(texts["perf"][1].splitlines()) == sorted(texts["tally"][1].splitlines())
    if not is_right and named:
        is_right = texts["perf"][0] == texts["tally"][0] and DIFFERENCES[named](texts["perf"][1], texts["tally"][1])
    check(f"perf {command}", is_right, f"{texts['perf'][0]} {texts['tally'][0]} {err}\n" +
          lines.difference(texts["perf"][1], texts["tally"][1]))


def by_lists(folder):
    recordings = {name: record("perf", name, folder)[0] for name in PROGRAMS}
    places = {name: str(data) for name, data in recordings.items()}
    places["OBJECT"] = lines.TALLY
    if recordings["LEAVES"]:
        _, out, _ = lines.run("perf", ["script", "-i", places["LEAVES"], "-F", "pid"], folder)
        places["PID"] = out.split()[0]
    for command, named in lines.rows(pathlib.Path(__file__).with_name("script.tsv")):
        missing = [name for name, data in recordings.items() if name in command.split() and not data]
        if missing:
            skip(f"perf {command}", f"perf can't record {missing[0]} here")
        else:
            compare(command, named, places, folder)


def by_recordings(folder):
    """perf and tally print the same of tally's recordings."""
    for name in PROGRAMS:
        data, err = record("tally", name, folder)
        if not data:
            skip(f"tally perf record: {name}", "this user may not record it: " + err.splitlines()[0])
            continue
        check(f"{name}: the last lines are perf's",
              re.search(r"^\[ perf record: Woken up \d+ times to write data \]\n"
                        r"\[ perf record: Captured and wrote \d+\.\d{3} MB \S+( \(\d+ samples\))? \]\n\Z", err, re.M), err)
        for command in "script", "script -G", "evlist -v", "buildid-list", "script --show-mmap-events":
            named = "callers" if name == "STACKS" and command != "script -G" else ""
            compare(f"{command} --no-inline -i {data}" if command.startswith("script") else f"{command} -i {data}",
                    named, {}, folder)


def habits(folder):
    """perf record's: names of files, what is recorded, and the options' forms."""
    def tally(*words):
        # not into a pipe: there perf record writes to standard output
        done = subprocess.run([lines.TALLY, "perf", "record", *words], cwd=folder, text=True, errors="replace", check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        return done.returncode, "", done.stderr

    status, _, err = tally("-e", "cpu-clock", "true")
    if status:
        return skip("habits of perf record", "this user may not record: " + err.splitlines()[0])
    tally("-e", "cpu-clock", "--", "true")
    check("perf.data, and the one before as perf.data.old", (folder / "perf.data").exists() and (folder / "perf.data.old").exists())
    _, out, _ = lines.run("perf", ["script", "-D", "-i", "perf.data"], folder)
    check("not compressed", "PERF_RECORD_SAMPLE" in out and "PERF_RECORD_COMPRESSED" not in out)
    _, out, _ = lines.run("perf", ["evlist", "-v", "-i", "perf.data"], folder)
    check("no call graphs without -g, and 4000 samples a second",
          "CALLCHAIN" not in out and "sample_freq }: 4000" in out, out)
    tally("-g", "-e", "cpu-clock", "--", "true")
    _, out, _ = lines.run("perf", ["evlist", "-v", "-i", "perf.data"], folder)
    check("call graphs with -g", "CALLCHAIN" in out, out)
    for words in (["-z"], ["-z", "-k", "1"], ["-k", "mono"], ["-z3"], ["--inherit"], ["-k", "CLOCK_MONOTONIC"], ["--aio"],
                  ["-B", "-N", "-T", "-P"]):
        status, _, err = tally(*words, "-e", "cpu-clock", "--", "true")
        check("perf record " + " ".join(words), status == 0, err)
    status, _, err = tally("-a", "-p", str(os.getpid()), "-e", "cpu-clock", "--", "sleep", "0.01")
    check("-a with -p: -p wins", status == 0 and "PID/TID switch overriding SYSTEM" in err, err)
    status, _, err = tally("--strict-freq", "-F", "1000000000", "-e", "cpu-clock", "true")
    check("… and refused with --strict-freq", status != 0, err)
    for words in ([], ["-e", "cycles"], ["-e", "cycles:u"], ["-e", "cycles:pp"], ["-e", "cycles,cs"]):
        names = {}
        for program in "perf", "tally":
            lines.run(program, ["record", "-o", program + ".data", *words, "--", "true"], folder)
            _, out, _ = lines.run("perf", ["evlist", "-i", program + ".data"], folder)
            names[program] = [line for line in out.splitlines() if not line.startswith("dummy")]
        check("events of perf record " + " ".join(words), names["perf"] == names["tally"], names)
    status, _, err = tally("-F", "1000000000", "-e", "cpu-clock", "true")
    check("a rate above the maximum is lowered", status == 0 and "exceeded, throttling from" in err, err)
    piped = subprocess.run(f"{lines.TALLY} perf record -e cpu-clock -F 9999 true | {lines.TALLY} perf script", shell=True, cwd=folder,
                           capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    check("into a pipe, and from a pipe", piped.returncode == 0 and " cpu-clock: " in piped.stdout, piped)


def conversions(folder):
    """perf data convert --to-json: the same document, but for the names of return addresses."""
    for name in "LEAVES", "STACKS", "TRACE":
        data, err = record("perf", name, folder)
        if not data:
            skip(f"perf data convert: {name}", "this user may not record: " + err.splitlines()[0])
            continue
        texts = {}
        for program in "perf", "tally":
            file = folder / f"{program}.json"
            status, _, err = lines.run(program, ["data", "convert", "--to-json", str(file), "-i", str(data)], folder)
            texts[program] = file.read_text() if status == 0 else err
            json.loads(texts[program] or "null")
            again, _, _ = lines.run(program, ["data", "convert", "--to-json", str(file), "-i", str(data)], folder)
            check(f"{program} replaces no file without --force", again != 0)
            file.unlink()
        alike = [re.sub(r'"symbol": "(.*@plt|_dl_start_user|_start)"', "", text) for text in texts.values()]
        check(f"perf data convert: {name}", alike[0] == alike[1], lines.difference(*alike))


def collapse(text):
    """stackcollapse-perf.pl's rules: the counts of its folded stacks."""
    stacks, stack, name = {}, [], None
    for line in text.splitlines():
        if not line:
            if name:
                key = ";".join([name, *stack])
                stacks[key] = stacks.get(key, 0) + 1
            stack, name = [], None
        elif found := re.match(r"(\S.+?)\s+(\d+)/*(\d+)*\s+", line):
            name = found[1].replace(" ", "_")
        elif found := re.match(r"\s*(\w+)\s*(.+) \((.*)\)", line):
            stack.insert(0, re.sub(r"\+0x[\da-f]+$", "", found[2]))
        else:
            raise ValueError("Unrecognized line: " + line)
    return stacks


def readers(folder):
    data, err = record("tally", "STACKS", folder)
    if not data:
        return skip("readers of perf script", "this user may not record: " + err.splitlines()[0])
    _, out, _ = lines.run("tally", ["script", "-i", str(data)], folder)
    stacks = collapse(out)
    check("stackcollapse-perf.pl's rules take every line", sum(stacks.values()) > 5 and all(";" in stack for stack in stacks), stacks)
    frames = [line for line in out.splitlines() if line.startswith("\t")]
    check("gprof2dot's rules take every frame",
          all(re.match(r"^\s+(?P<address>[0-9a-fA-F]+)\s+(?P<symbol>.*)\s+\((?P<module>.*)\)$", line) for line in frames))
    heads = [line for line in out.splitlines() if line and not line.startswith("\t")]
    check("speedscope's rules take every event and frame",
          all(re.match(r"^(\S.+?)\s+(\d+)(?:/?(\d+))?\s+", line) and re.search(r"\s+(\d+\.\d+):\s+", line) and
              re.search(r"(\S+):\s*$", line) for line in heads) and
          all(re.match(r"^\s*(\w+)\s*(.+) \((.*)\)", line) for line in frames))
    _, out, _ = lines.run("tally", ["script", "-i", str(data), "-F", "+srcline"], folder)
    frames = [line for line in out.splitlines() if line.startswith("\t") and "([unknown])" not in line]
    sources = [line for line in out.splitlines() if re.match(r"  \S", line)]
    check("--srcline: each frame of an object has a second line", frames and len(frames) == len(sources), (len(frames), len(sources)))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        by_lists(folder)
        by_recordings(folder)
        habits(folder)
        conversions(folder)
        readers(folder)
    return lines.finish()


sys.exit(main())
