#!/usr/bin/env python3
"""The work and the memory of each view grow with its input, not with its square.

    growth.py quick|full [INPUT…]   $TALLY and $BOUNDED are the binaries; prints TAP
    growth.py show [INPUT…]         a table: CPU time and memory at 4n, and their factors from n

Each input of growing_inputs.py is made with n, 2n and 4n parts, and read by each view; "quick" tries
one view of the worst inputs.  Work that grows with the square takes 16 times as long for 4n.

The views read n and 4n.  If 4n takes more than 4.6 times the CPU time of n, the work is counted, not
timed: `tally stat --provider simulated` counts the instructions for n, 2n and 4n to the last one, on a
machine of any load.  A factor above 2.3 from 2n to 4n fails; the step before may pass a threshold, as of
a cache.  Without the simulated CPU, CPU times must show twice the factor, in the best of seven runs.
Memory is the most that was resident.  It fails if it is above 32 MB and 5.3 times (2.3 squared) that of n.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import growing_inputs # noqa: E402

TALLY = os.environ["TALLY"]
BOUNDED = os.environ["BOUNDED"]
FACTOR_MAX = 2.3
SUSPICIOUS = 4.6        # of CPU time, from n to 4n
NOISE_SECONDS = 0.02    # CPU time below this says nothing
NOISE_BYTES = 8 << 20   # threads' arenas, and vectors that double
MEGABYTES_MAX = 4096     # address space of a view: a bomb must not stop the machine
SECONDS_MAX = 120       # of CPU time

RECORDING_VIEWS = {
    "report": ["report", "--stdio", "FILE"],
    "report -g": ["report", "--stdio", "-g", "--percent-limit", "0", "FILE"],
    "report -j": ["report", "-j", "FILE"],
    "script": ["script", "FILE"],
    "script -D": ["script", "-D", "FILE"],
    "header": ["report", "--header-only", "FILE"],
    "fold": ["fold", "FILE"],
    "annotate": ["annotate", "--stdio", "-i", "FILE"],
    "flamegraph": ["flamegraph", "-o", "OUT", "FILE"],
    "timeline": ["timeline", "-o", "OUT", "FILE"],
    "diff": ["diff", "FILE", "FILE"],
    "speedscope": ["export", "-f", "speedscope", "-o", "OUT", "FILE"],
    "firefox": ["export", "-f", "firefox", "-o", "OUT", "FILE"],
    "pprof": ["export", "-f", "pprof", "-o", "OUT", "FILE"],
    "pack": ["pack", "-o", "OUT", "FILE"],
}
TEXT_VIEWS = {
    "fold": ["fold", "FILE"],
    "flamegraph": ["flamegraph", "-o", "OUT", "FILE"],
    "diff": ["diff", "FILE", "FILE"],
}
# The inputs of the quick test, and the view that did the most work with each.
QUICK = {
    "falling_maps": "report", "nested_maps": "script", "forks": "fold", "made_forks": "fold", "tasks": "fold", "comms": "script", "events": "report",
    "event_types": "script", "ids": "script", "groups": "fold", "shuffled_times": "fold", "stacks": "fold", "overlapping_names": "report",
    "symbols_at_one_place": "fold", "nested_symbols": "script", "units_of_one_line_program": "script", "units_of_one_range_list": "fold",
    "units_of_two_abbreviation_tables": "script", "functions_of_overlapping_names": "fold", "deep_inlining": "script", "folded_lines": "flamegraph",
    "folded_deep": "flamegraph", "d_names": "fold", "long_name_namespaces": "flamegraph", "long_name_rust": "flamegraph", "perf_script": "fold",
    "perf_map_nested": "fold", "jit_again": "fold", "packed": "report -j",
}


class Folder:
    """An input of one size, and a cache of its own."""

    def __init__(self, parent, make, n):
        self.path = os.path.join(parent, "%d" % n)
        os.mkdir(self.path)
        self.file = make(n, self.path)
        self.bytes = sum(os.path.getsize(os.path.join(self.path, name)) for name in os.listdir(self.path))
        self.out = os.path.join(self.path, "out")
        self.cache = os.path.join(self.path, "cache")

    def run(self, view, before=()):
        """Returns (exit status, CPU seconds, bytes of memory, the messages)."""
        arguments = [self.file if word == "FILE" else self.out if word == "OUT" else word for word in view]
        shutil.rmtree(self.cache, ignore_errors=True)
        usage, err = os.path.join(self.path, "usage"), os.path.join(self.path, "err")
        limits = ["0", "0"] if before else [str(SECONDS_MAX), str(MEGABYTES_MAX)]
        with open(err, "wb") as messages:
            subprocess.run([BOUNDED, usage, *limits, *before, TALLY, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=messages, check=True, cwd=self.path,
                           env={**os.environ, "XDG_CACHE_HOME": self.cache, "HOME": self.path, "LC_ALL": "C.UTF-8"})
        with open(usage, encoding="ascii") as words, open(err, encoding="utf-8", errors="replace") as messages:
            status, cpu_us, kilobytes = map(int, words.read().split())
            return status, cpu_us / 1e6, kilobytes << 10, messages.read()

    def instructions(self, view):
        """Returns the counted work, or None."""
        counts = os.path.join(self.path, "counts")
        self.run(view, [TALLY, "stat", "--provider", "simulated", "-e", "instructions", "-x,", "-o", counts, "--"])
        try:
            with open(counts, encoding="utf-8") as file:
                found = re.search(r"^(\d+),[^,]*,instructions", file.read(), re.M)
            return int(found.group(1)) if found else None
        except OSError:
            return None


def least(folder, view, runs):
    """Returns the best of several runs: the least CPU time and memory."""
    results = [folder.run(view) for _ in range(runs)]
    return results[0][0], min(r[1] for r in results), min(r[2] for r in results), results[0][3]


def counted_factors(folders, view, empty):
    work = [folder.instructions(view) for folder in folders]
    if None in work or empty is None:
        return None
    work = [max(1, count - empty) for count in work]
    return [work[1] / work[0], work[2] / work[1]]


class Test:
    def __init__(self, quick, show):
        self.quick, self.show = quick, show
        self.number = self.failed = 0
        self.empty = {} # the cost of a view of nearly nothing: (bytes, instructions)

    def say(self, good, name, why=""):
        self.number += 1
        self.failed += not good
        print("%sok %d - %s" % ("" if good else "not ", self.number, name), flush=True)
        if why:
            print("# " + why.replace("\n", "\n# "), flush=True)

    def base(self, kind, make, parent, view_name, view):
        key = kind, view_name
        if key not in self.empty:
            folder = Folder(tempfile.mkdtemp(dir=parent), make, 10)
            self.empty[key] = least(folder, view, 1)[2], folder
        return self.empty[key]

    def check(self, kind, make, parent, n):
        views = TEXT_VIEWS if kind == "text" else RECORDING_VIEWS
        if self.quick:
            views = {QUICK[make.__name__]: views[QUICK[make.__name__]]}
        folders = [Folder(parent, make, size) for size in (n, 2 * n, 4 * n)]
        reasons = []
        row = []
        for name, view in views.items():
            empty_bytes, empty_folder = self.base(kind, make, parent, name, view)
            status, seconds, memory, messages = zip(*[least(folder, view, 1 if self.quick or self.show else 3) for folder in (folders[0], folders[2])])
            memory = [max(0, m - empty_bytes) for m in memory]
            if self.show:
                row.append("%s %s%.2f s ×%.1f, %.0f MB ×%.1f" % (name, "FAILED %s " % (status,) if any(status) else "", seconds[1],
                                                              seconds[1] / max(seconds[0], 0.001), memory[1] / 2**20, memory[1] / max(memory[0], 1)))
                continue
            if any(os.WIFSIGNALED(one) or os.WEXITSTATUS(one) > 1 for one in status):
                reasons.append("%s: killed, or not run: statuses %s" % (name, status))
                continue
            if any(one and "limit" not in said for one, said in zip(status, messages)):
                reasons.append("%s: fails, and names no limit: %s" % (name, messages[-1]))
                continue
            if memory[1] > NOISE_BYTES * 4 and memory[1] > FACTOR_MAX**2 * max(memory[0], NOISE_BYTES):
                reasons.append("%s: four times the input takes %.1f times the memory (%d MB)" % (name, memory[1] / max(memory[0], 1), memory[1] >> 20))
            if seconds[1] > NOISE_SECONDS and seconds[1] > SUSPICIOUS * max(seconds[0], NOISE_SECONDS / 4):
                factors = counted_factors(folders, view, empty_folder.instructions(view))
                if factors and factors[1] > FACTOR_MAX:  # the first step may pass a threshold, as of a cache
                    reasons.append("%s: the work grows by factors of %.2f and %.2f" % (name, *factors))
                if not factors:
                    reasons += self.timed(folders, name, view)
        if self.show:
            print("%-32s n=%d %.1f KB\n    %s" % (make.__name__, n, folders[2].bytes / 1024, "\n    ".join(row)), flush=True)
        else:
            self.say(not reasons, "%s of %s" % ("work and memory", make.__name__), "\n".join(reasons))

    @staticmethod
    def timed(folders, name, view):
        """Without the simulated CPU: the least of many runs, with room for a machine's caches."""
        seconds = [least(folder, view, 7)[1] for folder in folders]
        return ["%s: CPU times %s" % (name, seconds)] if seconds[2] > 2 * FACTOR_MAX**2 * seconds[0] else []


def main():
    how = sys.argv[1]
    test = Test(how == "quick", how == "show")
    wanted = sys.argv[2:]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        try:
            for kind, makers in growing_inputs.INPUTS.items():
                for make in makers:
                    if make.__name__ not in (wanted or (QUICK if how == "quick" else [make.__name__])):
                        continue
                    parent = tempfile.mkdtemp(dir=scratch)
                    test.check(kind, make, parent, int(os.environ.get("GROWTH_N", "2000" if how == "quick" else "4000")))
        finally:
            for path in growing_inputs.MAPS_WRITTEN:
                if os.path.exists(path):
                    os.unlink(path)
    if how != "show":
        print("1..%d" % test.number)
    else:
        print("%.0f s" % (time.monotonic() - began))
    return test.failed > 0


if __name__ == "__main__":
    sys.exit(main())
