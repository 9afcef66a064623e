#!/usr/bin/env python3
"""Compares the simulated PMU with the CPU's own single steps, on a program with a libc.  TAP.

libc chooses its functions by the CPU, and the simulated CPU differs from this machine's.  So
GLIBC_TUNABLES masks, on both, the features that one of them lacks, and sets the values that depend
on the caches.  Then everything in work() and after it is the same, instruction by instruction.
Libraries have other addresses, so only the addresses in their pages are compared.

The run as a whole can't be equal: before main, the loader asks the CPU for its features, with as
many instructions as there are answers.  But each difference there must begin in a function of
EXPLAINED.
Usage: libc_steps.py TALLY PERF SINGLE_STEP PROGRAM
"""
import array
import json
import os
import pathlib
import subprocess
import sys
import tempfile

tally, perf, single_step, program = sys.argv[1:]
CPU = "asks the CPU what it is, or goes by what it said"
EXPLAINED = {
    "init_cpu_features": CPU, "get_common_indices": CPU, "get_extended_indices": CPU, "update_active": CPU, "handle_intel": CPU,
    "intel_check_word": CPU, "get_common_cache_info": CPU,
    "search_cache": "compares the platform's name, which the kernel leaves anywhere on the stack",
    "_dlfo_sort_mappings": "sorts by address, and the loader lies above libc or below it",
}
TUNABLES = ("glibc.pthread.rseq=0:"  # Valgrind has no rseq(2)
            "glibc.cpu.x86_data_cache_size=32768:glibc.cpu.x86_shared_cache_size=1048576:"
            "glibc.cpu.x86_non_temporal_threshold=1000000:glibc.cpu.x86_rep_movsb_threshold=2048:"
            "glibc.cpu.x86_rep_stosb_threshold=2048:"
            # This must be last and end with a comma: otherwise glibc 2.36 reads on into random
            # bytes.
            "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-AVX512CD,-FSRM,-POPCNT,-RTM,-Prefer_No_VZEROUPPER,")
environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "LD_BIND_NOW": "1", "GLIBC_TUNABLES": TUNABLES}
PAGE = 4096


def run(*command):
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False,
                            env=environment)
    if result.returncode:
        raise SystemExit(f"Bail out! {' '.join(command)}: {result.returncode}: {result.stderr[-400:]}")
    return result.stdout


def stepped(folder):
    run(single_step, f"{folder}/trace", program)
    trace = array.array("Q")
    trace.frombytes(pathlib.Path(f"{folder}/trace").read_bytes())
    return trace.tolist()


def sampled(folder):
    """Returns each instruction's address, and its function."""
    run(tally, "record", "--provider", "simulated", "-q", "-e", "instructions", "-c", "1", "-o", f"{folder}/data", "--", program)
    lines = [line.split() for line in run(perf, "script", "-i", f"{folder}/data", "-F", "ip,sym", "-G").splitlines()]
    return [int(line[0], 16) for line in lines], [line[1].split(".")[0] for line in lines]


def counted(folder, *options):
    run(tally, "stat", "--provider", "simulated", *options, "-j", "-o", f"{folder}/counts", "-e", "instructions", "--", program)
    return json.loads(pathlib.Path(f"{folder}/counts").read_text(encoding="utf-8"))["events"][0]["value"]


def address_of(name):
    return next(int(line.split()[0], 16) for line in run("nm", program).splitlines() if line.split()[-1] == name)


def differences(one, other):
    """Finds where two sequences part, and where they join: the next 24 instructions of both are the
    same."""
    width, reach, i, j = 24, 20000, 0, 0
    while i < len(one) and j < len(other):
        if one[i] == other[j]:
            i, j = i + 1, j + 1
            continue
        places = {}
        for k in range(j, min(j + reach, len(other) - width)):
            places.setdefault(tuple(other[k:k + width]), k)
        meet = [(k, places[key]) for k in range(i, min(i + reach, len(one) - width))
                if (key := tuple(one[k:k + width])) in places]
        first, second = min(meet, key=sum, default=(len(one), len(other)))
        yield i, first, j, second
        i, j = first, second
    if i < len(one) or j < len(other):
        yield i, len(one), j, len(other)


def within_pages(addresses):
    return [address % PAGE for address in addresses]


number, failed = 0, False


def check(holds, what, *remarks):
    global number, failed  # pylint: disable=global-statement
    number += 1
    failed = failed or not holds
    print(f"{'ok' if holds else 'not ok'} {number} - {what}")
    if not holds:
        print(*(f"# {remark}" for remark in remarks), sep="\n")


print("1..4")
with tempfile.TemporaryDirectory(prefix="tally-libc-steps-") as scratch:
    steps, (samples, functions) = stepped(scratch), sampled(scratch)
    whole, region = counted(scratch), counted(scratch, "--toggle", "work")
work = address_of("work")
begin, sampled_begin = steps.index(work), samples.index(work)
end = steps.index(steps[begin - 1] + 5, begin)  # after the call
check(region == end - begin, f"work() has {end - begin} instructions, of libc's too, and as many are counted", region)
own, theirs = within_pages(steps[begin:]), within_pages(samples[sampled_begin:])
apart = next((i for i, (a, b) in enumerate(zip(own, theirs)) if a != b), min(len(own), len(theirs)))
check(own == theirs, "from work() to the end of the process each is the same", f"they part after {apart}, of {len(own)} stepped",
      f"and {len(theirs)} sampled, in {functions[sampled_begin + apart - 1]}")
check(whole == len(samples), "of the whole process as many are counted as are sampled with a period of 1", whole, len(samples))
if "init_cpu_features" in functions:
    parts = []
    for a, b, c, d in differences(within_pages(steps), within_pages(samples)):
        # A comparison function counts as its caller.
        function = next((name for name in functions[c - 1:] if name != "strcmp"), "")
        if function not in EXPLAINED:
            parts.append(f"{b - a} stepped, {d - c} sampled in {function} ({functions[c - 1]})")
    check(not parts, f"of {len(steps)} stepped and {len(samples)} sampled all that differs is explained", *parts[:20])
else:
    number += 1
    print(f"ok {number} - all that differs is explained # SKIP the loader's functions have no names: libc6-dbg is not installed")
sys.exit(failed)
