#!/usr/bin/env python3
"""slow_lines.py TALLY [LANGUAGE…]: annotate's first line is the line that takes the time.

Each program has small loops with one slow line.  The line's cost is measured: the program is also
built without it, and both versions say how long a round takes.  What is left takes no less time
alone than beside the slow line, where the CPU does both at once.  So the line's share may be
larger than its cost; most lines cost more than 95 %.

A line marked "cost" waits for the slow line and it for that line, so their times add up.  Each is
measured without the other, in turns, and the quickest run of each counts: the two shares are those
of their sum.  What recording and other programs take from the whole has no part in it.  TAP."""
import json, os, re, shutil, subprocess, sys, tempfile

SOURCES = os.path.dirname(os.path.abspath(__file__))
TOLERANCE = 5  # percentage points, beside the sampling error of the share
TURNS = 5
LANGUAGES = {
    "c": ("slow_lines.c", ["gcc", "-O2", "-g", "-fno-math-errno", "-fno-trapping-math", "{source}", "-o", "{out}"]),
    "clang": ("slow_lines.c", ["clang", "-O2", "-g", "-fno-math-errno", "{source}", "-o", "{out}"]),
    "c++": ("slow_lines.cpp", ["g++", "-O2", "-g", "{source}", "-o", "{out}"]),
    "rust": ("slow_lines.rs", ["rustc", "-C", "opt-level=2", "-g", "{source}", "-o", "{out}"]),
    "go": ("slow_lines.go", ["go", "build", "-o", "{out}", "{source}"]),
}
MARK = re.compile(r"(?:/\*|//) (slow|cost)(?:, without: (.*?))?(?: \*/)?$")


def without(text, mark):
    """The program without the lines that have the mark."""
    lines = []
    for line in text.split("\n"):
        found = MARK.search(line)
        lines.append((found.group(2) or "") if found and found.group(1) == mark else line)
    return "\n".join(lines)


def marked_lines(text):
    """Function → mark → number of its line."""
    out, function = {}, None
    for number, line in enumerate(text.split("\n"), 1):
        head = re.match(r"(?:KERNEL|static|pub fn|fn|func|uint64_t|__attribute__).*?(\w+)\(", re.sub(r"__attribute__\(\(.*?\)\)", "__attribute__", line))
        if head:
            function = head.group(1)
        found = MARK.search(line)
        if found:
            out.setdefault(function, {})[found.group(1)] = number
    return out


def run(program, arguments):
    """Function → time of a round."""
    out = subprocess.run([program] + arguments, check=True, capture_output=True, text=True).stdout
    return {name: float(time) for name, time in re.findall(r"^(\w+) ([\d.]+)$", out, re.M)}


def costs(language, scratch, text, whole):
    """Function → mark → the line's part of the time in percent.  whole: the times with all lines."""
    lines = marked_lines(text)
    both = [name for name in whole if "cost" in lines[name]]
    without_slow = build(language, scratch, "slow", without(text, "slow"))
    rest = run(without_slow, [])
    out = {name: {"slow": 100 * (1 - rest[name] / time)} for name, time in whole.items()}
    if both:
        without_cost = build(language, scratch, "cost", without(text, "cost"))
        turns = [(run(without_cost, both), run(without_slow, both)) for _ in range(TURNS)]
        for name in both:
            slow, cost = (min(turn[part][name] for turn in turns) for part in (0, 1))
            out[name] = {"slow": 100 * slow / (slow + cost), "cost": 100 * cost / (slow + cost)}
    return out


def annotate(tally, recording, function):
    out = subprocess.run([tally, "annotate", "-i", recording, "--json", "--no-asm", function], capture_output=True, text=True)
    if out.returncode:
        return out.stderr.strip()
    return max(json.loads(out.stdout)["functions"], key=lambda one: one["samples"])


def build(language, scratch, kind, text):
    """Returns the path of the program."""
    source, command = LANGUAGES[language]
    folder = os.path.join(scratch, language, kind)
    os.makedirs(folder)
    path, out = os.path.join(folder, source), os.path.join(folder, "program")
    with open(path, "w") as file:
        file.write(text)
    subprocess.run([part.format(source=path, out=out) for part in command], check=True, cwd=folder, stderr=subprocess.DEVNULL,
                   env=dict(os.environ, GO111MODULE="off", GOCACHE=os.path.join(scratch, "go")))
    return out


def check(tally, language, scratch):
    """Yields (name, problem or None, detail)."""
    source = LANGUAGES[language][0]
    with open(os.path.join(SOURCES, source)) as file:
        text = file.read()
    program = build(language, scratch, "whole", text)
    recording = os.path.join(scratch, language, "data")
    whole = run(tally, ["record", "-q", "-e", "cpu-clock:u", "-F", "4000", "-o", recording, "--", program])
    expected = costs(language, scratch, text, whole)
    for name in whole:
        found = annotate(tally, recording, f"main.{name}" if language == "go" else name)
        if isinstance(found, str):
            yield name, found.split("\n")[0], ""
            continue
        for line in found["lines"]:  # with what is inlined there
            line["percent"] += line.get("inlined", {"percent": 0})["percent"]
        lines = sorted((line for line in found["lines"] if line["percent"]), key=lambda line: -line["percent"])
        problem = None if lines else "no lines"
        detail = ", ".join(f"{os.path.basename(line['file'])}:{line['line']} {line['percent']:.1f}%" for line in lines[:4])
        for mark, number in marked_lines(text)[name].items():
            mine = [line for line in lines if line["line"] == number and line["file"].endswith(source)]
            got, error = (mine[0]["percent"], mine[0]["error"]) if mine else (0, 0)
            cost = expected[name][mark]
            detail += f"; line {number} costs {cost:.1f}%"
            if mark == "slow" and lines and lines[0] not in mine:
                problem = f"line {number} is not the first"
            elif got < cost - TOLERANCE - error:
                problem = f"line {number} has {got:.1f}% instead of {cost:.1f}%"
        yield name, problem, detail


def main():
    tally, languages = sys.argv[1], sys.argv[2:] or list(LANGUAGES)
    number = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for language in languages:
            tool = LANGUAGES[language][1][0]
            if not shutil.which(tool):
                number += 1
                print(f"ok {number} - {language} # SKIP there is no {tool}")
                continue
            for name, problem, detail in check(tally, language, scratch):
                number += 1
                print(f"{'not ok' if problem else 'ok'} {number} - {language}: {name}")
                print(f"# {problem}; {detail}" if problem else f"# {detail}")
                failed += bool(problem)
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
