#!/usr/bin/env python3
"""Makes recordings that this machine can't record, for perf and tally to read.

    make_recording.py KIND FILE

Layouts: perf's tools/perf/Documentation/perf.data-file-format.txt and linux/perf_event.h.
"""
import os
import struct
import sys

IP, TID, TIME, ADDR, CALLCHAIN, CPU, PERIOD, RAW, BRANCH_STACK = 1, 2, 4, 8, 32, 128, 256, 1024, 2048
WEIGHT, DATA_SRC, IDENTIFIER, TRANSACTION, PHYS_ADDR, AUX, DATA_PAGE_SIZE, CODE_PAGE_SIZE, WEIGHT_STRUCT = (
    1 << 14, 1 << 15, 1 << 16, 1 << 17, 1 << 19, 1 << 20, 1 << 22, 1 << 23, 1 << 24)
SAMPLE_ID_ALL, MMAP, COMM, MMAP2, SWITCH_EVENTS = 1 << 18, 1 << 8, 1 << 9, 1 << 23, 1 << 26
RECORD = {"MMAP": 1, "COMM": 3, "EXIT": 4, "FORK": 7, "SAMPLE": 9, "MMAP2": 10, "SWITCH": 14, "NAMESPACES": 16, "KSYMBOL": 17, "BPF_EVENT": 18,
          "CGROUP": 19, "TEXT_POKE": 20, "CALLCHAIN_DEFERRED": 22, "HEADER_ATTR": 64, "HEADER_EVENT_TYPE": 65, "HEADER_BUILD_ID": 67,
          "FINISHED_ROUND": 68, "ID_INDEX": 69, "AUXTRACE_INFO": 70, "AUXTRACE": 71, "AUXTRACE_ERROR": 72,
          "THREAD_MAP": 73, "CPU_MAP": 74, "STAT_CONFIG": 75, "STAT": 76, "STAT_ROUND": 77, "EVENT_UPDATE": 78,
          "TIME_CONV": 79, "HEADER_FEATURE": 80, "COMPRESSED": 81, "FINISHED_INIT": 82, "COMPRESSED2": 83}
KERNEL, USER, SWITCH_OUT, COMM_EXEC = 1, 2, 1 << 13, 1 << 13
GUEST_KERNEL, GUEST_USER = 4, 5
SPECIAL = {"build_id": 2, "hostname": 3, "osrelease": 4, "version": 5, "arch": 6, "nrcpus": 7, "cpudesc": 8, "cpuid": 9,
           "total_mem": 10, "cmdline": 11, "event_desc": 12, "cpu_topology": 13, "numa": 14, "branch_stack": 15,
           "pmus": 16, "groups": 17, "auxtrace": 18, "stat": 19, "cache": 20, "sample_time": 21, "memory": 22,
           "clockid": 23, "dir_format": 24, "bpf_programs": 25, "bpf_types": 26, "compressed": 27, "cpu_caps": 28,
           "clock_data": 29, "hybrid": 30, "pmu_caps": 31, "cpu_domains": 32, "e_machine": 33, "cache_line": 34}


def u16(*words):
    return struct.pack("<%dH" % len(words), *words)


def u32(*words):
    return struct.pack("<%dI" % len(words), *[word & 0xffffffff for word in words])


def u64(*words):
    return struct.pack("<%dQ" % len(words), *[word & (1 << 64) - 1 for word in words])


def raw(value):
    """Returns a name's bytes; \\udc80 to \\udcff stand for bytes that are not UTF-8."""
    return value.encode("utf-8", "surrogateescape")


def text(value, align=64):
    """Returns a feature's string: its size, then the bytes."""
    room = (len(raw(value)) + align) // align * align
    return u32(room) + raw(value).ljust(room, b"\0")


