#!/usr/bin/env python3
"""Compares the text of tracepoints in `tally script` with perf's (and so libtraceevent's).

    print_formats.py make OUT.data FORMAT…   makes a recording with random events of these formats
    print_formats.py compare PERF.txt TALLY.txt
    print_formats.py memory TALLY            many events of one tracepoint take its format's memory once

A format's path ends with SYSTEM/NAME/format (tracefs) or SYSTEM.NAME (tests/corpus/tracepoint).
"""
import os
import random
import re
import subprocess
import sys

from make_recording import CPU, IDENTIFIER, IP, PERIOD, RAW, TID, TIME, Event, event_desc, record, text, u32, u64, write_file, SPECIAL

EVENTS_PER_FORMAT = 12

# perf prints these wrongly, the kernel and tally don't: src/event/tracepoint/print_parse.c.
BETTER = {
    "timer:timer_start",             # a & (b | c | d)
    "btrfs:raid56_read",             # a - b + c
    "btrfs:raid56_write",
    "sched:sched_skip_cpuset_numa",  # %*pbl
    "kmem:mm_page_alloc_extfrag",    # a < (b < c ? b : c)
    "kvm:kvm_nested_vmenter",        # a ? b : c ? d : e
    "tcp:tcp_ao_handshake_failure",  # %c
    "tcp:tcp_hash_ao_required",
    "tcp:tcp_hash_bad_header",
    "tcp:tcp_hash_md5_mismatch",
    "tcp:tcp_hash_md5_required",
    "tcp:tcp_hash_md5_unexpected",
    "made:long_text",                # tally cuts it
}
# perf reads no empty texts.
HEADER_PAGE = b"""\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;
"""
FAILED = "[FAILED TO PARSE]"


def name_of(path):
    parts = path.split("/")
    return ":".join(parts[-3:-1]) if parts[-1] == "format" else parts[-1].replace(".", ":", 1)


def number(rng, small):
    kind = 3 if small else rng.randrange(8)
    bits = rng.getrandbits(64)
    return [0, (1 << 64) - 1, 1 << (bits & 63), bits % 20, bits & 0xffff, bits, bits, bits][kind]


def words(rng, length):
    return bytes(rng.choice(b"abcdefghijklmnopqrstuvwxyz0123456789_/.-") for _ in range(length))


