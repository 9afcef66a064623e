#!/usr/bin/env python3
"""No view gives on what a name may try.

    hostile_names.py RECORDING OTHER...        $TALLY is the binary; prints TAP

The names of the first recording are those of make_recording.py's hostile_names.  Text shows them in
one line and plain; JSON gives them back as they are; XML is well-formed.
"""
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import unicodedata
import xml.dom.minidom

from make_recording import hostile_name
from sums import fields

TALLY = os.environ["TALLY"]
# Marks of direction, separators, and what is no character: as src/base/characters.c says, but by Unicode's own data.
TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def is_plain(character):
    code = ord(character)
    if code & 0xfffe == 0xfffe or 0xfdd0 <= code <= 0xfdef or character in "\u200e\u200f\u061c\ufeff":
        return False
    return unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp") and unicodedata.bidirectional(character) not in TURNING


def text_problems(what, data, line_end="\n"):
    """Checks lines of text."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return [f"{what}: not UTF-8: {error}"]
    problems = []
    for number, line in enumerate(text.split(line_end), 1):
        odd = {hex(ord(c)) for c in line if not is_plain(c) and c not in "\t"}
        if line_end == "\r\n":
            odd -= {"0xa"}
        if odd:
            problems.append(f"{what}, line {number} has {sorted(odd)}: {line[:100]!r}")
        if line.startswith(("FORGED", "DEGROF", "# FORGED", "# DEGROF")):
            problems.append(f"{what}: line {number} was forged: {line[:100]!r}")
    return problems[:5]


def strings(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)
    elif isinstance(value, str):
        yield value


def read_back(name):
    """Returns what JSON gives back of a name: bytes that are no text are replaced."""
    return name.encode("utf-8", "surrogateescape").decode(errors="replace")


def json_problems(what, data, kinds):
    problems = text_problems(what, data)
    try:
        documents = [json.loads(data)]
    except ValueError:
        try:
            documents = [json.loads(line) for line in data.splitlines()]
        except ValueError as error:
            return problems + [f"{what}: not JSON: {error}"]
    found = {text.replace("\ufffd", "") for text in strings(documents)}
    for kind in kinds:
        wanted = read_back(hostile_name(kind)).replace("\ufffd", "")
        if not any(wanted in text for text in found):
            problems.append(f"{what}: lacks the name of {kind}")
    return problems


def xml_problems(what, data):
    problems = text_problems(what, data)
    try:
        document = xml.dom.minidom.parseString(data)
    except Exception as error:  # pylint: disable=broad-except
        return problems + [f"{what}: not XML: {error}"]
    for script in document.getElementsByTagName("script"):
        inner = "".join(node.data for node in script.childNodes if hasattr(node, "data"))
        if script.getAttribute("type") != "application/json" and "forged" in inner:
            problems.append(f"{what}: a script was forged")
    if document.getElementsByTagName("img"):
        problems.append(f"{what}: an element was forged")
    return problems


def html_problems(what, data):
    problems = text_problems(what, data)
    for bad in b"<script>forged", b"<img src=x":
        if bad in data:
            problems.append(f"{what} contains {bad}")
    return problems


def pprof_problems(what, data):
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    problems = []
    for number, value in fields(data):
        if number == 6:  # Profile.string_table
            try:
                value.decode()
            except UnicodeDecodeError as error:
                problems.append(f"{what}: a string is not UTF-8: {error}")
    return problems[:3]


def run(*arguments):
    done = subprocess.run([TALLY, *arguments], capture_output=True, timeout=120, check=False, stdin=subprocess.DEVNULL)
    problems = [] if done.returncode in (0, 1) else [f"status {done.returncode}"]
    if re.search(rb"Sanitizer|runtime error:", done.stderr):
        problems.append("a sanitizer's message")
    return done.stdout, done.stderr, problems


def views(path, folder):
    """Yields each view's arguments, its output's file (None: stdout), and the check of it."""
    to = os.path.join(folder, "out.")
    for arguments in (["report", "--stdio"], ["report", "--stdio", "-g"], ["report", "--stdio", "--sort", "comm,dso,sym,srcline,cgroup"],
                      ["report", "--stdio", "--header", "-I"], ["report", "--header-only", "-I"], ["report", "-v", "--stdio"],
                      ["report", "--stdio", "-e", "1"], ["script"], ["script", "--header", "-I"], ["script", "--records"],
                      ["script", "-F", "comm,tid,time,event,ip,sym,dso,symoff,srcline,cgroup,trace"],
                      ["report", "--stdio", "--sort", "srcfile,srcline"],
                      ["script", "--show-mmap-events", "--show-task-events", "--show-cgroup-events", "--show-bpf-events", "--show-round-events"],
                      ["fold"], ["fold", "--full-names"], ["fold", "--tid", "--kernel"], ["timeline", "--stdio"], ["timeline", "--stdio", "--by", "task"],
                      ["annotate", "--stdio", "-i"], ["annotate", "--stdio", "-e", "1", "-i"],
                      ["annotate", "--stdio", hostile_name("inflate"), "-i"], ["report", "--stdio", "-e", hostile_name("none").replace("\0", "")],
                      ["report", "--stdio", "--comm", "nothing"], ["report", "--stdio", "-S", "nothing"], ["timeline", "--stdio", "--comm", "nothing"]):
        yield [*arguments, path], None, text_problems
    for arguments in (["diff", path, path], ["diff", "--markdown", path, path], ["diff", "--event", "1", path, path]):
        yield arguments, None, text_problems
    yield ["script", "--csv", path], None, lambda what, data: text_problems(what, data, "\r\n")
    # JSON has the whole names
    def has(*kinds):
        return lambda what, data: json_problems(what, gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data,
                                                [] if path in ("events.data", "source.data") else kinds)

    yield ["report", "-j", path], None, has("comm", "event", "inflate")
    yield ["script", "-j", path], None, has("comm", "event", "inflate", "/lib/", "/map")
    yield ["annotate", "-j", "-i", path], None, has("event")
    yield ["diff", "-j", path, path], None, has("event")
    for form, kinds in ("speedscope", ["comm", "event", "inflate"]), ("chrome", ["comm", "inflate"]), ("firefox", ["comm", "inflate"]):
        yield ["export", "-f", form, "-o", to + form, path], to + form, has(*kinds)
    yield ["export", "-f", "pprof", "-o", to + "pprof", path], to + "pprof", pprof_problems
    yield ["timeline", "-o", to + "json", path], to + "json", has("comm")
    yield ["flamegraph", "-o", to + "svg", path], to + "svg", xml_problems
    yield ["flamegraph", "-o", to + "svg", "--diff", path, path], to + "svg", xml_problems
    yield ["flamegraph", "-o", to + "html", path], to + "html", html_problems
    yield ["annotate", "-o", to + "html", "-i", path], to + "html", html_problems


def main():
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in sys.argv[1:]:
            for arguments, target, problems_of in views(path, folder):
                if target and os.path.exists(target):
                    os.unlink(target)
                out, err, problems = run(*arguments)
                what = " ".join(arguments).replace(path, "FILE").replace(folder, "DIR")
                what = "".join(c if is_plain(c) else "?" for c in what)[:90]
                if target:
                    out = open(target, "rb").read() if os.path.exists(target) else b""
                problems += text_problems("messages", err)
                if out:
                    problems += problems_of("output", out)
                elif not err:
                    problems += ["there is neither output nor a message"]
                number += 1
                print(f"{'not ok' if problems else 'ok'} {number} - {os.path.basename(path)!r}: {what}")
                for problem in problems:
                    print("#", problem.encode("ascii", "backslashreplace").decode())
    print(f"1..{number}")


if __name__ == "__main__":
    main()
