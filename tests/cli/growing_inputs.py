"""Inputs that grow: each function writes one of a size `n` into a folder, for growth.py.

A function returns what to read, and may name the views that apply (INPUTS).
"""
import os
import random
import struct
import subprocess

from make_recording import (ADDR, BRANCH_STACK, CALLCHAIN, COMM, COMM_EXEC, CPU, Event, IDENTIFIER, IP, KERNEL, MMAP, MMAP2, PERIOD,
                            SAMPLE_ID_ALL, SPECIAL, SWITCH_EVENTS, SWITCH_OUT, TID, TIME, USER, common_features, record, text, texts,
                            u16, u32, u64, padded, write_file, write_pipe, attr, event_desc, bpf_program)

BASIC = IP | TID | TIME | PERIOD
FLAGS = SAMPLE_ID_ALL | MMAP | COMM | MMAP2
PAGE = 4096
PID = 4242424 # beyond the pids of living processes


class Recording:
    """Records of a file with one event; each has a later time than the one before."""

    def __init__(self, sample_type=BASIC, events=None, name="cpu-clock"):
        self.sample_type = sample_type
        self.events = events or [Event(name, [1], type=1, sample_type=sample_type, flags=FLAGS)]
        self.records = []
        self.time = 1000
        self.features = {}

    def tail(self, pid, tid, time=None):
        """The sample_id of a record that is not a sample."""
        self.time += 10
        body = u32(pid, tid) + u64(time if time is not None else self.time)
        return body + (u64(1) if self.sample_type & IDENTIFIER else b"")

    def add(self, kind, body, misc=0):
        self.records.append(record(kind, body, misc))

    def comm(self, pid, tid, name, misc=0):
        self.add("COMM", u32(pid, tid) + padded(name) + self.tail(pid, tid), misc)

    def fork(self, pid, tid, parent):
        self.add("FORK", u32(pid, parent, tid, parent) + u64(self.time) + self.tail(pid, tid))

    def map(self, pid, start, length, path, offset=0, inode=1, device=(8, 1), generation=0, protection=5):
        body = u32(pid, pid) + u64(start, length, offset) + u32(*device) + u64(inode, generation) + u32(protection, 2)
        self.add("MMAP2", body + padded(path) + self.tail(pid, pid), USER)

    def sample(self, pid, ip, chain=None, tid=None, time=None, misc=USER, rest=b"", period=1000):
        self.time += 10
        body = u64(1) if self.sample_type & IDENTIFIER else b""
        body += u64(ip) + u32(pid, pid if tid is None else tid) + u64(self.time if time is None else time)
        body += u64(period)
        if self.sample_type & CALLCHAIN:
            chain = [ip] if chain is None else chain
            body += u64(len(chain) + 1, (-512) & (1 << 64) - 1, *chain)
        self.add("SAMPLE", body + rest, misc)

    def write(self, folder, name="r.data"):
        path = os.path.join(folder, name)
        write_file(path, self.events, self.records, {**common_features(self.events), **self.features})
        return path


# ---- tasks and mappings -------------------------------------------------------------------------

def mapped(n, folder, starts, length=PAGE, sampled=None):
    r = Recording()
    r.comm(PID, PID, "maps")
    for i, start in enumerate(starts):
        r.map(PID, start, length if isinstance(length, int) else length(i), "/no/file%d" % (i % 10), i * PAGE, inode=i % 10 + 1)
    for start in (sampled or starts):
        r.sample(PID, start + 8)
    return r.write(folder)


def falling_maps(n, folder):
    return mapped(n, folder, [(n - i) * 2 * PAGE for i in range(n)])


def nested_maps(n, folder):
    return mapped(n, folder, [(i + 1) * PAGE for i in range(n)], lambda i: (2 * n - 2 * i) * PAGE)


def shuffled_maps(n, folder):
    starts = [(i + 1) * 2 * PAGE for i in range(n)]
    random.Random(1).shuffle(starts)
    return mapped(n, folder, starts)


def inner_maps(n, folder):
    """One large mapping, which others cut into pieces, from the middle to both ends."""
    r = Recording()
    r.map(PID, PAGE, 4 * n * PAGE, "/no/large")
    for i in range(n):
        at = (2 * n + (i if i % 2 else -i)) * PAGE + 2 * PAGE
        r.map(PID, at, 64, "/no/small", inode=2)
        r.sample(PID, at + 100)
    return r.write(folder)


def maps_and_samples(n, folder):
    """Each mapping changes what later samples mean."""
    r = Recording()
    for i in range(n):
        r.map(PID, (n - i) * 2 * PAGE, PAGE, "/no/file%d" % (i % 10), inode=i % 10 + 1)
        r.sample(PID, n * 2 * PAGE)
    return r.write(folder)


def files(n, folder):
    r = Recording()
    for i in range(n):
        r.map(PID, (i + 1) * 2 * PAGE, PAGE, "/no/such/file%d" % i, inode=i + 1)
        r.sample(PID, (i + 1) * 2 * PAGE)
    return r.write(folder)


def inodes(n, folder):
    """One path, ever other files."""
    r = Recording()
    for i in range(n):
        r.map(PID, (i + 1) * 2 * PAGE, PAGE, "/no/such/file", inode=i + 1, generation=i)
        r.sample(PID, (i + 1) * 2 * PAGE)
    return r.write(folder)


def made_files(n, folder):
    """Memory of one process under ever other names, and its perf map."""
    r = Recording()
    for i in range(n):
        r.map(PID, (i + 1) * 2 * PAGE, PAGE, "/memfd:%d (deleted)" % i, inode=i + 1)
        r.sample(PID, (i + 1) * 2 * PAGE)
    map_of(PID, ["%x 10 f%d" % (i * 2 * PAGE, i) for i in range(n)])
    return r.write(folder)


def tasks(n, folder):
    r = Recording()
    for i in range(n):
        r.comm(PID + i, PID + i, "task%d" % i)
        r.map(PID + i, 0x10000, PAGE, "/no/file")
        r.sample(PID + i, 0x10008)
    return r.write(folder)


def same_named_tasks(n, folder):
    r = Recording()
    for i in range(n):
        r.comm(PID + i, PID + i, "task")
        r.sample(PID + i, 0x10008)
    return r.write(folder)


def threads(n, folder):
    r = Recording()
    r.map(PID, 0x10000, PAGE, "/no/file")
    for i in range(n):
        r.comm(PID, PID + i, "thread%d" % i)
        r.sample(PID, 0x10008, tid=PID + i)
    return r.write(folder)


