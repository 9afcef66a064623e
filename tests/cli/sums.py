#!/usr/bin/env python3
"""Sums of samples and of their weights agree in all views of a recording.

    sums.py RECORDING...        $TALLY is the binary; prints TAP

script prints every sample as it was recorded, so its sums are the oracle.  Each other view shows
the same, or says how much of it is idle and left out.
"""
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

TALLY = os.environ.get("TALLY", "tally")
LIMIT, SIGNED_LIMIT = (1 << 64) - 1, (1 << 63) - 1  # where sums end
ENDED = re.compile(r"sums of '.*' end at 2\^6[34] - 1")
IDLE = re.compile(r"(\d+(?:\.\d+)?)% is idle and left out")


def run(*arguments):
    done = subprocess.run([TALLY, *arguments], capture_output=True, timeout=120, check=False, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def by_script(path):
    """Returns {event: [samples, weight]}, or None if the file can't be read."""
    status, out, _ = run("script", "-j", "-F", "event,period", path)
    if status:
        return None
    sums = {}
    for line in out.splitlines():
        sample = json.loads(line)
        one = sums.setdefault(sample["event"], [0, 0])
        one[0] += 1
        one[1] += sample["period"]
    return sums


def by_report(path, *options):
    status, out, _ = run("report", "-j", "--no-branch-stack", "--percent-limit", "0", "--no-inline", *options, path)
    if status:
        return {}
    return {event["event"]: event for event in json.loads(out)["events"]}


def weight_of_lines(text):
    return sum(int(line.rsplit(b" ", 1)[1]) for line in text.splitlines())


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        yield key >> 3, value


def by_pprof(data):
    """Returns (samples, weight): the sums of all values of all samples, by the published profile.proto."""
    sums = [0, 0]
    for number, value in fields(data):
        if number == 2:  # Profile.sample
            values = []
            for inner, packed in fields(value):
                if inner == 2 and isinstance(packed, bytes):  # Sample.value
                    at = 0
                    while at < len(packed):
                        one, at = varint(packed, at)
                        values.append(one)
                elif inner == 2:
                    values.append(packed)
            sums[0] += values[0]
            sums[1] += values[-1]
    return tuple(sums)


def by_speedscope(data):
    return sum(sum(profile["weights"]) for profile in json.loads(data)["profiles"])


def by_flamegraph(data):
    """Returns the weight in the title of the root, and how far rounding may have moved it."""
    title = re.search(r"<title>all: [0-9.]+\s*%, ([0-9,.]+)\s(\w+)", data.decode())
    if not title:
        return 0, 0
    number, unit = title.group(1).replace(",", ""), title.group(2)
    scale = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(unit, 1)
    digits = len(number.split(".")[1]) if "." in number else 0
    return float(number) * scale, (scale * 10 ** -digits if scale > 1 else 0)


class Checker:
    def __init__(self):
        self.number = 0

    def check(self, name, problems):
        self.number += 1
        print(f"{'not ok' if problems else 'ok'} {self.number} - {name}")
        for problem in problems:
            print("#", problem)


def compare(path, event, sums, folder, problems):
    """Compares the views of one event, with idle samples and without."""
    samples, exact = sums
    weight = min(exact, LIMIT)

    def expect_said(view, err, limit=LIMIT):
        if bool(ENDED.search(err)) != (exact > limit):
            problems.append(f"{event}: {view} is wrong about sums that ended: {err}")

    for view in ["report", "--stdio"], ["report", "-j"], ["annotate", "--stdio"], ["annotate", "-j"]:
        status, out, err = run(*view, "-e", event, "-i", path)
        if not status:
            expect_said(" ".join(view), err if view[1:] != ["-j"] or view[0] != "report" else out.decode())
            if exact > LIMIT and (b"saturated" if "-j" in view else b"not exact") not in out:
                problems.append(f"{event}: the output of {view} does not tell that sums ended")

    def expect(view, found, right):
        if found != right:
            problems.append(f"{event}: {view} has {found}, script has {right}")

    shown = by_report(path, "--idle").get(event)
    usual = by_report(path).get(event)
    if not shown or not usual:  # of tally's own, which it has for another event's samples
        return
    expect("report --idle", (shown["samples"], shown["period"]), (samples, weight))
    expect("report's rows", sum(entry["self"] for entry in usual["entries"]), usual["period"])
    left_out = usual.get("idle_samples", 0), usual.get("idle_period", 0)
    expect("report and what it leaves out", (usual["samples"] + left_out[0], usual["period"] + left_out[1]), (samples, weight))

    drawn = by_timeline(path, event, folder)
    if drawn is not None and drawn != samples:
        problems.append(f"{event}: timeline draws {drawn} of {samples} samples")
    for options, right, count in (["--idle"], weight, samples), ([], usual["period"], usual["samples"]):
        def said(err):
            return bool(IDLE.search(err)) == bool(not options and left_out[0])

        status, out, err = run("fold", "--event", event, *options, path)
        expect(f"fold {' '.join(options)}", weight_of_lines(out) if not status else 0, right)
        expect_said("fold", err)
        if not said(err):
            problems.append(f"{event}: fold is wrong about idle samples: {err}")
        for form, reader in ("speedscope", by_speedscope), ("pprof", by_pprof):
            target = os.path.join(folder, form)
            status, _, err = run("export", "-f", form, "-o", target, "--event", event, *options, path)
            if status and not right:
                continue  # nothing to export
            data = open(target, "rb").read()
            data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
            limit = SIGNED_LIMIT if form == "pprof" else LIMIT
            expect(f"{form} {' '.join(options)}", reader(data), (count, min(right, limit)) if form == "pprof" else right)
            expect_said(form, err, limit)
        target = os.path.join(folder, "flame.svg")
        status, _, err = run("flamegraph", "-o", target, "--event", event, *options, path)
        if not status:
            found, rounding = by_flamegraph(open(target, "rb").read())
            expect_said("flamegraph", err)
            if (b"\xc2\xb7 at least " in open(target, "rb").read()) != (exact > LIMIT):
                problems.append(f"{event}: flamegraph is wrong about its sum")
            if abs(found - right) > rounding:
                problems.append(f"{event}: flamegraph has {found}, not {right}")
        status, out, err = run("diff", "-j", "--event", event, *options, path, path)
        if not status:
            both = json.loads(out)
            expect_said("diff", err)
            for side in "old", "new":
                expect(f"diff's {side} side", (both[side]["samples"], both[side]["weight"]), (count, right))
                expect(f"diff's {side} side is saturated", both[side].get("saturated", False), exact > LIMIT)
            if any(row["change"]["difference"] for row in both["rows"]):
                problems.append(f"{event}: diff of a recording with itself finds a change")


def by_timeline(path, event, folder):
    """Returns the number of samples that a timeline draws or leaves out; None if it does not draw samples."""
    target = os.path.join(folder, "timeline.json")
    arguments = ["timeline", "--by", "task", "--event", event, "-n", "100000", path]
    status, out, _ = run(*arguments, "--stdio")
    if status or b"context switches" in out or b"sched_switch" in out:
        return None
    _, _, err = run(*arguments, "-o", target)
    idle = re.search(r"([0-9,]+) samples? of the idle task", err)
    with open(target, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    drawn = sum(one["ph"] in "Xi" and not one["name"].startswith("CPU ") for one in events)
    return drawn + (int(idle.group(1).replace(",", "")) if idle else 0)


def main():
    checker = Checker()
    with tempfile.TemporaryDirectory() as folder:
        for path in sys.argv[1:]:
            problems = []
            sums = by_script(path)
            _, out, _ = run("report", "-j", "--no-branch-stack", path)
            names = [event["event"] for event in json.loads(out)["events"]] if out else []
            for event, both in (sums or {}).items():
                if sum(name == event for name in names) > 1:
                    continue  # the name does not choose one of them
                compare(path, event, both, folder, problems)
            name = os.path.basename(path)
            if sums is None:
                continue
            checker.check(f"{name}: {sum(one[0] for one in sums.values())} samples of {len(sums)} events", problems)
    print(f"1..{checker.number}")


if __name__ == "__main__":
    main()