def padded(value, align=8):
    value = raw(value)
    return value.ljust((len(value) + align) // align * align, b"\0")


def texts(*values):
    return u32(len(values)) + b"".join(text(value) for value in values)


def record(kind, body, misc=0):
    number = RECORD.get(kind, kind)
    return struct.pack("<IHH", number, misc, 8 + len(body)) + body


def attr(type=1, config=0, period=1000, sample_type=IP | TID | TIME | PERIOD, read_format=4, flags=SAMPLE_ID_ALL,
         wakeup=0, bp_type=0, config1=0, config2=0, branch=0, regs_user=0, stack=0, clockid=0, regs_intr=0,
         aux_watermark=0, max_stack=0, aux_sample=0, sig_data=0):
    return struct.pack("<IIQQQQQIIQQQQIiQIHHIIQ", type, 128, config, period, sample_type, read_format, flags, wakeup,
                       bp_type, config1, config2, branch, regs_user, stack, clockid, regs_intr, aux_watermark,
                       max_stack, 0, aux_sample, 0, sig_data)


NOTHING = [record("FINISHED_INIT", b"")] # perf needs some data


class Event:
    def __init__(self, name, ids, **words):
        self.name, self.ids, self.attr = name, ids, attr(**words)


def event_desc(events):
    return u32(len(events), 128) + b"".join(
        event.attr + u32(len(event.ids)) + text(event.name) + u64(*event.ids) for event in events)


def write_file(path, events, records, features, event_types=b""):
    """Writes a seekable file; `features` by number."""
    at = 104
    ids = b""
    attrs = b""
    for event in events:
        attrs += event.attr + u64(at + len(ids), 8 * len(event.ids))
        ids += u64(*event.ids)
    attrs_at = at + len(ids)
    types_at = attrs_at + len(attrs)
    data_at = types_at + len(event_types)
    data = b"".join(records)
    table_at = data_at + len(data)
    bits = 0
    for number in features:
        bits |= 1 << number
    section_at = table_at + 16 * len(features)
    table = sections = b""
    for number in sorted(features):
        table += u64(section_at + len(sections), len(features[number]))
        sections += features[number]
    header = b"PERFILE2" + u64(104, 144, attrs_at, len(attrs), data_at, len(data), types_at, len(event_types))
    header += b"".join(u64(bits >> 64 * i) for i in range(4))
    with open(path, "wb") as out:
        out.write(header + ids + attrs + event_types + data + table + sections)


def write_pipe(path, records):
    with open(path, "wb") as out:
        out.write(b"PERFILE2" + u64(16) + b"".join(records))


def common_features(events):
    return {SPECIAL["hostname"]: text("elsewhere"), SPECIAL["arch"]: text("x86_64"),
            SPECIAL["nrcpus"]: u32(4, 4), SPECIAL["event_desc"]: event_desc(events)}


# ---- features ---------------------------------------------------------------------------------------------------

def bpf_program(number, name, addresses, lengths):
    """perf_bpil: lengths, the list of arrays, a bpf_prog_info whose pointers are offsets, the
    arrays."""
    count = len(addresses)
    data = u64(*addresses) + u32(*lengths, *[0] * (count % 2)) + bytes(range(16, 16 + 8 * count))
    lengths_at = 8 * count
    tags_at = lengths_at + 4 * (count + count % 2)
    info = u32(1, number) + bytes(range(8)) + u32(100, 200) + u64(0, 0, 12345) + u32(0, 0) + u64(0)
    info += name.encode().ljust(16, b"\0") + u32(0, 1) + u64(0, 0) + u32(count, count) + u64(0, lengths_at)
    info += u32(0, 0) + u64(0) + u32(0, 0) + u64(0, 0) + u32(0, 0, 0, count) + u64(tags_at) + u64(0, 0, 0) + u32(0, 0, 0, 0)
    return u32(len(info), len(data)) + u64(1 << 3 | 1 << 4 | 1 << 8) + info + data


def every_feature(events):
    caps = u32(2) + text("branches") + text("32") + text("max_precise") + text("3")
    return {
        SPECIAL["hostname"]: text("far-away"), SPECIAL["osrelease"]: text("5.4.0-custom"),
        SPECIAL["version"]: text("5.4.gabcdef"), SPECIAL["arch"]: text("x86_64"), SPECIAL["nrcpus"]: u32(4, 3),
        SPECIAL["cpudesc"]: text("A CPU of Theirs @ 3.00GHz"), SPECIAL["cpuid"]: text("GenuineOther,6,85,7"),
        SPECIAL["total_mem"]: u64(16 << 20),
        SPECIAL["cmdline"]: texts("/usr/bin/perf", "record", "-e", "it's 'quoted'", "--", "x"),
        SPECIAL["event_desc"]: event_desc(events),
        SPECIAL["cpu_topology"]: texts("0-3") + texts("0,2", "1,3") + u32(0, 0, 1, 0, 0, 0, 1, 0) + texts("0-1", "2-3") +
        u32(0, 0, 1, 1),
        SPECIAL["numa"]: u32(2) + u32(0) + u64(8 << 20, 1 << 20) + text("0-1") + u32(1) + u64(8 << 20, 2 << 20) + text("2-3"),
        SPECIAL["branch_stack"]: b"",
        SPECIAL["pmus"]: u32(3) + u32(4) + text("cpu") + u32(1) + text("software") + u32(10) + text("uncore_imc_0"),
        SPECIAL["groups"]: u32(1) + text("{anon_group}") + u32(0, 2),
        SPECIAL["auxtrace"]: u64(0), SPECIAL["stat"]: b"",
        SPECIAL["cache"]: u32(1, 3) + u32(1, 64, 64, 8) + text("Data") + text("32K") + text("0,2") + u32(1, 64, 64, 8) +
        text("Instruction") + text("32K") + text("0,2") + u32(3, 64, 1 << 15, 16) + text("Unified") + text("32768K") + text("0-3"),
        SPECIAL["sample_time"]: u64(123456789012, 223456789987),
        SPECIAL["memory"]: u64(1, 0x8000000, 2) + u64(0, 70, 70, 0xff00ff, 0x21) + u64(1, 64, 64, 1 << 40),
        SPECIAL["clockid"]: u64(1),
        SPECIAL["bpf_programs"]: u32(3) + bpf_program(7, "one", [0xffffffffa0000000], [99]) +
        bpf_program(8, "several", [0xffffffffa0001000, 0xffffffffa0002000, 0xffffffffa0003000], [11, 22, 33]) +
        bpf_program(9, "", [0xffffffffa0009000], [44]),
        SPECIAL["bpf_types"]: u32(0),
        SPECIAL["compressed"]: u32(1, 1, 1, 12, 65535),
        SPECIAL["cpu_caps"]: caps,
        SPECIAL["clock_data"]: u32(1, 1) + u64(1700000000123456789, 98765432101),
        SPECIAL["hybrid"]: u32(2) + text("cpu_core") + text("0-1") + text("cpu_atom") + text("2-3"),
        SPECIAL["pmu_caps"]: u32(2) + caps + text("cpu_core") + u32(1) + text("branches") + text("16") + text("cpu_atom"),
    }


def feature_events():
    """Returns attributes with every bit that perf 6.1 names; TRANSACTION is not among them."""
    flags = ((1 << 38) - 1) & ~(1 << 10) & ~(3 << 15)
    return [Event("cycles", [11, 12], type=0, flags=SAMPLE_ID_ALL | 1 << 10 | 2 << 15),
            Event("instructions", [13], type=0, config=1),
            Event("everything", [], type=5, config=0x1234, sample_type=((1 << 25) - 1) & ~(1 << 17), read_format=31, flags=flags, wakeup=3,
                  bp_type=3, config1=0xfff0, config2=8, branch=(1 << 18) - 1, regs_user=0xff0fff, stack=8192, clockid=-5,
                  regs_intr=0xff, aux_watermark=77, max_stack=127, aux_sample=4096, sig_data=9)]


def features(path):
    events = feature_events()
    write_file(path, events, NOTHING, every_feature(events))


def features_old(path):
    """From before dies, other PMUs' capabilities and BPF."""
    events = feature_events()
    parts = every_feature(events)
    parts[SPECIAL["cpu_topology"]] = texts("0-3") + texts("0,2", "1,3") + u32(0, 0, 1, 0, 0, 0, 1, 0)
    parts[SPECIAL["pmus"]] = u32(0)
    parts[SPECIAL["cpu_caps"]] = u32(0)
    for name in ("bpf_programs", "bpf_types", "compressed", "pmu_caps", "hybrid", "clock_data", "memory", "cache"):
        del parts[SPECIAL[name]]
    write_file(path, events, NOTHING, parts)


def features_newer(path):
    """From perf 7."""
    events = feature_events()
    domains = u32(17, 2)
    for cpu in range(3):
        domains += u32(cpu, 2) + u32(0) + text("SMT") + text("00000003") + text("0-1")
        domains += u32(1) + text("MC") + text("0000000f") + text("0-3")
    parts = {**every_feature(events), SPECIAL["cpu_domains"]: domains, SPECIAL["e_machine"]: u32(62, 0),
             SPECIAL["cache_line"]: u32(64)}
    for name in ("bpf_programs", "bpf_types", "event_desc", "groups", "compressed"): # perf prints these in another way
        del parts[SPECIAL[name]]
    write_file(path, events, NOTHING, parts)


def features_unknown(path):
    """With an undefined section."""
    events = [Event("cycles", [11], type=0)]
    write_file(path, events, NOTHING, {**common_features(events), 77: b"from the future"})


# ---- branch stacks ----------------------------------------------------------------------------------------------

BASE, LIBRARY_PID = 0x7f1200000000, 4321
USER_CONTEXT = -512
ANY_USER, CALL_STACK_USER = 1 | 8, 1 | 1 << 11


def library():
    """Returns a file with symbols ($LIBRARY, else the C library), and where its code is."""
    for name in (os.environ.get("LIBRARY", ""), "/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6"):
        if os.path.exists(name):
            break
    with open(name, "rb") as elf:
        bytes_ = elf.read()
    at, size, count = (struct.unpack_from(f, bytes_, o)[0] for f, o in (("<Q", 32), ("<H", 54), ("<H", 56)))
    for i in range(count):
        kind, flags, offset, address, _, length = struct.unpack_from("<IIQQQQ", bytes_, at + i * size)
        if kind == 1 and flags & 1:
            return os.path.realpath(name), offset, length
    raise SystemExit("no code in " + name)


def identity(name):
    """Returns the device and inode of a file of this machine: without a build-id, they tell whether
    it is the recorded one."""
    file = os.stat(name)
    return u32(os.major(file.st_dev), os.minor(file.st_dev)) + u64(file.st_ino, 0)


def side_band(comm="branchy", cpu=b""):
    name, offset, length = library()
    pids = u32(LIBRARY_PID, LIBRARY_PID)
    # Whole pages, as loaders map them: perf beside the test may link the file, and then this shows
    # that it is the same.
    mmap2 = pids + u64(BASE, (length + 4095) & ~4095, offset) + identity(name) + u32(5, 2) + padded(name)
    trailer = pids + u64(1000) + cpu
    return [record("COMM", pids + padded(comm) + trailer), record("MMAP2", mmap2 + trailer, USER)]


def branches(*entries):
    return u64(len(entries)) + b"".join(u64(*entry) for entry in entries)


def branch_flags(mispredicted=0, predicted=0, in_transaction=0, abort=0, cycles=0, kind=0, spec=0):
    return (mispredicted | predicted << 1 | in_transaction << 2 | abort << 3 | cycles << 4 | kind << 20 | spec << 24)


def branch_events(branch):
    kinds = IP | TID | TIME | CALLCHAIN | PERIOD | BRANCH_STACK
    return [Event("cycles", [5], type=0, sample_type=kinds, flags=SAMPLE_ID_ALL | MMAP | COMM | MMAP2, branch=branch)]


def branch_samples(some_empty):
    """Branches inside a library and to and from unknown places, of all kinds, with and without
    symbols."""
    _, _, length = library()
    records = side_band()
    for i in range(20):
        places = [BASE + (0x20001 + 0x1357 * (k + 7 * i)) % length for k in range(9)]
        entries = [(places[k], places[k + 1], branch_flags(k & 1, ~k & 1 and k < 6, k == 3, k == 4, 3 * k, k + i % 5, i % 4))
                   for k in range(8)]
        if i % 5 == 4:
            entries[2] = (0x10, 0x7fffffffe000, branch_flags())
        if some_empty and i % 7 == 6:
            entries = []
        chain = [USER_CONTEXT, places[0], places[3] + 1, places[5] + 1]
        body = u64(places[0]) + u32(LIBRARY_PID, LIBRARY_PID) + u64(2000 + i * 1000000, 1000)
        body += u64(len(chain), *chain) + branches(*entries)
        records.append(record("SAMPLE", body, USER))
    return records


def branch_stacks(path):
    """perf record -b"""
    events = branch_events(ANY_USER)
    write_file(path, events, branch_samples(True), {**common_features(events), SPECIAL["branch_stack"]: b""})


def branch_leaves(path):
    """The same without stacks."""
    events = [Event("cycles", [5], type=0, sample_type=IP | TID | TIME | PERIOD | BRANCH_STACK, branch=ANY_USER)]
    records = side_band()
    for i in range(16):
        place = BASE + 0x20001 + 0x1357 * i
        body = u64(place) + u32(LIBRARY_PID, LIBRARY_PID) + u64(2000 + i * 1000000, 1000)
        entries = [(place + 5, place + 99, branch_flags(1))] if i % 2 else []
        records.append(record("SAMPLE", body + branches(*entries), USER))
    write_file(path, events, records, {**common_features(events), SPECIAL["branch_stack"]: b""})


def lbr(path):
    """perf record --call-graph lbr.  Without branches, perf reads beyond them."""
    events = branch_events(CALL_STACK_USER)
    write_file(path, events, branch_samples(False), {**common_features(events), SPECIAL["branch_stack"]: b""})


# ---- what a sample says of memory ----------------------------------------------------------------------------------

def data_sources():
    """Returns sets of values of perf_mem_data_src.

    They have every bit, alone and with others, numbers with all valid values, and short sets: perf
    prints at most 99 characters."""
    common = 2 | 0x0a << 5 | 2 << 19 | 0x0a << 26 # a load, L1 hit, no snoop, TLB L1 hit
    values = [common, 0, 1]
    values += [common ^ 1 << bit for bit in range(51)]
    values += [1 << bit for bit in range(51)]
    values += [common | number << 33 for number in range(16)] # level by number
    values += [common | 1 << 37 | number << 33 for number in range(16)] # remote
    values += [common | 1 << 37 | number << 43 for number in range(5)] # hops
    values += [common | 1 << 37 | number << 43 | 3 << 33 for number in range(5)]
    values += [common | number << 40 for number in range(8)] # blocked
    values += [common | number << 38 for number in range(4)] # snoopx
    values += [common | number for number in range(1, 32)] + [common | number << 24 for number in range(4)]
    values += [common | number << 5 for number in range(32)] + [common | number << 26 for number in range(32)]
    return values


def memory(path, weights=WEIGHT):
    """perf mem: addresses, their costs, where they were found, pages."""
    kinds = IP | TID | TIME | ADDR | PERIOD | weights | DATA_SRC | PHYS_ADDR | DATA_PAGE_SIZE | CODE_PAGE_SIZE
    _, _, length = library()
    event = Event("cpu/mem-loads/", [5], type=4, sample_type=kinds)
    pages = [0, 1, 64, 4096, 65536, 1 << 21, 1 << 30, 12288, (1 << 63) + 4096]
    records = side_band("memory")
    for i, source in enumerate(data_sources()):
        address = BASE + 0x20001 + 0x1357 * i % length if i % 3 else (0x10 + i, 0xffffffff81000010 + i)[i % 2]
        weight = 7 * i if weights == WEIGHT else i | (3 * i) << 32 | (i % 5) << 48
        body = u64(BASE + 0x20001 + 0x357 * i) + u32(LIBRARY_PID, LIBRARY_PID) + u64(2000 + i * 1000, address, 1000 + i)
        body += u64(weight, source, 0x1234000 + i, pages[i % len(pages)], pages[(i + 3) % len(pages)])
        records.append(record("SAMPLE", body, USER))
    write_file(path, [event], records, common_features([event]))


def memory_costs(path):
    """The same with struct perf_sample_weight's parts."""
    memory(path, WEIGHT_STRUCT)


def data_segment():
    """Returns where a file's variables are: the offset of their page, their start in it, and their
    size."""
    with open(library()[0], "rb") as elf:
        bytes_ = elf.read()
    at, size, count = (struct.unpack_from(f, bytes_, o)[0] for f, o in (("<Q", 32), ("<H", 54), ("<H", 56)))
    for i in range(count):
        kind, flags, offset, address, _, length = struct.unpack_from("<IIQQQQ", bytes_, at + i * size)
        if kind == 1 and flags & 2:
            return offset & ~4095, offset % 4096, length & ~15
    raise SystemExit("no data in it")


def memory_rows(path):
    """Several samples with common values: costs, transactions, sockets, variables, times."""
    kinds = IP | TID | TIME | ADDR | CPU | PERIOD | WEIGHT_STRUCT | DATA_SRC | TRANSACTION | PHYS_ADDR
    event = Event("cpu/mem-loads/", [5], type=4, sample_type=kinds)
    name, _, _ = library()
    offset, start, length = data_segment()
    pids, data = u32(LIBRARY_PID, LIBRARY_PID), BASE + (1 << 32)
    cpu = u32(0, 0)
    # perf reads no symbols of a file that is mapped without PROT_EXEC.
    mapped = pids + u64(data, start + length, offset) + identity(name) + u32(7, 2) + padded(name) + pids + u64(1000) + cpu
    records = side_band("memory", cpu) + [record("MMAP2", mapped, USER)]
    transactions = [0, 1, 2, 3, 5] + [2 | 1 << bit for bit in range(2, 8)] + [2 | 0x2a << 32, 1 << 2, 2 | 0xfc]
    for i in range(280):
        address = data + start + 16 * (i * 7919 % (length // 16)) if i % 5 else BASE + 0x20001 + 0x357 * i
        body = u64(BASE + 0x20001 + 0x357 * (i % 9)) + pids + u64(2000 + i * 3700000, address) + u32(i % 4, 0) + u64(1000)
        body += u64(20 + i % 3 | (5 + i % 4) << 32 | (i % 2) << 48, 2 | 0x0a << 5 | 2 << 19 | 0x0a << 26)
        body += u64(transactions[i % len(transactions)], 0x5000 + i % 6)
        records.append(record("SAMPLE", body, USER))
    features = {**common_features([event]), SPECIAL["nrcpus"]: u32(4, 4),
                SPECIAL["cpu_topology"]: texts("0-1", "2-3") + texts("0", "1", "2", "3") + u32(0, 0, 1, 0, 0, 1, 1, 1)}
    write_file(path, [event], records, features)


def in_objects(path):
    """A sample in each file of $OBJECTS, which is separated by commas; none of the files exists."""
    event = Event("cpu-clock", [5], type=1, config=0, period=1000000)
    pids = u32(LIBRARY_PID, LIBRARY_PID)
    maps, samples = [], []
    for i, name in enumerate(os.environ["OBJECTS"].split(",")):
        start = BASE + i * 4096
        maps.append(record("MMAP2", pids + u64(start, 4096, 0) + u32(8, 1) + u64(1234 + i, 1) + u32(5, 2) + padded(name) +
                           pids + u64(1000), USER))
        samples.append(record("SAMPLE", u64(start + 16) + pids + u64(2000 + i, 1000000), USER))
    write_file(path, [event], maps + samples, common_features([event]))


def some_fields(path):
    """Two samples of an event with CPUs, the first on CPU 0, and one of an event without CPUs and times."""
    with_cpu = Event("with-cpu", [5], type=1, config=0, period=1, sample_type=IDENTIFIER | IP | TID | TIME | CPU, flags=0)
    without = Event("without", [6], type=1, config=1, period=1, sample_type=IDENTIFIER | IP | TID, flags=0)
    place = u64(BASE) + u32(LIBRARY_PID, LIBRARY_PID)
    samples = [record("SAMPLE", u64(5) + place + u64(2000 + cpu) + u32(cpu, 0), USER) for cpu in (0, 1)]
    samples.append(record("SAMPLE", u64(6) + place, USER))
    write_file(path, [with_cpu, without], samples, common_features([with_cpu, without]))


def idle(path):
    """CPU 0 is idle; on CPU 1 a task runs."""
    event = Event("cpu-clock", [5], type=1, config=0, period=1000000, sample_type=IP | TID | TIME | CPU | PERIOD)
    records = side_band("worker", u32(1, 0))
    for i in range(10):
        for cpu, pid in enumerate((0, LIBRARY_PID)):
            body = u64(0xffffffff81000010) + u32(pid, pid) + u64(2000 + (i + 1) * 1000000) + u32(cpu, 0) + u64(1000000)
            records.append(record("SAMPLE", body, KERNEL))
    write_file(path, [event], records, common_features([event]))


def off_cpu(path, flags=SAMPLE_ID_ALL | MMAP | COMM | MMAP2 | SWITCH_EVENTS):
    """tally record --off-cpu -a: tasks leave their CPUs, and most return; a CPU's records are
    together."""
    event = Event("offcpu-time", [5], type=1, config=3, period=1, sample_type=IP | TID | TIME | CPU | PERIOD, flags=flags)

    def trailer(tid, time, cpu):
        return u32(LIBRARY_PID, tid) + u64(time) + u32(cpu, 0)

    def out(time, cpu, tid):
        body = u64(0xffffffff81000010) + u32(LIBRARY_PID, tid) + u64(time) + u32(cpu, 0) + u64(1)
        return [(time, cpu, record("SAMPLE", body, KERNEL)),
                (time + 5, cpu, record("SWITCH", trailer(tid, time + 5, cpu), SWITCH_OUT))]

    def back(time, cpu, tid):
        return [(time, cpu, record("SWITCH", trailer(tid, time, cpu)))]

    def task(kind, time, cpu, tid):
        body = u32(LIBRARY_PID, LIBRARY_PID, tid, LIBRARY_PID) + u64(time)
        return [(time, cpu, record(kind, body + trailer(tid, time, cpu)))]

    records = out(10000, 0, 11) + back(10700, 1, 11) # moved to another CPU
    records += out(20000, 0, 0) + back(29000, 0, 0) # the idle task
    records += out(30000, 1, 12) + out(33000, 1, 12) + back(33250, 1, 12) # its first return has no record
    records += task("EXIT", 40000, 1, 12) + out(40100, 1, 12) + out(40200, 1, -1) # its last switch out
    records += task("FORK", 50000, 0, 12) + out(50100, 0, 12) + back(50101, 0, 12) # another task has its number now
    records += back(60000, 0, 13) + out(61000, 0, 13) # … and waits to the end
    records += out(70000, 1, 14) + task("EXIT", 71000, 1, 14)
    records += task("EXIT", 80000, 0, 16) # the first thread of a process; another
    execs = u32(LIBRARY_PID, 16) + padded("execs") + trailer(16, 80100, 0)
    records += [(80100, 0, record("COMM", execs, COMM_EXEC))] + out(80200, 0, 16) + back(80500, 0, 16)
    records += back(99000, 1, 15)
    in_file = [entry[2] for entry in sorted(records, key=lambda entry: (entry[1], entry[0]))]
    write_file(path, [event], side_band("waiter", u32(0, 0)) + in_file, common_features([event]))


def off_cpu_unknown(path):
    """The same, as if no switches had been requested."""
    off_cpu(path, SAMPLE_ID_ALL | MMAP | COMM | MMAP2)


def tracing_data(system, formats):
    """perf's copy of tracefs: formats of one system's tracepoints."""
    out = b"\x17\x08\x44tracing" + b"0.6\0" + bytes([0, 8]) + u32(4096)
    out += b"header_page\0" + u64(0) + b"header_event\0" + u64(0) + u32(0)
    out += u32(1) + raw(system) + b"\0" + u32(len(formats)) + b"".join(u64(len(raw(one))) + raw(one) for one in formats)
    return out + u32(0) + u32(0) + u64(0)


WAKING = """name: sched_waking
ID: 375
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;

print fmt: "comm=%s pid=%d", REC->comm, REC->pid
"""
# Functions in the tests' kallsyms.
SCHEDULE, WAIT, WAKE, ONE, TWO, HANDLER, ENTRY, BROKEN = (0xffffffff81001000 + 0x1000 * i for i in range(8))


def off_cpu_wakers(path):
    """tally record --off-cpu: waits, and the tasks that ended them."""
    layout = IDENTIFIER | IP | TID | TIME | CPU | PERIOD | CALLCHAIN
    waits = Event("offcpu-time", [5], type=1, config=3, period=1, sample_type=layout, flags=SAMPLE_ID_ALL | MMAP | COMM | SWITCH_EVENTS)
    wakings = Event("sched:sched_waking", [6], type=2, config=375, period=1, sample_type=layout | RAW)

    def trailer(tid, time, id=5):
        return u32(LIBRARY_PID, tid) + u64(time) + u32(0, 0) + u64(id)

    def sample(id, time, tid, functions, raw=b""):
        body = u64(id, functions[0] + 4) + u32(LIBRARY_PID, tid) + u64(time) + u32(0, 0) + u64(1)
        body += u64(1 + len(functions), -128, *[function + 4 for function in functions])
        return (time, record("SAMPLE", body + (u32(len(raw)) + raw if id == 6 else b""), KERNEL))

    def out(time, tid, preempted=0):
        return [sample(5, time, tid, [SCHEDULE, WAIT]),
                (time + 5, record("SWITCH", trailer(tid, time + 5), SWITCH_OUT | preempted))]

    def back(time, tid):
        return [(time, record("SWITCH", trailer(tid, time)))]

    def waking(time, waker, woken, functions, flags=0):
        raw = u16(375) + bytes([flags, 0]) + u32(waker) + b"woken".ljust(16, b"\0") + u32(woken)
        return [sample(6, time, waker, [WAKE] + functions, raw)]
    kernel_map = u32(0xffffffff, 0) + u64(0xffffffff81000000, 0x1000000, 0xffffffff81000000) + padded("[kernel.kallsyms]_text")
    records = [(0, record("MMAP", kernel_map + trailer(0, 0), KERNEL))]
    for tid, name in ((20, "first"), (21, "second")):
        records.append((1, record("COMM", u32(LIBRARY_PID, tid) + padded(name) + trailer(tid, 1))))
    records += out(10000, 11) + waking(10500, 20, 11, [ONE]) + back(10700, 11)
    records += out(20000, 12) + waking(20100, 20, 12, [ONE]) + waking(20300, 21, 12, [TWO]) + back(20400, 12) # the last one counts
    records += waking(29990, 20, 13, [ONE]) + out(30000, 13) + back(30200, 13) # before it left its CPU
    records += out(40000, 14, 1 << 14) + back(40900, 14) # it was still runnable
    records += out(50000, 15) + waking(50100, 20, 15, [HANDLER, ENTRY, BROKEN], 8) + back(50300, 15) # an interrupt
    records += waking(60000, 20, 16, [ONE]) + out(1060000, 16) + back(1060050, 16) # long before
    records += out(1070000, 17) + [sample(6, 1070005, 20, [WAKE, ONE], b"\x77\1\0\0")] + back(1070010, 17) # too short to contain the task
    in_file = [entry[1] for entry in sorted(records, key=lambda entry: entry[0])]
    features = {**common_features([waits, wakings]), 1: tracing_data("sched", [WAKING])}
    write_file(path, [waits, wakings], in_file, features)


IDLE, WORK = 0xffffffff81001000, 0xffffffff81003000 # functions in a test's kallsyms


def write_idle_functions(path, busy):
    """Writes 75 samples in the kernel's idle function, 5 of an interrupt in the idle task, 20 of a
    program.

    Each way into the idle function also appears as hits of a tracepoint, which must be kept."""
    clock = Event("cpu-clock", [5], type=1, config=0, sample_type=IP | TID | TIME | PERIOD | IDENTIFIER)
    hits = Event("power:cpu_idle", [6], type=2, config=7, period=1, sample_type=IP | TID | TIME | PERIOD | IDENTIFIER)
    pids = u32(LIBRARY_PID, LIBRARY_PID)
    kernel_map = u32(0xffffffff, 0) + u64(0xffffffff81000000, 0x1000000, 0xffffffff81000000) + padded("[kernel.kallsyms]_text")

    def sample(time, ip, tasks=u32(0, 0), id=5):
        return record("SAMPLE", u64(id, ip) + tasks + u64(time, 1000000 if id == 5 else 1), KERNEL)
    records = [record("MMAP", kernel_map + pids + u64(0, 5), KERNEL), record("COMM", pids + padded("busy") + pids + u64(0, 5))]
    records += [sample(1000 + i, IDLE + 4) for i in range(75)]
    records += [sample(2000 + i, WORK + 4) for i in range(5 if busy else 0)]
    records += [sample(3000 + i, WORK + 4, pids) for i in range(20 if busy else 0)]
    records += [sample(4000 + i, IDLE + 8, id=6) for i in range(3)]
    features = {**common_features([clock, hits]), SPECIAL["osrelease"]: text("1.0-elsewhere")}
    write_file(path, [clock, hits], records, features)


def idle_functions(path):
    """… some of the time."""
    write_idle_functions(path, True)


def only_idle_functions(path):
    """… all of the time."""
    write_idle_functions(path, False)


def write_busy_zero(path, tasks):
    """Writes samples in kernel functions without names, of (pid, tid, comm, period)."""
    event = Event("cycles", [5], type=0, sample_type=IP | TID | TIME | CPU | PERIOD)
    start = 0xffffffff81000000
    records = [record("MMAP", u32(-1, 0) + u64(start, 1 << 24, start) + padded("[kernel.kallsyms]_text") + trail(0, 0), KERNEL)]
    for i, (pid, tid, comm, period) in enumerate(tasks):
        if comm:
            records.append(record("COMM", u32(pid, tid) + padded(comm) + trail(pid, tid)))
        body = u64(start + 0x100 * (i + 1)) + u32(pid, tid) + u64(1000000 * (i + 1)) + u32(0, 0) + u64(period)
        records.append(record("SAMPLE", body, KERNEL))
    features = {**common_features([event]), SPECIAL["osrelease"]: text("5.15.0-other")}
    write_file(path, [event], records, features)


def trail(pid, tid):
    """Returns a record's sample_id for IP, TID, TIME, CPU and PERIOD."""
    return u32(pid, tid) + u64(0) + u32(0, 0)


def busy_zero_outside(path):
    """Tasks outside of the recorder's PID namespace have the number 0 and a name."""
    write_busy_zero(path, [(0, 0, "docker", 10), (0, 0, None, 1000), (0, 0, None, 1000)])


def busy_zero_exiting(path):
    """The last samples of an exiting thread have the number 0, here beside the idle task's."""
    write_busy_zero(path, [(1384, 1384, "powerd", 7), (1384, 0, None, 1000), (0, 0, None, 50)])


def bpf_output(path):
    """Output of BPF programs and perf trace: raw bytes of any length, printable and not."""
    event = Event("bpf-output", [5], type=1, config=10, sample_type=IP | TID | TIME | PERIOD | RAW)
    records = side_band("writer")
    for i, length in enumerate((1, 4, 7, 8, 12, 15, 16, 20, 31, 32, 33, 60, 100, 260)):
        for said in (bytes(range(i, i + length) if length < 200 else range(length % 256)), b"hello, world\0"[:length],
                     b"word"[:length], b"a\nb\tc \x1b[31m"[:length]):
            body = u64(BASE + 0x20001) + u32(LIBRARY_PID, LIBRARY_PID) + u64(2000 + i * 1000, 1)
            room = (len(said) + 4 + 7) // 8 * 8 - 4
            records.append(record("SAMPLE", body + u32(room) + said.ljust(room, b"\0"), USER))
    write_file(path, [event], records, common_features([event]))


# ---- stacks that come later ---------------------------------------------------------------------------------------

def write_deferred(path, some_lost):
    """Two samples of one entry into the kernel, one of another thread between them; others without
    stacks."""
    event = Event("cycles", [5], type=0, sample_type=IP | TID | TIME | CALLCHAIN | PERIOD,
                  flags=SAMPLE_ID_ALL | MMAP | COMM | MMAP2 | 1 << 38 | 1 << 39)
    _, _, length = library()
    place = lambda k: BASE + (0x20001 + 0x1357 * k) % length
    pids, other = u32(LIBRARY_PID, LIBRARY_PID), u32(LIBRARY_PID, LIBRARY_PID + 1)

    def sample(tids, time, chain, ip=place(0), misc=USER):
        return record("SAMPLE", u64(ip) + tids + u64(time, 1000) + u64(len(chain), *chain), misc)

    def later(tids, time, cookie, *chain):
        return record("CALLCHAIN_DEFERRED", u64(cookie, len(chain), *chain) + tids + u64(time))
    records = side_band() + [
        record("COMM", other + padded("branchy") + other + u64(1000)),
        sample(pids, 2000, [-128, 0xffffffff81000100, 0xffffffff81000200, -640, 77], 0xffffffff81000100, KERNEL),
        sample(pids, 3000, [-640, 77]),
        sample(other, 4000, [USER_CONTEXT, place(9), place(10)]),
        later(other, 4500, 77, USER_CONTEXT, place(11)), # another thread's
        later(pids, 5000, 77, USER_CONTEXT, place(1), place(2), place(3)),
        sample(other, 5500, [USER_CONTEXT, place(5)])]
    if some_lost:
        records += [
            sample(pids, 6000, [-128, 0xffffffff81000300, -640, 78], 0xffffffff81000300, KERNEL),
            later(pids, 7000, 79, USER_CONTEXT, place(4)), # for a lost sample; its stack was lost too
            sample(other, 9000, [-640, 80])]
    write_file(path, [event], records, common_features([event]))


def deferred(path):
    """perf record --call-graph fp,defer"""
    write_deferred(path, False)


def deferred_lost(path):
    """The same with lost stacks."""
    write_deferred(path, True)


# ---- what the kernel tells besides --------------------------------------------------------------------------------

def side_events(path):
    """Namespaces, cgroups, code that the kernel made and changed.

    Samples are in that code before, while and after it existed."""
    event = Event("cycles", [5], type=0, sample_type=IP | TID | TIME | CPU | PERIOD)
    program, poked = 0xffffffffc0123000, 0xffffffffc0456000

    def trailer(time):
        return u32(LIBRARY_PID, LIBRARY_PID) + u64(time) + u32(1, 0)

    def sample(time, ip):
        return record("SAMPLE", u64(ip) + u32(LIBRARY_PID, LIBRARY_PID) + u64(time) + u32(1, 0) + u64(1000), KERNEL)

    def ksymbol(time, flags, name, kind=1):
        return record("KSYMBOL", u64(program) + u32(256) + u16(kind, flags) + padded(name) + trailer(time))
    kernel_map = u32(0xffffffff, 0) + u64(0xffffffff81000000, 0x1200000, 0xffffffff81000000) + padded("[kernel.kallsyms]_text")
    records = [
        record("MMAP", kernel_map + trailer(0), KERNEL),
        record("COMM", u32(LIBRARY_PID, LIBRARY_PID) + padded("sider") + trailer(1000)),
        record("NAMESPACES", u32(LIBRARY_PID, LIBRARY_PID) + u64(3, 4, 0xf0000000, 4, 0xeffffffe, 0, 0) + trailer(2000)),
        record("NAMESPACES", u32(LIBRARY_PID, LIBRARY_PID) + u64(9, *range(18)) + trailer(3000)),
        record("CGROUP", u64(4711) + padded("/system.slice/a b.service") + trailer(4000)),
        sample(5000, program + 16),
        ksymbol(6000, 0, "bpf_prog_0123456789abcdef_first"), record("BPF_EVENT", u16(1, 0) + u32(7) + bytes(range(8)) + trailer(6000)),
        sample(7000, program + 16),
        ksymbol(8000, 1, "bpf_prog_0123456789abcdef_first"), record("BPF_EVENT", u16(2, 0) + u32(7) + bytes(range(8)) + trailer(8000)),
        sample(9000, program + 16),
        ksymbol(10000, 0, "ftrace_trampoline_x", 2), sample(11000, program + 32),
        record("TEXT_POKE", u64(poked) + u16(5, 5) + bytes([0xf, 0x1f, 0x44, 0, 0]) + bytes([0xe8, 1, 2, 3, 4]) + bytes(2) + trailer(12000)),
        record("TEXT_POKE", u64(poked + 64) + u16(0, 36) + bytes(range(36)) + trailer(13000)),
        record(2, u64(5, 77) + trailer(14000)), # LOST
        record(14, trailer(15000)), record(14, trailer(16000), 1 << 13), record(14, trailer(17000), 3 << 13), # SWITCH
        record(15, u32(1, 2) + trailer(18000), 1 << 13), # SWITCH_CPU_WIDE
    ]
    write_file(path, [event], records, common_features([event]))


def cgroups(path):
    """Samples in cgroups, one of which has no record."""
    event = Event("cycles", [5], type=0, sample_type=IP | TID | TIME | PERIOD | 1 << 21)
    pids = u32(LIBRARY_PID, LIBRARY_PID)
    records = [record("COMM", pids + padded("grouped") + pids + u64(1000))]
    records += [record("CGROUP", u64(number) + padded(name) + pids + u64(2000))
                for number, name in ((1, "/"), (7, "/web.slice"), (9, "/web.slice/a b"))]
    records += [record("SAMPLE", u64(BASE) + pids + u64(3000 + i, 1000, (1, 7, 7, 9, 9, 9, 9, 9, 9, 4711)[i % 10]), USER)
                for i in range(100)]
    write_file(path, [event], records, common_features([event]))


# ---- records of tools -------------------------------------------------------------------------------------------

def header_attr(event):
    return record("HEADER_ATTR", event.attr + u64(*event.ids))


def header_feature(number, body):
    return record("HEADER_FEATURE", u64(number) + body)


def tool_records(known_to_perf):
    """Every record that perf writes itself, at least once, with samples around."""
    event = Event("cycles", [5, 6], type=0, sample_type=IP | TID | TIME | PERIOD | IDENTIFIER)
    side = [r[:6] + u16(len(r) + 8) + r[8:] + u64(5) for r in side_band("tools")]
    sample = u64(5, BASE + 0x20001) + u32(LIBRARY_PID, LIBRARY_PID) + u64(2000, 1000)
    late = u64(5, BASE + 0x30001) + u32(LIBRARY_PID, LIBRARY_PID) + u64(9000, 1000)
    records = [header_attr(event)]
    for number, body in every_feature([event]).items():
        if number not in (SPECIAL["groups"], SPECIAL["auxtrace"], SPECIAL["stat"], SPECIAL["compressed"]):
            records.append(header_feature(number, body))
    records += [
        header_feature(32, b""),
        record("EVENT_UPDATE", u64(0, 5) + padded("msec")),
        record("EVENT_UPDATE", u64(1, 5) + struct.pack("<d", 1e-6)),
        record("EVENT_UPDATE", u64(2, 5) + padded("renamed")),
        record("EVENT_UPDATE", u64(3, 5) + u16(0, 3, 0, 1, 3) + bytes(6)),
        record("HEADER_BUILD_ID", u32(0xffffffff) + bytes(range(20)) + u32(0) + padded("/nowhere/at-all"), USER),
        record("ID_INDEX", u64(2, 5, 0, 0, LIBRARY_PID, 6, 1, 1, LIBRARY_PID)),
        record("THREAD_MAP", u64(1, LIBRARY_PID) + b"tools".ljust(16, b"\0")),
        record("CPU_MAP", u16(0, 2, 0, 1)),
        record("TIME_CONV", u64(31, 1 << 31, 0, 0, (1 << 64) - 1) + bytes([1, 1]) + bytes(6)),
        record("FINISHED_INIT", b""), *side, record("SAMPLE", sample, USER), record("FINISHED_ROUND", b""),
        record("STAT_CONFIG", u64(1, 1, 4)),
        record("SAMPLE", late, USER), record("FINISHED_ROUND", b"")]
    if not known_to_perf:
        junk = record("SAMPLE", sample, USER) * 3 # traced bytes may look like anything
        records += [record("AUXTRACE_INFO", u32(1, 0) + u64(1, 2)),
                    record("AUXTRACE", u64(len(junk), 0, 0) + u32(0, LIBRARY_PID, 0, 0)) + junk,
                    record("AUXTRACE_ERROR", u32(1, 2, 0, LIBRARY_PID, LIBRARY_PID, 0) + u64(BASE, 3000) + padded("odd", 64)),
                    record("HEADER_EVENT_TYPE", u64(77) + b"old:tracepoint".ljust(64, b"\0")),
                    record("STAT_ROUND", u64(1, 5000)), record("STAT", u64(5) + u32(0, 0) + u64(1, 2, 3)),
                    record(200, b"later tool"), record(201, b"")]
    return records


def simpleperf_file(name, kind, min_vaddr, symbols, tail=b""):
    body = raw(name) + b"\0" + u32(kind) + u64(min_vaddr) + u32(len(symbols))
    body += b"".join(u64(at) + u32(size) + raw(symbol) + b"\0" for at, size, symbol in symbols)
    return u32(len(body) + len(tail)) + body + tail


def simpleperf(path):
    """From a phone, with the symbols of the sampled code; it has another /bin/sh than this
    machine."""
    event = Event("cpu-cycles", [5], type=0, sample_type=IP | TID | TIME)
    kernel, who = 0xffffff8008080000, u32(7, 7)
    files = simpleperf_file("[kernel.kallsyms]", 0, 0, [(kernel + 0x100, 0x40, "el0_irq"), (kernel + 0x200, 0x40, "schedule")])
    files += simpleperf_file("/system/lib64/libz.so", 2, 0x3000, [(0x3100, 0x80, "inflate"), (0x3200, 0x10, "_ZN2ns1fEi")], u64(0x2000))
    files += simpleperf_file("/bin/sh", 2, 0x1000, [(0x1080, 0x20, "of_the_phone")])
    files += simpleperf_file("/data/app/base.vdex", 3, 0, [(0x5000, 0x100, "com.example.Main.run")], u32(1) + u64(0x4f00))
    maps = [(-1, kernel, 0x1000000, 0, "[kernel.kallsyms]"), (7, 0x7100000000, 0x10000, 0x2000, "/system/lib64/libz.so"),
            (7, 0x5500000000, 0x10000, 0x4000, "/bin/sh"), (7, 0x7200000000, 0x10000, 0, "/data/app/base.vdex"),
            (7, 0x7300000000, 0x10000, 0, "/system/lib64/libc.so")]
    records = [record("MMAP", u32(pid, pid) + u64(start, size, offset) + padded(name) + u32(pid, pid) + u64(1), KERNEL if pid < 0 else USER)
               for pid, start, size, offset, name in maps]
    records.append(record("COMM", who + padded("app") + who + u64(2)))
    for number, ip in enumerate((kernel + 0x123, 0x7100000110, 0x7100000204, 0x5500000090, 0x72000050ff, 0x7300000000, 0x7100000ff0)):
        records.append(record("SAMPLE", u64(ip) + who + u64(10 + number), KERNEL if ip > kernel else USER))
    features = common_features([event])
    features[SPECIAL["arch"]] = text("aarch64")
    del features[SPECIAL["event_desc"]]
    features[128] = files
    features[129] = b"simpleperf_version\x001.build.9\0event_type_info\0cpu-cycles,0,0\ncpu-clock,1,0\0"
    write_file(path, [event], records, features)


def named_events(path, events, between=(), features=True):
    """Two samples of each event, with `between` after the first; the first two are in a round of their own."""
    who = u32(7, 7)
    def samples(time):
        return [record("SAMPLE", u64(event.ids[0], 0x401000) + who + u64(time + i, 1)) for i, event in enumerate(events)]
    records = [record("COMM", who + padded("app") + who + u64(2) + u64(events[0].ids[0]))]
    records += samples(1000) + [record("FINISHED_ROUND", b"")] * 2 + list(between) + samples(2000) + [record("FINISHED_ROUND", b"")] * 2
    parts = common_features(events)
    if not features:
        del parts[SPECIAL["event_desc"]]
    write_file(path, events, records, parts)


def named_event(name, id, **words):
    return Event(name, [id], **{"type": 1, "sample_type": IDENTIFIER | IP | TID | TIME | PERIOD, **words})


def weighted(path, periods):
    """Samples of three functions in turn, with these periods."""
    event = named_event("cycles", 5, type=0)
    who = u32(7, 7)
    files = simpleperf_file("/lib/weights", 2, 0, [(0x1000 * i, 0x100, "function%d" % i) for i in range(3)], u64(0))
    records = [record("COMM", who + padded("app") + who + u64(2) + u64(5)),
               record("MMAP", who + u64(0x400000, 0x10000, 0) + padded("/lib/weights") + who + u64(2, 5), USER)]
    records += [record("SAMPLE", u64(5, 0x400010 + 0x1000 * (i % 3)) + who + u64(1000 + i, period), USER) for i, period in enumerate(periods)]
    write_file(path, [event], records, {**common_features([event]), 128: files})


def weights_of_64_bits(path):
    """Their sum just fits; signed numbers of 64 bits don't hold it."""
    weighted(path, [1 << 63, (1 << 62) - 1, 1 << 62])


def weights_beyond_64_bits(path):
    weighted(path, [1 << 63, 1 << 63, 1000, 1 << 63, 5, (1 << 64) - 1])


def weights_of_ones(path):
    weighted(path, [(1 << 64) - 1] * 300)


def late_names(path):
    """An event gets its name behind its first samples."""
    events = [named_event("early", 5), named_event("other", 6)]
    named_events(path, events, [record("EVENT_UPDATE", u64(2, 5) + padded("late"))])


def simpleperf_tracepoints(path):
    """Names of tracepoints are in simpleperf's record of tracing data."""
    events = [named_event("", 5, type=2, config=375), named_event("", 6, type=2, config=376)]
    tracing = tracing_data("sched", [WAKING, WAKING.replace("375", "376").replace("waking", "switch")])
    body = u32(len(tracing)) + tracing
    body += bytes(-len(body) % 8)
    named_events(path, events, [record(32777, body)], features=False)


def named_as_numbers(path):
    """Names that are numbers, which also choose an event by its place."""
    named_events(path, [named_event("1", 5), named_event("0", 6), named_event("7", 7)])


# What a name may try: to begin a line, to control a terminal, to turn text around, to end a string or an element, to
# be no text.
HOSTILE = ["\nFORGED", "\r\nFORGED", "\x1b]0;FORGED\a", "\u009b31m", "\udc9b32m", "\udcc2\udc9b", "\u0085FORGED", "\u202eDEGROF",
           "\u2066", "\u2069", "\u200e", "\u200f", "\u061c", "\u2028FORGED", "\u2029FORGED", "\x7f\b\b\b", "\udcff", "\udcc0\udc8a", "\udce0\udc80\udc8a",
           "\udced\udca0\udc80", "\ufffe", "\uffff", "\U0001ffff", "\ufdd0", "\ufeff", "</script><script>forged()</script>", "<img src=x onerror=forged()>",
           "]]><!--", '";forged();"', "';forged();'", "${forged()}", "\\", "\udce2\udc82"]
HOSTILE_NAMES = ["n%d%s" % (i, part) for i, part in enumerate(HOSTILE)] + ["m:odified", "n" * 300]


def hostile_name(kind):
    return kind + "".join(HOSTILE)


def hostile_names(path):
    """Each name that a recording carries is hostile."""
    name = hostile_name
    cycles = named_event(name("event"), 5, flags=SAMPLE_ID_ALL | MMAP | COMM)
    events = [cycles, named_event(name("sched:sched_waking"), 6, type=2, config=375, sample_type=IDENTIFIER | IP | TID | TIME | PERIOD | RAW)]
    who, trailer = u32(7, 7), u32(7, 7) + u64(1) + u64(5)
    records = [record("COMM", who + padded(name("comm")) + trailer),
               record("MMAP", who + u64(0x400000, 0x100000, 0) + padded(name("/map")) + trailer, USER),
               record("MMAP2", who + u64(0x7100000000, 0x10000, 0x2000) + u32(1, 1) + u64(1, 0) + u32(5, 2) + padded(name("/lib/")) + trailer, USER),
               record("CGROUP", u64(3) + padded(name("/cgroup")) + trailer),
               record("KSYMBOL", u64(0xffffffffa0000000) + u32(64) + u16(1, 0) + padded(name("bpf_prog_0123456789abcdef_")) + trailer),
               record("THREAD_MAP", u64(1, 7) + raw(name("t"))[:15] + b"\0"),
               record("EVENT_UPDATE", u64(0, 5) + padded(name("unit")))]
    for i in range(20):
        records.append(record("SAMPLE", u64(5, 0x7100000110 if i % 2 else 0x401000) + who + u64(1000 + i, 100), USER))
        values = struct.pack("<HBBi16si", 375, 0, 0, 7, raw(name("v"))[4 * i:4 * i + 15], i)
        records.append(record("SAMPLE", u64(6, 0xffffffff81000100) + who + u64(1000 + i, 1) + u32(len(values)) + values, KERNEL))
    parts = every_feature(events)
    for feature in "hostname", "osrelease", "version", "cpudesc", "cpuid":
        parts[SPECIAL[feature]] = text(name(feature))
    caps = u32(1) + text(name("cap")) + text(name("value"))
    parts[SPECIAL["cmdline"]] = texts("perf", "record", "--", name("program"), name("argument"))
    parts[SPECIAL["cpu_topology"]] = texts(name("socket")) + texts(name("thread")) + u32(0, 0, 1, 0, 0, 0, 1, 0) + texts(name("die")) + u32(0, 0, 1, 1)
    parts[SPECIAL["numa"]] = u32(1) + u32(0) + u64(8 << 20, 1 << 20) + text(name("node"))
    parts[SPECIAL["pmus"]] = u32(1) + u32(4) + text(name("pmu"))
    parts[SPECIAL["groups"]] = u32(1) + text(name("group")) + u32(0, 2)
    parts[SPECIAL["cache"]] = u32(1, 1) + u32(1, 64, 64, 8) + text(name("Data")) + text(name("32K")) + text(name("0,2"))
    parts[SPECIAL["hybrid"]] = u32(1) + text(name("core")) + text(name("0-1"))
    parts[SPECIAL["cpu_caps"]] = caps
    parts[SPECIAL["pmu_caps"]] = u32(1) + caps + text(name("pmu"))
    parts[SPECIAL["cpu_domains"]] = u32(17, 1) + u32(0, 1) + u32(0) + text(name("SMT")) + text(name("mask")) + text(name("list"))
    parts[1] = tracing_data(name("sys"), [WAKING])
    parts[128] = simpleperf_file(name("/lib/"), 2, 0x2000, [(0x2100, 0x80, name("inflate")), (0x2200, 0x80, name("ns::f(int)"))], u64(0x2000))
    parts[128] += simpleperf_file(name("/map"), 2, 0, [(0x1000, 0x80, name("main"))], u64(0))
    parts[128] += simpleperf_file("[kernel.kallsyms]", 0, 0, [(0xffffffff81000100, 0x40, name("schedule"))])
    parts[129] = raw(name("key")) + b"\0" + raw(name("value")) + b"\0"
    for feature in "branch_stack", "auxtrace", "stat", "compressed":
        del parts[SPECIAL[feature]]
    write_file(path, events, records, parts)


def named_badly(path):
    named_events(path, [named_event(name, 5 + i) for i, name in enumerate(HOSTILE_NAMES)])


def mapped_library(device, inode, start, size, offset, misc=USER):
    name = library()[0]
    pids = u32(LIBRARY_PID, LIBRARY_PID)
    return record("MMAP2", pids + u64(start, size, offset) + u32(*device) + u64(inode, 0) + u32(5, 2) + padded(name) + pids + u64(1000), misc)


def write_identities(path, maps, samples, features={}):
    """Samples of one process, of (address, misc)."""
    pids = u32(LIBRARY_PID, LIBRARY_PID)
    event = Event("cycles", [5], type=0, sample_type=IP | TID | TIME | PERIOD)
    records = [record("COMM", pids + padded("mapper") + pids + u64(1000)), *maps]
    records += [record("SAMPLE", u64(ip) + pids + u64(2000 + i, 1), misc) for i, (ip, misc) in enumerate(samples)]
    write_file(path, [event], records, {**common_features([event]), **features})


def library_identity():
    name, offset, length = library()
    file = os.stat(name)
    return (os.major(file.st_dev), os.minor(file.st_dev)), file.st_ino, offset, (length + 4095) & ~4095


def library_place():
    """An address of the library's function in the middle."""
    return BASE + 0x20001


def library_of_this_machine(path):
    device, inode, offset, size = library_identity()
    write_identities(path, [mapped_library(device, inode, BASE, size, offset)], [(library_place(), USER)])


def library_without_inode(path):
    """The mapped range is that of the file's code."""
    _, _, offset, size = library_identity()
    write_identities(path, [mapped_library((0, 0), 0, BASE, size, offset)], [(library_place(), USER)])


def library_of_other_size(path):
    """… and here it is another."""
    _, _, offset, size = library_identity()
    write_identities(path, [mapped_library((0, 0), 0, BASE, size + 0x3000, offset)], [(library_place(), USER)])


def library_of_another_machine(path):
    _, inode, offset, size = library_identity()
    write_identities(path, [mapped_library((259, 2), inode + 12345, BASE, size + 0x3f000, offset + 0x2000)], [(library_place(), USER)])


def library_of_another_inode(path):
    device, inode, offset, size = library_identity()
    write_identities(path, [mapped_library(device, inode + 1, BASE, size, offset)], [(library_place(), USER)])


def guests(path):
    """A process of the host, and guests at the same addresses, which have another build of the
    library."""
    device, inode, offset, size = library_identity()
    kernel = 0xffffffff81000000
    place = library_place()
    maps = [record("MMAP", u32(-1, 0) + u64(kernel, 0x1000000, kernel) + padded("[kernel.kallsyms]_text") + u32(-1, 0) + u64(0), KERNEL),
            mapped_library(device, inode, BASE, size, offset),
            mapped_library((8, 1), 77, BASE - 0x1000, size, offset, GUEST_USER)]
    listed = b""
    for name, misc in (library()[0], GUEST_USER), ("[guest.kernel.kallsyms]", GUEST_KERNEL):
        body = u32(-1) + bytes(range(20)) + bytes([20, 0, 0, 0]) + padded(name, 64)
        listed += struct.pack("<IHH", 0, misc | 1 << 15, 8 + len(body)) + body
    write_identities(path, maps, [(place, USER), (kernel + 0x1000, GUEST_KERNEL), (place, GUEST_USER)], {SPECIAL["build_id"]: listed})


def old_vdso(path):
    """Linux before 4.8 recorded the vdso with its address as the offset."""
    start = 0x7ffff7fc1000
    pids = u32(LIBRARY_PID, LIBRARY_PID)
    maps = [record("MMAP", pids + u64(start, 0x2000, start) + padded("[vdso]") + pids + u64(1000), USER)]
    write_identities(path, maps, [(start + at, USER) for at in range(0x400, 0x2000, 0x20)], {SPECIAL["osrelease"]: text(os.uname().release)})


def user_in_kernel(path):
    """Addresses of programs in samples of kernel mode."""
    kernel, program = 0xffffffff81000000, 0x401000
    event = Event("cpu-clock", [5], sample_type=IP | TID | TIME | CALLCHAIN)
    who = u32(7, 7)
    records = [record("MMAP", u32(-1, 0) + u64(kernel, 0x1000000, kernel) + padded("[kernel.kallsyms]_text") + u32(-1, 0) + u64(0), KERNEL),
               record("MMAP", who + u64(0x400000, 0x10000, 0) + padded("/bin/none") + who + u64(1), USER),
               record("COMM", who + padded("odd") + who + u64(2))]
    for number, (ip, misc) in enumerate(((program, KERNEL), (0x7fff12345678, KERNEL), (program, USER))):
        records.append(record("SAMPLE", u64(ip) + who + u64(10 + number, 3, -128, ip, program), misc))
    write_file(path, [event], records, common_features([event]))


def early_mmap2(path):
    """MMAP2 records of the first recorders for Linux 3.12.

    The name is where protection and flags are today."""
    event = Event("cpu-clock", [5], sample_type=IP | TID | TIME)
    who = u32(7, 7)
    device = u32(8, 1) + u64(77, 0)
    records = [record("COMM", who + padded("early") + who + u64(1)),
               record("MMAP2", who + u64(0x400000, 0x10000, 0) + device + padded("/bin/early-program") + who + u64(2), USER),
               record("MMAP2", who + u64(0x7f0000000000, 0x10000, 0) + device + padded("[vdso]") + who + u64(3), USER),
               record("MMAP2", who + u64(0x600000, 0x10000, 0x8000) + device + u32(5, 2) + padded("/bin/later") + who + u64(4), USER)]
    records += [record("SAMPLE", u64(ip) + who + u64(10 + ip % 7), USER) for ip in (0x400123, 0x7f0000000456, 0x600789)]
    write_file(path, [event], records, common_features([event]))


def counted(path):
    """perf record -c of a counter, each event on a CPU of its own.

    "steady" has a sample each 1 ms for 100 ms, "pauses" for 20 ms and again 300 ms later; "once"
    has one."""
    event = Event("cycles", [5], type=0, period=1000000, sample_type=IP | TID | TIME | CPU)
    comms = [record("COMM", u32(pid, pid) + padded(name) + u32(pid, pid) + u64(900000000) + u32(0, 0))
             for pid, name in ((11, "steady"), (12, "pauses"), (13, "once"))]
    times = [(1000 + i, 11, 0) for i in range(100)] + [(1000 + i, 12, 1) for i in range(20)]
    times += [(1320 + i, 12, 1) for i in range(20)] + [(1400, 13, 2)]
    samples = [record("SAMPLE", u64(BASE) + u32(pid, pid) + u64(ms * 1000000) + u32(cpu, 0), USER)
               for ms, pid, cpu in sorted(times)]
    write_file(path, [event], comms + samples, common_features([event]))


def counted_once(path):
    event = Event("cycles", [5], type=0, period=1000000, sample_type=IP | TID | TIME | CPU)
    write_file(path, [event], [record("SAMPLE", u64(BASE) + u32(11, 11) + u64(1000000) + u32(0, 0), USER)],
               common_features([event]))


U_ONLY, K_ONLY, NO_GUEST, NO_HOST = 1 << 5 | 1 << 6, 1 << 4 | 1 << 6, 1 << 20, 1 << 19


def nameless(path):
    """Events of all kinds and modifiers without EVENT_DESC, with a sample of each."""
    wanted = [(0, 0, flags | precise << 15) for flags in (0, U_ONLY, K_ONLY, 1 << 6, 1 << 5, 1 << 4)
              for precise in (0, 1, 2, 3)]
    wanted = [(kind, config, flags | machine) for kind, config, flags in wanted for machine in (0, NO_GUEST, NO_HOST, NO_GUEST | NO_HOST)]
    wanted += [(0, number, U_ONLY) for number in range(10)] + [(1, number, U_ONLY) for number in range(10)]
    wanted += [(3, cache | op << 8 | result << 16, U_ONLY) for cache in range(7) for op in range(3) for result in range(2)
               if not (cache in (1, 4, 5) and op == 1) and not (cache in (4, 5) and op == 2)]
    wanted += [(4, 0x1cb, 0), (4, 0x3c, U_ONLY | 2 << 15)]
    events = [Event("", [100 + i], type=kind, config=config, flags=SAMPLE_ID_ALL | flags, sample_type=IP | TID | TIME | IDENTIFIER)
              for i, (kind, config, flags) in enumerate(wanted)]
    events += [Event("", [900 + i], type=5, bp_type=i, config1=0x401000, config2=4, flags=SAMPLE_ID_ALL | U_ONLY,
                     sample_type=IP | TID | TIME | IDENTIFIER) for i in (1, 2, 3, 4)]
    records = [record("SAMPLE", u64(event.ids[0], BASE) + u32(7, 7) + u64(1000 + i), USER) for i, event in enumerate(events)]
    features = common_features(events)
    del features[SPECIAL["event_desc"]]
    write_file(path, events, records, features)


def traced(kind, samples, sampled=b""):
    """A CPU's trace of some bytes in two AUX areas, and samples of a clock."""
    trace = Event("intel_pt//", [5], type=8, config=0x300e601, sample_type=IP | TID | TIME | CPU | IDENTIFIER)
    clock = Event("cpu-clock", [6], type=1, sample_type=IP | TID | TIME | CPU | IDENTIFIER | (AUX if sampled else 0))
    who = u32(LIBRARY_PID, LIBRARY_PID)
    areas = [record("AUXTRACE", u64(size, offset, 0) + u32(0, LIBRARY_PID, 0, 0)) + b"\2\x82" * (size // 2)
             for size, offset in ((4096, 0), (1024, 4096))]
    records = [record("AUXTRACE_INFO", u32(kind, 0) + u64(1, 2, 3, 4)), record("FINISHED_INIT", b""),
               record("COMM", who + padded("traced") + who + u64(1000, 0, 5)),
               record(11, u64(0, 4096, 0) + who + u64(1500, 0, 5))]
    tail = u64(len(sampled)) + sampled if sampled else b""
    records += [record("SAMPLE", u64(6, BASE + 0x20001) + who + u64(2000 + i, 0) + tail, USER) for i in range(samples)]
    return [trace, clock], records + ([] if sampled else areas)


def write_traced(path, *what):
    events, records = traced(*what)
    write_file(path, events, records, {**common_features(events), SPECIAL["auxtrace"]: u64(0)})


def traced_pt(path):
    write_traced(path, 1, 0)


def traced_etm_samples(path):
    write_traced(path, 3, 7)


def traced_unknown(path):
    write_traced(path, 77, 0)


def traced_in_samples(path):
    write_traced(path, 1, 3, b"\2\x82" * 32)


def tool_pipe(path):
    """A pipe with everything that perf accepts without a warning."""
    write_pipe(path, tool_records(True))


def tool_pipe_more(path):
    """The same with the rest, and with unknown records."""
    write_pipe(path, tool_records(False))


def tool_file(path):
    """A recording of perf stat record with such records."""
    event = Event("cycles", [5], type=0)
    write_file(path, [event], [record("STAT_CONFIG", u64(1, 1, 4)), record("STAT", u64(5) + u32(0, 0) + u64(1, 2, 3)),
                               record("STAT_ROUND", u64(1, 5000))], {**common_features([event]), SPECIAL["stat"]: b""})


KINDS = {name: value for name, value in list(globals().items())
         if callable(value) and getattr(value, "__code__", None) and value.__code__.co_varnames[:1] == ("path",)
         and not name.startswith("write_")}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in KINDS:
        sys.exit("usage: make_recording.py %s FILE" % "|".join(sorted(KINDS)))
    KINDS[sys.argv[1]](sys.argv[2])