def comms(n, folder):
    r = Recording()
    for i in range(n):
        r.comm(PID, PID, "name%d" % i, COMM_EXEC if i % 2 else 0)
        r.sample(PID, 0x10008)
    return r.write(folder)


def forks(n, folder):
    """Children of a process with many mappings change one each."""
    r = Recording()
    for i in range(n):
        r.map(PID, (i + 1) * 2 * PAGE, PAGE, "/no/file")
    for i in range(1, n):
        r.fork(PID + i, PID + i, PID)
        r.map(PID + i, 0x1000, PAGE, "/no/other", inode=2)
        r.sample(PID + i, 0x1008)
    return r.write(folder)


def fork_chain(n, folder):
    r = Recording()
    r.comm(PID, PID, "chain")
    for i in range(n):
        r.map(PID + i, (i + 1) * 2 * PAGE, PAGE, "/no/file")
        r.sample(PID + i, 0x2008)
        r.fork(PID + i + 1, PID + i + 1, PID + i)
    return r.write(folder)


def made_forks(n, folder):
    """Children inherit memory with code."""
    r = Recording()
    for i in range(n):
        r.map(PID, (i + 1) * 2 * PAGE, PAGE, "//anon")
    for i in range(1, n):
        r.fork(PID + i, PID + i, PID)
        r.sample(PID + i, 0x2008)
    return r.write(folder)


def exits(n, folder):
    r = Recording()
    for i in range(n):
        r.fork(PID + i, PID + i, 1)
        r.sample(PID + i, 0x2008)
        r.add("EXIT", u32(PID + i, 1, PID + i, 1) + u64(r.time) + r.tail(PID + i, PID + i))
    return r.write(folder)


def namespaces(n, folder):
    r = Recording()
    for i in range(n):
        r.add("NAMESPACES", u32(PID, PID) + u64(7, *range(i, i + 14)) + r.tail(PID, PID))
        r.sample(PID, 0x2008)
    return r.write(folder)


def cgroups(n, folder):
    kinds = BASIC | 1 << 21
    r = Recording(kinds)
    for i in range(n):
        r.add("CGROUP", u64(i) + padded("/group%d" % i) + r.tail(PID, PID))
        r.sample(PID, 0x2008, rest=u64(i))
    return r.write(folder)


def kernel_symbols(n, folder):
    r = Recording()
    for i in range(n):
        at = (1 << 64) - (1 << 40) - i * 0x1000
        r.add("KSYMBOL", u64(at) + u32(0x100) + u16(1, 0) + padded("bpf_prog_%d" % i) + r.tail(-1, 0), KERNEL)
        r.sample(PID, at + 4, misc=KERNEL)
    return r.write(folder)


def text_pokes(n, folder):
    r = Recording()
    for i in range(n):
        at = (1 << 64) - (1 << 31) + 0x1000000 + i * 16
        r.add("TEXT_POKE", u64(at) + u16(5, 5) + bytes([0x0f, 0x1f, 0x44, 0, 0, 0xe9, 1, 2, 3, 4]) + bytes(2) + r.tail(-1, 0), KERNEL)
        r.sample(PID, at + 4, misc=KERNEL)
    return r.write(folder)


def switches(n, folder):
    r = Recording(events=[Event("cpu-clock", [1], type=1, sample_type=BASIC, flags=FLAGS | SWITCH_EVENTS)])
    for i in range(n):
        r.add("SWITCH", r.tail(PID + i % 100, PID + i % 100), SWITCH_OUT)
        r.add("SWITCH", r.tail(PID + i % 100, PID + i % 100))
        r.sample(PID + i % 100, 0x2008)
    return r.write(folder)


def lost(n, folder):
    r = Recording()
    for i in range(n):
        r.add(2, u64(1, 1) + r.tail(PID, PID))
        r.sample(PID, 0x2008)
    return r.write(folder)


# ---- the head -----------------------------------------------------------------------------------

def many_events(n, sample_type=BASIC | IDENTIFIER, kind=1, names="event%d"):
    return [Event(names % i, [i + 1], type=kind, config=i, sample_type=sample_type, flags=FLAGS) for i in range(n)]


def samples_of_events(events, r):
    for event in events:
        r.time += 10
        r.add("SAMPLE", u64(event.ids[0], 0x2008) + u32(PID, PID) + u64(r.time, 1000), USER)


def events(n, folder):
    r = Recording(events=many_events(n))
    samples_of_events(r.events, r)
    return r.write(folder)


def nameless_events(n, folder):
    r = Recording(events=many_events(n))
    samples_of_events(r.events, r)
    path = os.path.join(folder, "r.data")
    write_file(path, r.events, r.records, {})
    return path


def ids(n, folder):
    r = Recording(BASIC | IDENTIFIER, events=[Event("cpu-clock", list(range(1, n + 1)), type=1, sample_type=BASIC | IDENTIFIER, flags=FLAGS)])
    for i in range(n):
        r.time += 10
        r.add("SAMPLE", u64(i + 1, 0x2008) + u32(PID, PID) + u64(r.time, 1000), USER)
    return r.write(folder)


def piped_events(n, folder):
    path = os.path.join(folder, "r.data")
    r = Recording(events=many_events(n))
    samples_of_events(r.events, r)
    write_pipe(path, [record("HEADER_ATTR", event.attr + u64(event.ids[0])) for event in r.events] + r.records)
    return path


def event_updates(n, folder):
    path = os.path.join(folder, "r.data")
    r = Recording(events=many_events(n))
    samples_of_events(r.events, r)
    records = [record("HEADER_ATTR", event.attr + u64(event.ids[0])) for event in r.events]
    for event in r.events:
        records.append(record("EVENT_UPDATE", u64(2, event.ids[0]) + padded("updated%d" % event.ids[0])))
        records.append(record("EVENT_UPDATE", u64(0, event.ids[0]) + padded("unit")))
    write_pipe(path, records + r.records)
    return path


def event_types(n, folder):
    """Names of tracepoints, as old recorders write them."""
    r = Recording(events=many_events(n, kind=2))
    samples_of_events(r.events, r)
    types = b"".join(u64(i) + ("event%d" % i).encode().ljust(64, b"\0") for i in range(n))
    path = os.path.join(folder, "r.data")
    write_file(path, r.events, r.records, {}, types)
    return path


