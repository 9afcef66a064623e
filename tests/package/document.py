#!/usr/bin/env python3
"""Runs a document of docs/ as someone new would: each `$ ` line of its ```console blocks, in order, in one shell, and holds what
comes out to what stands there.  TAP.

    document.py DOCUMENT [--rewrite] SHELL [ARGUMENT...]

SHELL is what reads commands from standard input (bash, or chroot DIR bash).  A `…` alone on a line stands for any lines; of
numbers, times, pids and paths only the shape is compared.  In a block ```console varies each command must succeed, and
its output is not compared.  A heading's `<!-- needs: node g++ root -->` names what it can't do
without.  --rewrite puts today's output into the document, below commands whose block has no `…`."""
import os
import re
import signal
import subprocess
import sys
import threading

MARK = "end-of-the-command"
# Text that depends on the machine, the C library or the version of Node.js, and its neutral form.
SHAPES = [
    (r"(?<![\w.])(/[\w.+-]+)+/(?=[\w.+-]+)", ""),           # paths: their last part
    (r"\b(LazyCompile|Function|JS):[*~^+]?", "JS:"),       # V8's marks of functions
    (r"(\.js:\d+):\d+", r"\1"),                          # older versions leave out the column
    (r"\b(cpu-clock|cycles)(:[ukhp]+)?\b", "EVENT"),
    (r"\[libc\.so\.6(\+0x[0-9a-f]+)?\]|__libc_start_call_main", "LIBC"),
    (r"[KMG]?i?B\b", "B"),
    (r"\b(ns|us|ms|s|msec)\b", "s"),
    (r"[+-]?\d[\d.,]*", "0"),
    (r"\s+", " "),
]
# Lines that appear only on some machines, or with a row more; and bash's messages about killed
# jobs.
PASSING = re.compile(r"tally: this machine has no hardware cycle counter|[\d,]+ more below|bash: line \d+: +\d+ Killed|"
                     r"\d+% of the samples are an interpreter's|note: |hint: |tally( \w+)?: warning|tally: only user mode is recorded")


class Command:
    def __init__(self, line, number, varies):
        self.line, self.number, self.varies, self.expected = line, number, varies, []


class Step:
    def __init__(self, title):
        self.title, self.needs, self.commands = title, [], []


def parse(text):
    steps, inside, varies = [Step("before the first heading")], False, False
    for number, line in enumerate(text.splitlines()):
        if line.startswith("```"):
            inside, varies = line.startswith("```console"), line == "```console varies"
        elif inside and line.startswith("$ "):
            steps[-1].commands.append(Command(line[2:], number, varies))
        elif inside:
            steps[-1].commands[-1].expected.append(line)
        elif line.startswith("## "):
            steps.append(Step(line[3:]))
        elif match := re.match(r"<!-- needs: (.*) -->", line):
            steps[-1].needs += match[1].split()
    return [step for step in steps if step.commands]


def shape(lines):
    result = []
    for line in lines:
        line = line.rstrip()
        if PASSING.match(line.strip()) or not line:
            continue
        for pattern, replacement in SHAPES:
            line = re.sub(pattern, replacement, line)
        result.append(line.strip())
    return result


def alike(expected, found):
    """A line that is … stands for any lines."""
    pattern = "".join("(?:.*\n)*" if line == "…" else re.escape(line) + "\n" for line in expected)
    return re.fullmatch(pattern, "".join(line + "\n" for line in found)) is not None


class Shell:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, errors="replace", start_new_session=True)

    def run(self, line, seconds=120):
        """What a command prints, and its status; none when it hung."""
        timer = threading.Timer(seconds, self.stop)
        timer.start()
        try:
            self.process.stdin.write(f"{{ {line}\n}} </dev/null\necho {MARK} $?\n")
            self.process.stdin.flush()
            lines = []
            for out in self.process.stdout:
                if match := re.search(MARK + r" (\d+)$", out):
                    if rest := out[:match.start()]:
                        lines.append(rest)
                    return lines, int(match[1])
                lines.append(out.rstrip("\n"))
        except BrokenPipeError:
            pass
        finally:
            timer.cancel()
        return [], None

    def stop(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def lacking(shell, needs):
    for need in needs:
        if need == "root":
            lines, _ = shell.run("id -u")
            if lines != ["0"]:
                return "root"
        elif shell.run(f"command -v {need}")[1] != 0:
            return need
    return None


def main():
    arguments = sys.argv[1:]
    path = arguments.pop(0)
    rewrite = arguments[0] == "--rewrite" and bool(arguments.pop(0))
    text = open(path, encoding="utf-8").read()
    shell, number, failed, outputs = Shell(arguments), 0, False, {}
    shell.run("export LC_ALL=C.UTF-8 COLUMNS=110")
    if shell.run("tally record -q -o try.data true")[1] != 0:
        print("1..0 # SKIP nothing can be sampled here")
        return 0
    for step in parse(text):
        lack = lacking(shell, step.needs)
        for command in step.commands:
            number += 1
            name = f"{step.title}: {command.line}".replace("#", "\\#")
            if lack:
                print(f"ok {number} - {name} # SKIP there is no {lack}")
                continue
            lines, status = shell.run(command.line)
            outputs[command.number] = lines
            good = status == 0 and (command.varies or alike(shape(command.expected), shape(lines)))
            print(f"{'ok' if good else 'not ok'} {number} - {name}", flush=True)
            if not good:
                failed = True
                print(f"# status {status}; what should come:")
                print("\n".join("#   " + line for line in command.expected))
                print("# what came:")
                print("\n".join("#   " + line for line in lines))
            if status is None:
                print("Bail out! the shell is gone, or the command hung")
                shell.stop()
                return 1
    print(f"1..{number}")
    shell.stop()
    if rewrite:
        with open(path, "w", encoding="utf-8") as file:
            file.write(rewritten(text, outputs))
    return 1 if failed and not rewrite else 0


def rewritten(text, outputs):
    result, lines = [], text.splitlines()
    expected = {command.number: command.expected for step in parse(text) for command in step.commands}
    number = 0
    while number < len(lines):
        result.append(lines[number])
        if number in outputs and "…" not in expected[number]:
            result += outputs[number]
            number += len(expected[number])
        number += 1
    return "\n".join(result) + "\n"


if __name__ == "__main__":
    sys.exit(main())