def make_event(rng, fields, small):
    """A valid event for a trusting reader: terminated strings, dynamic data inside the event."""
    end = max([8] + [offset + size for _, offset, size in fields])
    raw = bytearray((end + 7) // 8 * 8)
    for declaration, offset, size in fields:
        if declaration.startswith(("__data_loc", "__rel_loc")):
            if "char[]" in declaration:
                data = words(rng, rng.randrange(30)) + b"\0"
            elif rng.randrange(2):
                data = bytes([2 if rng.randrange(2) else 10, 0]) + rng.randbytes(30)
            else:
                data = rng.randbytes(8 * rng.randrange(5))
            at = len(raw) - (offset + size if declaration.startswith("__rel_loc") else 0)
            raw[offset:offset + size] = (at | len(data) << 16).to_bytes(4, "little")[:size]
            raw += data + bytes(-len(data) % 8)
        elif "[" in declaration and "char" in declaration:
            raw[offset:offset + size] = words(rng, rng.randrange(size) if size else 0).ljust(size, b"\0")
        elif "[" in declaration or size > 8:
            raw[offset:offset + size] = rng.randbytes(size)
        else:
            raw[offset:offset + size] = (number(rng, small) & (1 << 8 * size) - 1).to_bytes(size, "little")
    return bytes(raw)


def make(out, paths):
    rng = random.Random(33)
    systems, events, records = {}, [], []
    for index, path in enumerate(sorted(paths)):
        with open(path, encoding="latin-1") as file:
            format_text = file.read()
        system, name = name_of(path).split(":")
        own = format_text.partition("\n\n")[2]
        if name == "bprint": # each event has a format of its own
            continue
        if not own or re.search(r"\n|\\n", own.partition("print fmt:")[2].strip()): # a line for each event
            continue
        ident = index + 1
        format_text = re.sub(r"(?m)^ID: \d+", "ID: %d" % ident, format_text, count=1)
        systems.setdefault(system, []).append(format_text.encode("latin-1"))
        events.append(Event(f"{system}:{name}", [ident], type=2, config=ident, period=1,
                            sample_type=IDENTIFIER | IP | TID | TIME | CPU | PERIOD | RAW))
        fields = [(declaration, int(offset), int(size)) for declaration, offset, size in
                  re.findall(r"field:(.*?);\s*offset:(\d+);\s*size:(\d+);", own)]
        # perf trusts lengths in events, and prints 32 bits of a %zu.
        small = any(part in format_text for part in ("__print_hex", "__print_array", "*")) or re.search(r"%[-#0-9]*z", own)
        for _ in range(EVENTS_PER_FORMAT):
            raw = bytearray(make_event(rng, fields, small))
            raw[:2] = ident.to_bytes(2, "little")
            raw += bytes(64 if small else 0) # perf trusts lengths beyond the event
            raw += bytes(-(len(raw) + 4) % 8)
            records.append(record("SAMPLE", u64(ident, 0x1000) + u32(7, 7) + u64(1000 + len(records)) + u32(0, 0) +
                                  u64(1) + u32(len(raw)) + raw))
    write_recording(out, systems, events, records)
    print(f"# {len(events)} formats, {len(records)} events")


def write_recording(out, systems, events, records):
    tracing = b"\x17\x08\x44tracing0.6\0\0\x08" + u32(4096) + b"header_page\0" + u64(len(HEADER_PAGE)) + HEADER_PAGE
    tracing += b"header_event\0" + u64(1) + b"\n"
    tracing += u32(0, len(systems))
    for system, formats in systems.items():
        tracing += system.encode() + b"\0" + u32(len(formats)) + b"".join(u64(len(one)) + one for one in formats)
    tracing += u32(0, 0) + u64(1) + b"\n" # kallsyms, printk_formats, saved_cmdlines
    write_file(out, events, records, {1: tracing, SPECIAL["arch"]: text("x86_64"), SPECIAL["event_desc"]: event_desc(events)})


def compare(perf_path, tally_path):
    with open(perf_path, encoding="latin-1") as file:
        perf = file.read().splitlines()
    with open(tally_path, encoding="latin-1") as file:
        tally = file.read().splitlines()
    if not perf or len(perf) != len(tally):
        sys.exit(f"perf prints {len(perf)} lines, tally {len(tally)}")
    same, wrong, unparsed, by_tally = set(), {}, set(), set()
    for theirs, ours in zip(perf, tally):
        name = ":".join(part.strip() for part in theirs.split(":")[:2])
        if FAILED in theirs:
            unparsed.add(name)
            if FAILED not in ours:
                by_tally.add(name)
                continue
        if theirs == ours:
            same.add(name)
        elif name not in BETTER:
            wrong.setdefault(name, (theirs, ours))
    print(f"# {len(perf)} lines of {len(same | set(wrong) | unparsed)} formats, {len(unparsed)} of which perf can't print, tally {len(unparsed - by_tally)}")
    for name, (theirs, ours) in sorted(wrong.items()):
        print(f"{name}\n perf:  {theirs}\n tally: {ours}")
    for name in sorted(unparsed - by_tally):
        print(f"# fields alone: {name}")
    sys.exit(1 if wrong else 0)


def peak_of(tally, count):
    """Returns the memory that `tally script` takes for so many events of one tracepoint."""
    words = ",".join(["REC->v+1"] * 4000)
    format_text = ("name: large\nID: 1\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
                   "\tfield:int v;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"%d\", " + words + "\n").encode()
    events = [Event(f"made:large{i}", [i + 1], type=2, config=1, period=1,
                    sample_type=IDENTIFIER | IP | TID | TIME | CPU | PERIOD | RAW) for i in range(count)]
    raw = b"\1\0" + bytes(6) + u32(3) + bytes(8)
    records = [record("SAMPLE", u64(i + 1, 0x1000) + u32(7, 7) + u64(1000 + i) + u32(0, 0) + u64(1) + u32(len(raw)) + raw)
               for i in range(count)]
    write_recording("large.data", {"made": [format_text]}, events, records)
    with open("large.txt", "wb") as out, subprocess.Popen([tally, "script", "-i", "large.data", "-F", "trace"], stdout=out) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
    with open("large.txt", encoding="ascii") as lines:
        if status or [line.strip() for line in lines] != ["4"] * count:
            sys.exit(f"{count} events of one tracepoint: wrong text")
    return usage.ru_maxrss


if sys.argv[1] == "memory":
    few, many = peak_of(sys.argv[2], 10), peak_of(sys.argv[2], 200)
    print(f"# {few} and {many} KiB")
    sys.exit(0 if many < few + 20000 else f"{few} KiB for 10 events of one tracepoint, {many} KiB for 200")
elif sys.argv[1] == "make":
    make(sys.argv[2], sys.argv[3:])
else:
    compare(sys.argv[2], sys.argv[3])