def tracepoints(n, folder):
    """Formats of tracepoints, and an event for each."""
    form = ("name: e%d\nID: %d\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
            "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"a=%%d\", REC->a\n")
    event_formats = b"".join(u64(len(form % (i, i))) + (form % (i, i)).encode() for i in range(n))
    data = b"\x17\x08\x44tracing0.5\0" + bytes([0, 8]) + u32(4096)
    data += b"header_page\0" + u64(0) + b"header_event\0" + u64(0)
    data += u32(0) + u32(1) + b"sys\0" + u32(n) + event_formats + u32(0) + u32(0) + u64(0)
    kinds = BASIC | IDENTIFIER | 1024
    r = Recording(events=many_events(n, sample_type=kinds, kind=2, names="sys:e%d"))
    for event in r.events:
        r.time += 10
        raw = u16(event.ids[0] - 1) + bytes(2) + u32(PID, 7)
        r.add("SAMPLE", u64(event.ids[0], 0x2008) + u32(PID, PID) + u64(r.time, 1000) + u32(len(raw)) + raw, USER)
    r.features = {1: data}
    return r.write(folder)


def groups(n, folder):
    """Groups, and samples that read them."""
    r = Recording(events=many_events(n))
    samples_of_events(r.events, r)
    r.features = {SPECIAL["groups"]: u32(n // 2) + b"".join(text("{group%d}" % i) + u32(2 * i, 2) for i in range(n // 2))}
    return r.write(folder)


def group_reads(n, folder):
    kinds = IDENTIFIER | IP | TID | TIME | 16
    group = [Event("event%d" % i, [i + 1], type=1, config=i, sample_type=kinds, read_format=12, flags=FLAGS) for i in range(100)]
    r = Recording(events=group)
    for i in range(n // 50):
        r.time += 10
        values = [word for k in range(100) for word in (i, k + 1)]
        r.add("SAMPLE", u64(1, 0x2008) + u32(PID, PID) + u64(r.time) + u64(100, *values), USER)
    return r.write(folder)


def build_ids(n, folder):
    r = Recording()
    for i in range(n):
        r.map(PID, (i + 1) * 2 * PAGE, PAGE, "/no/such/file%d" % i, inode=i + 1)
        r.sample(PID, (i + 1) * 2 * PAGE)
    r.features = {SPECIAL["build_id"]: b"".join(
        record(0, u32(-1) + struct.pack("<I", i) + bytes(range(16)) + bytes(4) + padded("/no/such/file%d" % i), USER) for i in range(n))}
    return r.write(folder)


def same_build_ids(n, folder):
    r = Recording()
    r.map(PID, 0x10000, PAGE, "/no/such/file")
    for _ in range(n):
        r.sample(PID, 0x10008)
    r.features = {SPECIAL["build_id"]: b"".join(
        record(0, u32(i) + struct.pack("<I", i) + bytes(range(16)) + bytes(4) + padded("/no/such/file"), USER) for i in range(n))}
    return r.write(folder)


def described(n, folder):
    """Features with long lists."""
    r = Recording()
    r.sample(PID, 0x2008)
    caps = b"".join(text("cap%d" % i) + text("1") for i in range(n))
    r.features = {
        SPECIAL["cmdline"]: texts(*["argument%d" % i for i in range(n)]),
        SPECIAL["numa"]: u32(n) + b"".join(u32(i) + u64(8 << 20, 1 << 20) + text(str(i)) for i in range(n)),
        SPECIAL["pmus"]: u32(n) + b"".join(u32(i) + text("pmu%d" % i) for i in range(n)),
        SPECIAL["cache"]: u32(1, n) + b"".join(u32(1, 64, 64, 8) + text("Data") + text("32K") + text(str(i)) for i in range(n)),
        SPECIAL["cpu_caps"]: u32(n) + caps,
        SPECIAL["hybrid"]: u32(n) + b"".join(text("cpu%d" % i) + text(str(i)) for i in range(n)),
        SPECIAL["memory"]: u64(1, 0x8000000, n) + b"".join(u64(i, 70, 1, 255) for i in range(n)),
    }
    return r.write(folder)


def bpf_programs(n, folder):
    r = Recording()
    for i in range(n):
        r.sample(PID, 0xffffffffa0000000 + i * 0x1000, misc=KERNEL)
    r.features = {SPECIAL["bpf_programs"]: u32(n) + b"".join(bpf_program(i, "p%d" % i, [0xffffffffa0000000 + i * 0x1000], [99]) for i in range(n))}
    return r.write(folder)


def tool_lists(n, folder):
    """Records of tools: CPUs, threads, counts."""
    path = os.path.join(folder, "r.data")
    event = Event("cycles", [5], type=0)
    records = [record("HEADER_ATTR", event.attr + u64(5))]
    for i in range(n // 100):
        records.append(record("CPU_MAP", u16(0, 400) + u16(*[k * 2 for k in range(400)]) + bytes(4)))
        records.append(record("THREAD_MAP", u64(100) + b"".join(u64(k) + b"name".ljust(16, b"\0") for k in range(100))))
        records.append(record("ID_INDEX", u64(100) + b"".join(u64(k, 0, 0, 0) for k in range(100))))
    for i in range(n):
        records.append(record("STAT", u64(5) + u32(i, 0) + u64(1, 2, 3)))
        records.append(record("STAT_ROUND", u64(1, 5000 + i)))
    write_pipe(path, records)
    return path


def traces(n, folder):
    """A CPU's trace in many AUX areas."""
    trace = Event("intel_pt//", [5], type=8, config=0x300e601, sample_type=IP | TID | TIME | CPU | IDENTIFIER)
    r = Recording(events=[trace])
    r.add("AUXTRACE_INFO", u32(1, 0) + u64(1, 2, 3, 4))
    for i in range(n):
        r.add(11, u64(i * 64, 64, 0) + u32(PID, PID) + u64(1500 + i, 0, 5))
        r.records.append(record("AUXTRACE", u64(64, i * 64, 0) + u32(0, PID, 0, 0)) + b"\2\x82" * 32)
    r.features = {SPECIAL["auxtrace"]: u64(0)}
    return r.write(folder)


# ---- samples ------------------------------------------------------------------------------------

def stacks(n, folder):
    r = Recording(BASIC | CALLCHAIN)
    generator = random.Random(1)
    for _ in range(n):
        r.sample(PID, 0x2008, [generator.randrange(1 << 30) for _ in range(20)])
    return r.write(folder)


def deep_stacks(n, folder):
    """Few stacks, as deep as records can be; each is another one."""
    r = Recording(BASIC | CALLCHAIN)
    for i in range(max(1, n // 1000)):
        r.sample(PID, 0x2008, [0x10000 + 16 * (k ^ i) for k in range(7000)])
    return r.write(folder)


def alike_stacks(n, folder):
    """Deep stacks that differ in their root."""
    r = Recording(BASIC | CALLCHAIN)
    for i in range(max(1, n // 500)):
        r.sample(PID, 0x2008, [0x10000] * 2000 + [0x20000 + 16 * i])
    return r.write(folder)


def falling_times(n, folder):
    r = Recording()
    for i in range(n):
        r.sample(PID, 0x2008 + 16 * (i % 100), time=1000 + 10 * (n - i))
    return r.write(folder)


def shuffled_times(n, folder):
    r = Recording()
    times = [1000 + 10 * i for i in range(n)]
    random.Random(1).shuffle(times)
    for i, time in enumerate(times):
        r.sample(PID, 0x2008 + 16 * (i % 100), time=time)
    return r.write(folder)


def rounds(n, folder):
    r = Recording()
    for i in range(n):
        r.sample(PID, 0x2008 + 16 * (i % 100), time=1000 + 10 * (i ^ 1))
        r.add("FINISHED_ROUND", b"")
    return r.write(folder)


def branch_stacks(n, folder):
    r = Recording(BASIC | BRANCH_STACK, events=[Event("cycles", [1], type=0, sample_type=BASIC | BRANCH_STACK, flags=FLAGS, branch=9)])
    generator = random.Random(1)
    for _ in range(n // 10):
        entries = [generator.randrange(1 << 30) for _ in range(64)]
        rest = u64(32) + b"".join(u64(entries[2 * i], entries[2 * i + 1], 1) for i in range(32))
        r.sample(PID, 0x2008, rest=rest)
    return r.write(folder)


def long_branch_stacks(n, folder):
    r = Recording(BASIC | BRANCH_STACK, events=[Event("cycles", [1], type=0, sample_type=BASIC | BRANCH_STACK, flags=FLAGS, branch=9)])
    for i in range(max(1, n // 1000)):
        r.sample(PID, 0x2008, rest=u64(2500) + b"".join(u64(0x1000 + k, 0x2000 + k + i, 1) for k in range(2500)))
    return r.write(folder)


def addresses(n, folder):
    """Everywhere else, with an address of data."""
    r = Recording(BASIC | ADDR)
    for i in range(n):
        r.time += 10
        r.add("SAMPLE", u64(0x1000 + 16 * i) + u32(PID, PID) + u64(r.time, i * 64, 1000), USER)
    return r.write(folder)


def deferred(n, folder):
    """Stacks that wait for their user part, which never comes."""
    flags = FLAGS | 1 << 38
    r = Recording(BASIC | CALLCHAIN, events=[Event("cycles", [1], type=0, sample_type=BASIC | CALLCHAIN, flags=flags)])
    for i in range(n):
        r.time += 10
        r.add("SAMPLE", u64(0x2008) + u32(PID, PID) + u64(r.time, 1000) + u64(2, (-640) & (1 << 64) - 1, i), USER)
    return r.write(folder)


def compressed(folder, plain, size, name="r.data"):
    """Packs records into COMPRESSED records of at most `size` bytes."""
    packed = subprocess.run(["zstd", "-q", "-c", "-3"], input=plain, capture_output=True, check=True).stdout
    records = [record("COMPRESSED", packed[at:at + size]) for at in range(0, len(packed), size)]
    events_ = [Event("cpu-clock", [1], type=1, sample_type=BASIC, flags=FLAGS)]
    path = os.path.join(folder, name)
    write_file(path, events_, records, {**common_features(events_), SPECIAL["compressed"]: u32(1, 1, 3, 100, 65535)})
    return path


def held_compressed(n, folder):
    """Samples that differ in time alone, without rounds."""
    r = Recording()
    for i in range(n):
        r.sample(PID, 0x2008)
    return compressed(folder, b"".join(r.records), 60000)


# ---- text ---------------------------------------------------------------------------------------

def written(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as out:
        out.write(content)
    return path


def folded_lines(n, folder):
    return written(folder, "t.folded", "".join("prog;main;f%d;g%d;h 1\n" % (i, i % 7) for i in range(n)))


def same_folded_lines(n, folder):
    return written(folder, "t.folded", "prog;main;f;g 1\n" * n)


def folded_comms(n, folder):
    return written(folder, "t.folded", "".join("prog%d;main;f 1\n" % i for i in range(n)))


def folded_tasks(n, folder):
    return written(folder, "t.folded", "".join("prog-%d/%d;main;f 1\n" % (i + 1, i + 1) for i in range(n)))


def folded_deep(n, folder):
    return written(folder, "t.folded", "prog;" + ";".join("f%d" % i for i in range(n)) + " 1\n")


def folded_recursion(n, folder):
    return written(folder, "t.folded", "prog;" + ";".join("f" for _ in range(n)) + " 1\n")


def folded_prefixes(n, folder):
    """Each stack is the beginning of a deep one; the text grows with n."""
    deep = ["f%d" % i for i in range(300)]
    return written(folder, "t.folded", "".join("prog;" + ";".join(deep[:1 + i % 300]) + ";x%d 1\n" % i for i in range(n // 30)))


def folded_wide(n, folder):
    """Many children of one function."""
    return written(folder, "t.folded", "".join("prog;main;f%d 1\n" % ((i * 7919) % n) for i in range(n)))


def folded_no_weights(n, folder):
    return written(folder, "t.folded", "prog;main;f 1\n" + "prog;main;f\n" * n)


def folded_blanks(n, folder):
    return written(folder, "t.folded", "prog;main;f 1" + " " * (10 * n) + "\n" + "a " * (5 * n) + "\n")


def name_of(kind, n):
    return {"namespaces": "(anonymous namespace)::" * (n // 2) + "f", "templates": "a<" * n + "int" + ">" * n, "open": "a<" * (5 * n),
            "closed": "a" + ">" * (10 * n), "parentheses": "f" + "(" * n + ")" * n, "blanks": "a " * (5 * n),
            "lambdas": "{lambda(int)#1}::" * n, "java": "Lcom/example/A;::" * n + "f(Ljava/lang/String;)V", "dots": "a." * (5 * n),
            "python": "py::f:" + "/a" * (5 * n) + "/b.py", "dollars": "a$" * (5 * n), "slashes": "/a" * (5 * n),
            "operators": "operator<" * n, "commas": "f<" + "int, " * n + "int>", "rust": "<a as b>::" * n + "c",
            "underscores": "_" * (10 * n), "mangled": "_ZN" + "1a" * (5 * n) + "E", "mangled_rust": "_R" + "NvC1a" * (2 * n),
            "ocaml": "camlA" + "__b" * (3 * n), "tiers": "LazyCompile:~" * n + "f", "quotes": "'" * (10 * n), "braces": "{" * (5 * n) + "}" * (5 * n),
            "brackets": "[" * (5 * n) + "]" * (5 * n), "utf8": "é" * (5 * n), "controls": "\x1b[1m" * (2 * n)}[kind]


NAMES = ["namespaces", "templates", "open", "closed", "parentheses", "blanks", "lambdas", "java", "dots", "python", "dollars", "slashes", "operators",
         "commas", "rust", "underscores", "mangled", "mangled_rust", "ocaml", "tiers", "quotes", "braces", "brackets", "utf8", "controls"]


def long_name(kind):
    def write(n, folder):
        return written(folder, "t.folded", "prog;main;%s 1\n" % name_of(kind, n))
    write.__name__ = "long_name_" + kind
    return write


def number26(value):
    digits = chr(97 + value % 26)
    value //= 26
    while value:
        digits = chr(65 + value % 26) + digits
        value //= 26
    return digits


def d_name(depth):
    """A type whose parts refer back to parts that refer back…: it doubles with each level."""
    name = "_D1fF"
    last = len(name)
    name += "B2ii"
    for _ in range(depth):
        at = len(name)
        name += "B2"
        for _ in (1, 2):
            name += "Q" + number26(len(name) - last)
        last = at
    return name + "Zv"


def d_names(n, folder):
    """Each line has a D symbol that would expand to gigabytes."""
    return written(folder, "t.folded", "".join("prog;%s%d 1\n" % (d_name(40), i) for i in range(n // 100 + 1)))


def perf_script(n, folder):
    return written(folder, "t.txt", "".join("prog %d [000] %d.000001: 1000 cpu-clock: \n\t%16x f%d+0x1 (/bin/prog)\n\t%16x main+0x2 (/bin/prog)\n\n"
                                            % (PID + i % 50, i, 4096 + i, i, 8192) for i in range(n)))


def perf_script_deep(n, folder):
    return written(folder, "t.txt", "prog 1 [000] 1.000001: 1000 cpu-clock: \n" + "".join("\t%16x f%d+0x1 (/bin/prog)\n" % (4096 + i, i)
                                                                                          for i in range(n)) + "\n")


def perf_script_headers(n, folder):
    return written(folder, "t.txt", "prog 1 [000] 1.000001: 1000 cpu-clock: \n\t1000 f+0x1 (/bin/prog)\n\n" +
                   "prog 1 [000] 1.000001: 1000 cpu-clock: \n" * n)


def perf_script_long_line(n, folder):
    return written(folder, "t.txt", "prog 1 [000] 1.000001: 1000 cpu-clock: \n\t1000 f" + "(a+b" * (3 * n) + "+0x1 (/bin/" + "(x" * (3 * n) + ")\n\n")


# ---- files beside a recording -------------------------------------------------------------------

MAPS_WRITTEN = []


def map_of(pid, lines):
    """Writes the perf map of a process that has ended."""
    path = "/tmp/perf-%d.map" % pid
    if path not in MAPS_WRITTEN:
        MAPS_WRITTEN.append(path)
    with open(path, "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")


def with_map(n, folder, lines):
    r = Recording()
    r.comm(PID, PID, "java")
    r.map(PID, 0x10000, 1 << 40, "//anon")
    for i in range(n):
        r.sample(PID, 0x10000 + 32 * i)
    map_of(PID, lines)
    return r.write(folder)


def perf_map(n, folder):
    return with_map(n, folder, ["%x 20 Lcom/example/A;::f%d" % (0x10000 + 32 * i, i) for i in range(n)])


def perf_map_falling(n, folder):
    return with_map(n, folder, ["%x 20 f%d" % (0x10000 + 32 * (n - i), i) for i in range(n)])


def perf_map_nested(n, folder):
    return with_map(n, folder, ["%x %x f%d" % (0x10000 + 16 * i, 32 * (n - i), i) for i in range(n)])


def perf_map_overlapping(n, folder):
    return with_map(n, folder, ["%x %x f%d" % (0x10000 + 32 * i, 32 * n, n - i) for i in reversed(range(n))])


def perf_map_python(n, folder):
    return with_map(n, folder, ["%x 20 py::f%d:/lib/m%d.py" % (0x10000 + 32 * i, i, i % 9) for i in range(n)])


def jit_dump(n, folder, address, size=16, name="f%d", extra=None):
    path = os.path.join(folder, "jit-%d.dump" % PID)
    out = [u32(0x4A695444, 1, 40, 62, 0, PID) + u64(1000, 0)]
    for i in range(n):
        label = (name % i).encode() + b"\0"
        code = bytes([0x90]) * size
        if extra:
            out.append(extra(i, address(i)))
        out.append(u32(0, 56 + len(label) + size) + u64(1000 + i) + u32(PID, PID) + u64(address(i), address(i), size, i) + label + code)
    with open(path, "wb") as file:
        file.write(b"".join(out))
    r = Recording()
    r.comm(PID, PID, "java")
    status = os.stat(path)
    r.map(PID, 0x1000, PAGE, path, inode=status.st_ino, device=(os.major(status.st_dev), os.minor(status.st_dev)))
    r.map(PID, 0x10000, 1 << 40, "//anon")
    for i in range(n):
        r.sample(PID, address(i) + 4)
    return r.write(folder)


def jit_functions(n, folder):
    return jit_dump(n, folder, lambda i: 0x10000 + 32 * i)


def jit_falling(n, folder):
    return jit_dump(n, folder, lambda i: 0x10000 + 32 * (n - i))


def jit_again(n, folder):
    """All functions at one address, one after the other."""
    return jit_dump(n, folder, lambda i: 0x10000)


def jit_overlapping(n, folder):
    return jit_dump(n, folder, lambda i: 0x10000 + 4 * i, 64)


def jit_lines(n, folder):
    def lines(i, address):
        entries = b"".join(u64(address + k) + u32(k, 0) + b"file%d.js\0" % (i % 5) for k in range(4))
        return u32(2, 32 + len(entries)) + u64(1000 + i) + u64(address, 4) + entries
    return jit_dump(n, folder, lambda i: 0x10000 + 32 * i, extra=lines)


def jit_moves(n, folder):
    path = jit_dump(1, folder, lambda i: 0x10000)
    with open(os.path.join(folder, "jit-%d.dump" % PID), "ab") as out:
        for i in range(n):
            out.write(u32(1, 64) + u64(2000 + i) + u32(PID, PID) + u64(0, 0x10000 + 32 * (i % 100), 0x10000 + 32 * ((i + 1) % 100), 16, 0))
    return path


# ---- ELF files ----------------------------------------------------------------------------------

CODE = 0x10000


def uleb(value):
    out = b""
    while True:
        byte = value & 127
        value >>= 7
        out += bytes([byte | (128 if value else 0)])
        if not value:
            return out


def elf(sections, code_size, machine=62):
    """Makes an ELF file with code at CODE; `sections`: (name, type, flags, address, bytes, link, info, entry size)."""
    sections = [("", 0, 0, 0, b"", 0, 0, 0), (".text", 1, 6, CODE, bytes(code_size), 0, 0, 0)] + sections
    names = b""
    offsets = []
    for section in sections + [(".shstrtab",)]:
        offsets.append(len(names))
        names += section[0].encode() + b"\0"
    sections = sections + [(".shstrtab", 3, 0, 0, names, 0, 0, 0)]
    body = b""
    headers = b""
    at = CODE # the code's offset is its address
    for name, (_, kind, flags, address, content, link, info, entry) in zip(offsets, sections):
        headers += u32(name, kind) + u64(flags, address, at if kind else 0, len(content)) + u32(link, info) + u64(1, entry)
        body += content
        at += len(content)
    head = b"\x7fELF\2\1\1" + bytes(9) + u16(2, machine) + u32(1) + u64(CODE, 64, at) + u32(0) + u16(64, 56, 1, 64, len(sections), len(sections) - 1)
    head += u32(1, 5) + u64(CODE, CODE, CODE, code_size, code_size, PAGE)
    return head.ljust(CODE, b"\0") + body + headers


def with_object(folder, image, ips, name="prog", chain=False):
    path = os.path.join(folder, name)
    with open(path, "wb") as out:
        out.write(image)
    status = os.stat(path)
    r = Recording(BASIC | CALLCHAIN if chain else BASIC)
    r.comm(PID, PID, "prog")
    r.map(PID, CODE, 1 << 32, path, CODE, inode=status.st_ino, device=(os.major(status.st_dev), os.minor(status.st_dev)))
    for ip in ips:
        r.sample(PID, ip)
    return r.write(folder)


def symbol_sections(symbols, names):
    table = bytes(24) + b"".join(struct.pack("<IBBHQQ", name, info, 0, 1, value, size) for name, info, value, size in symbols)
    return [(".symtab", 2, 0, 0, table, 3, 1, 24), (".strtab", 3, 0, 0, names, 0, 0, 0)]


def with_symbols(n, folder, symbols, names):
    return with_object(folder, elf(symbol_sections(symbols, names), 32 * n + 64), [CODE + 32 * i + 4 for i in range(n)])


def symbols(n, folder):
    names = b"\0" + b"".join(b"f%07d\0" % i for i in range(n))
    return with_symbols(n, folder, [(1 + 9 * i, 0x12, CODE + 32 * i, 32) for i in range(n)], names)


def symbols_falling(n, folder):
    names = b"\0" + b"".join(b"f%07d\0" % i for i in range(n))
    return with_symbols(n, folder, [(1 + 9 * i, 0x12, CODE + 32 * (n - 1 - i), 32) for i in range(n)], names)


def overlapping_names(n, folder):
    """Each symbol's name is the end of one long name."""
    names = b"\0" + b"f" * (4 * n) + b"\0"
    return with_symbols(n, folder, [(1 + 4 * i, 0x12, CODE + 32 * i, 32) for i in range(n)], names)


def overlapping_mangled_names(n, folder):
    names = b"\0" + b"_Z1fi" * n + b"\0"
    return with_symbols(n, folder, [(1 + 5 * i, 0x12, CODE + 32 * i, 32) for i in range(n)], names)


def symbols_at_one_place(n, folder):
    names = b"\0" + b"_" * (4 * n) + b"f\0"
    return with_symbols(n, folder, [(1 + i, 0x12, CODE, 32) for i in range(n)], names)


def mangled_at_one_place(n, folder):
    names = b"\0" + b"".join(b"_ZN1a1b1cIiE%07dE\0" % i for i in range(n))
    return with_symbols(n, folder, [(1 + 22 * i, 0x12, CODE, 32) for i in range(n)], names)


def nested_symbols(n, folder):
    names = b"\0" + b"".join(b"f%07d\0" % i for i in range(n))
    return with_symbols(n, folder, [(1 + 9 * i, 0x12, CODE + 16 * i, 32 * n - 32 * i + 8) for i in range(n)], names)


def dead_symbols(n, folder):
    """A large symbol, then ever smaller ones that all end before the addresses that are asked for."""
    names = b"\0" + b"".join(b"f%07d\0" % i for i in range(n))
    table = [(1, 0x12, CODE, 64 * n)] + [(1 + 9 * i, 0x12, CODE + i, 2 * n - 2 * i) for i in range(1, n)]
    return with_object(folder, elf(symbol_sections(table, names), 64 * n + 64), [CODE + 4 * n + 8 * i for i in range(n)])


def source_symbols(n, folder):
    """Local symbols of source files, at one address."""
    names = b"\0" + b"".join(b"f%07d\0" % (i % 9) for i in range(n))
    return with_symbols(n, folder, [(1 + 9 * i, 4 if i % 2 == 0 else 2, CODE + 32 * (i // 100), 32) for i in range(n)], names)


def many_sections(n, folder):
    n = min(n, 60000)
    extra = [(".text.%d" % i, 1, 6, CODE + 32 * i, b"\x90", 0, 0, 0) for i in range(n)]
    return with_object(folder, elf(extra, 32 * n + 64), [CODE + 32 * i + 4 for i in range(n)])


# DWARF 5: abbreviation 1 is a unit, 2 a function, 3 an inlined copy.
DW_UT = struct.Struct("<HBBI")


def abbreviations(*extra):
    out = uleb(1) + uleb(0x11) + b"\1" + uleb(0x10) + uleb(0x17) + uleb(0x11) + uleb(1) + uleb(0x12) + uleb(6) + b"\0\0"
    out += uleb(2) + uleb(0x2e) + b"\1" + uleb(3) + uleb(8) + uleb(0x11) + uleb(1) + uleb(0x12) + uleb(6) + b"\0\0"
    out += uleb(3) + uleb(0x1d) + b"\1" + uleb(3) + uleb(8) + uleb(0x11) + uleb(1) + uleb(0x12) + uleb(6) + b"\0\0"
    out += uleb(4) + uleb(0x11) + b"\1" + uleb(0x10) + uleb(0x17) + uleb(0x55) + uleb(0x17) + b"\0\0"
    out += uleb(5) + uleb(0x2e) + b"\0" + uleb(3) + uleb(8) + uleb(0x55) + uleb(0x17) + b"\0\0"
    out += uleb(6) + uleb(0x2e) + b"\0" + uleb(3) + uleb(14) + uleb(0x11) + uleb(1) + uleb(0x12) + uleb(6) + b"\0\0"
    return out + b"".join(extra) + b"\0"


def unit(dies, abbreviation=0):
    body = DW_UT.pack(5, 1, 8, abbreviation) + dies + b"\0"
    return u32(len(body)) + body


def root(low, size, lines=0):
    return b"\1" + u32(lines) + u64(low) + u32(size)


def function(low, size, name, code=2):
    return bytes([code]) + name + b"\0" + u64(low) + u32(size)


def line_program(rows):
    """One sequence with a row for each (address, line)."""
    head = bytes([1, 1, 1, 0xfb, 14, 13]) + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
    head += bytes([1, 1, 8, 1]) + b"/src\0" + bytes([1, 1, 8, 1]) + b"a.c\0"
    code = b""
    last = 1
    for address, line in rows:
        code += b"\0\x09\2" + u64(address) + b"\3" + sleb(line - last) + b"\1"
        last = line
    code += b"\2" + uleb(4) + b"\0\1\1"
    after = head + code
    body = u16(5) + bytes([8, 0]) + u32(len(head)) + after
    return u32(len(body)) + body


def sleb(value):
    out = b""
    while True:
        byte = value & 127
        value >>= 7
        if (value == 0 and not byte & 64) or (value == -1 and byte & 64):
            return out + bytes([byte])
        out += bytes([byte | 128])


def dwarf(info, abbrev=None, lines=b"", **others):
    sections = [(".debug_info", 1, 0, 0, info, 0, 0, 0), (".debug_abbrev", 1, 0, 0, abbrev or abbreviations(), 0, 0, 0)]
    if lines:
        sections.append((".debug_line", 1, 0, 0, lines, 0, 0, 0))
    return sections + [("." + name, 1, 0, 0, content, 0, 0, 0) for name, content in others.items()]


def with_dwarf(n, folder, sections, ips=None):
    return with_object(folder, elf(sections, 32 * n + 64), ips or [CODE + 32 * i + 4 for i in range(n)])


def functions(n, folder):
    dies = root(CODE, 32 * n) + b"".join(function(CODE + 32 * i, 32, b"f%d" % i) + b"\0" for i in range(n))
    rows = [(CODE + 32 * i, i + 1) for i in range(n)]
    return with_dwarf(n, folder, dwarf(unit(dies), lines=line_program(rows)))


def units(n, folder):
    info = []
    programs = []
    at = 0
    for i in range(n):
        programs.append(line_program([(CODE + 32 * i, i + 1)]))
        info.append(unit(root(CODE + 32 * i, 32, at) + function(CODE + 32 * i, 32, b"f%d" % i) + b"\0"))
        at += len(programs[-1])
    return with_dwarf(n, folder, dwarf(b"".join(info), lines=b"".join(programs)))


def units_of_one_line_program(n, folder):
    info = [unit(root(CODE + 32 * i, 32) + function(CODE + 32 * i, 32, b"f%d" % i) + b"\0") for i in range(n)]
    return with_dwarf(n, folder, dwarf(b"".join(info), lines=line_program([(CODE + 32 * i, i + 1) for i in range(n)])))


def units_of_one_abbreviation_table(n, folder):
    extra = b"".join(uleb(100 + i) + uleb(0x34) + b"\0" + uleb(3) + uleb(8) + b"\0\0" for i in range(n))
    info = [unit(root(CODE + 32 * i, 32) + function(CODE + 32 * i, 32, b"f%d" % i) + b"\0") for i in range(n)]
    return with_dwarf(n, folder, dwarf(b"".join(info), abbreviations(extra), line_program([(CODE, 1)])))


def units_of_overlapping_abbreviations(n, folder):
    """Each unit's table begins inside the one before."""
    one = uleb(200) + uleb(0x34) + b"\0" + uleb(3) + uleb(8) + b"\0\0"
    table = one * n + abbreviations()
    info = [unit(root(CODE + 32 * i, 32) + function(CODE + 32 * i, 32, b"f%d" % i) + b"\0", i * len(one)) for i in range(n)]
    return with_dwarf(n, folder, dwarf(b"".join(info), table, line_program([(CODE, 1)])))


def units_of_two_abbreviation_tables(n, folder):
    extra = b"".join(uleb(100 + i) + uleb(0x34) + b"\0" + uleb(3) + uleb(8) + b"\0\0" for i in range(n))
    table = abbreviations(extra)
    info = [unit(root(CODE + 32 * i, 32) + function(CODE + 32 * i, 32, b"f%d" % i) + b"\0", len(table) * (i % 2)) for i in range(n)]
    return with_dwarf(n, folder, dwarf(b"".join(info), table * 2, line_program([(CODE, 1)])))


def wide_abbreviation(n, folder):
    """Functions of one byte, with attributes that take no bytes."""
    names = b"".join(uleb(0x2000 + i % 1000) + uleb(0x19) for i in range(n))
    wide = uleb(7) + uleb(0x2e) + b"\0" + uleb(0x11) + uleb(0x21) + sleb(CODE) + names + b"\0\0"
    return with_dwarf(n, folder, dwarf(unit(root(CODE, 32 * n) + b"\7" * n), abbreviations(wide), line_program([(CODE, 1)])))


def wide_root(n, folder):
    names = b"".join(uleb(0x2000 + i % 1000) + uleb(0x19) for i in range(n))
    wide = uleb(1) + uleb(0x11) + b"\1" + names + uleb(0x11) + uleb(1) + uleb(0x12) + uleb(6) + b"\0\0\0"
    info = [unit(b"\1" + u64(CODE + 32 * i) + u32(32)) for i in range(n)]
    return with_dwarf(n, folder, dwarf(b"".join(info), wide, line_program([(CODE, 1)])))


def ranges_table(entries):
    body = u16(5) + bytes([8, 0]) + u32(0) + b"".join(b"\7" + u64(start) + uleb(size) for start, size in entries) + b"\0"
    return u32(len(body)) + body


def units_of_one_range_list(n, folder):
    info = [unit(b"\4" + u32(0) + u32(12) + function(CODE + 32 * i, 32, b"f%d" % i) + b"\0") for i in range(n)]
    return with_dwarf(n, folder, dwarf(b"".join(info), lines=line_program([(CODE, 1)]),
                                       debug_rnglists=ranges_table([(CODE + 32 * i, 32) for i in range(n)])))


def units_of_one_empty_range_list(n, folder):
    info = [unit(b"\4" + u32(0) + u32(12) + function(CODE + 32 * i, 32, b"f%d" % i) + b"\0") for i in range(n)]
    return with_dwarf(n, folder, dwarf(b"".join(info), lines=line_program([(CODE, 1)]),
                                       debug_rnglists=ranges_table([(CODE + 32 * i, 0) for i in range(n)] + [(CODE, 32 * n)])))


def functions_of_one_range_list(n, folder):
    dies = root(CODE, 32 * n) + b"".join(b"\5f%d\0" % i + u32(12) for i in range(n))
    return with_dwarf(n, folder, dwarf(unit(dies), lines=line_program([(CODE, 1)]),
                                       debug_rnglists=ranges_table([(CODE + 32 * i, 32) for i in range(n)])))


def functions_of_one_empty_range_list(n, folder):
    dies = root(CODE, 32 * n) + b"".join(b"\5f%d\0" % i + u32(12) for i in range(n))
    return with_dwarf(n, folder, dwarf(unit(dies), lines=line_program([(CODE, 1)]),
                                       debug_rnglists=ranges_table([(CODE + 32 * i, 0) for i in range(n)])))


def functions_of_overlapping_names(n, folder):
    dies = root(CODE, 32 * n) + b"".join(b"\6" + u32(4 * i) + u64(CODE + 32 * i) + u32(32) for i in range(n))
    return with_dwarf(n, folder, dwarf(unit(dies), lines=line_program([(CODE, 1)]), debug_str=b"f" * (4 * n) + b"\0"))


def deep_inlining(n, folder):
    """Each copy is inlined into the one before."""
    dies = root(CODE, 32 * n) + function(CODE, 32 * n, b"main")
    dies += b"".join(function(CODE + 16 * i, 32 * n - 32 * i, b"i%d" % i, 3) for i in range(1, n)) + b"\0" * n
    return with_dwarf(n, folder, dwarf(unit(dies), lines=line_program([(CODE, 1)])), [CODE + 16 * i + 4 for i in range(n)])


def wide_inlining(n, folder):
    dies = root(CODE, 32 * n) + function(CODE, 32 * n, b"main")
    dies += b"".join(function(CODE + 32 * i, 32, b"i%d" % i, 3) + b"\0" for i in range(n)) + b"\0"
    return with_dwarf(n, folder, dwarf(unit(dies), lines=line_program([(CODE, 1)])))


def references(n, folder):
    """Inlined copies that refer to others, which refer to others."""
    extra = uleb(8) + uleb(0x1d) + b"\0" + uleb(0x31) + uleb(0x13) + uleb(0x11) + uleb(1) + uleb(0x12) + uleb(6) + b"\0\0"
    head = root(CODE, 32 * n) + function(CODE, 32 * n, b"main")
    first = 12 + len(head)
    dies = b"".join(b"\x08" + u32(first + 17 * max(0, i - 1)) + u64(CODE + 32 * i) + u32(32) for i in range(n))
    return with_dwarf(n, folder, dwarf(unit(head + dies + b"\0"), abbreviations(extra), line_program([(CODE, 1)])))


def source_files(n, folder):
    """A line program with many files, of one folder with a long name."""
    head = bytes([1, 1, 1, 0xfb, 14, 13]) + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
    head += bytes([1, 1, 8, 1]) + b"/src" * n + b"\0"
    head += bytes([1, 1, 8]) + uleb(n) + b"".join(b"f%d.c\0" % i for i in range(n))
    code = b"".join(b"\0\x09\2" + u64(CODE + 32 * i) + b"\4" + uleb(i) + b"\1" for i in range(n)) + b"\2\4\0\1\1"
    body = u16(5) + bytes([8, 0]) + u32(len(head)) + head + code
    dies = root(CODE, 32 * n) + function(CODE, 32 * n, b"main") + b"\0"
    return with_dwarf(n, folder, dwarf(unit(dies), lines=u32(len(body)) + body))


def sequences(n, folder):
    """Line programs with many sequences, which overlap."""
    head = bytes([1, 1, 1, 0xfb, 14, 13]) + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
    head += bytes([1, 1, 8, 1]) + b"/src\0" + bytes([1, 1, 8, 1]) + b"a.c\0"
    code = b"".join(b"\0\x09\2" + u64(CODE + 16 * i) + b"\1\2" + uleb(32 * n - 32 * i) + b"\0\1\1" for i in reversed(range(n)))
    body = u16(5) + bytes([8, 0]) + u32(len(head)) + head + code
    dies = root(CODE, 32 * n) + function(CODE, 32 * n, b"main") + b"\0"
    return with_dwarf(n, folder, dwarf(unit(dies), lines=u32(len(body)) + body))


def packed(n, folder):
    """Names that the recording itself carries."""
    path = symbols(n, folder)
    subprocess.run([os.environ["TALLY"], "pack", "-o", os.path.join(folder, "packed"), path], check=True, stderr=subprocess.DEVNULL)
    for name in os.listdir(folder):
        if name != "packed":
            os.unlink(os.path.join(folder, name))
    return os.path.join(folder, "packed")


INPUTS = {
    "recording": [falling_maps, nested_maps, shuffled_maps, inner_maps, maps_and_samples, files, inodes, tasks, same_named_tasks, threads, comms, forks,
                  fork_chain, made_forks, exits, namespaces, cgroups, kernel_symbols, text_pokes, switches, lost, events, nameless_events, ids,
                  piped_events, event_updates, event_types, tracepoints, groups, group_reads, build_ids, same_build_ids, described, bpf_programs,
                  tool_lists, traces, stacks, deep_stacks, alike_stacks, falling_times, shuffled_times, rounds, branch_stacks, long_branch_stacks,
                  addresses, deferred, held_compressed],
    "object": [made_files, perf_map, perf_map_falling, perf_map_nested, perf_map_overlapping, perf_map_python, jit_functions, jit_falling, jit_again,
               jit_overlapping, jit_lines, jit_moves, symbols, symbols_falling, overlapping_names, overlapping_mangled_names, symbols_at_one_place,
               mangled_at_one_place, nested_symbols, dead_symbols, source_symbols, many_sections, functions, units, units_of_one_line_program,
               units_of_one_abbreviation_table, units_of_overlapping_abbreviations, units_of_two_abbreviation_tables, wide_abbreviation, wide_root,
               units_of_one_range_list, units_of_one_empty_range_list, functions_of_one_range_list, functions_of_one_empty_range_list,
               functions_of_overlapping_names, deep_inlining, wide_inlining, references, source_files, sequences, packed],
    "text": [folded_lines, same_folded_lines, folded_comms, folded_tasks, folded_deep, folded_recursion, folded_prefixes, folded_wide,
             folded_no_weights, folded_blanks, d_names, perf_script, perf_script_deep, perf_script_headers, perf_script_long_line]
    + [long_name(kind) for kind in NAMES],
}
