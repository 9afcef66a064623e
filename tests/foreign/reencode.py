#!/usr/bin/env python3
"""Writes a recording as a machine of the other byte order would: little-endian perf.data →
big-endian.

    reencode.py [--pipe] [--compress] [--words32] [--first] [--attr-size N] [--little]
                [--arch NAME] [--registers MASK] [--abi N] IN OUT

IN is a seekable little-endian perf.data, not compressed (as `perf record` without -z writes it).
    --pipe         as `perf record -o -` writes it: a file's sections are records of the stream
    --compress     the records are in COMPRESSED records (needs zstd)
    --words32      the bitmap of features has 32-bit words, as on a 32-bit machine
    --first        the first format, PERFFILE
    --attr-size N  attributes of this size: truncated, or longer than known, with unknown content
    --little       in the byte order of IN: for the effect of the other options
    --arch NAME    another machine in the feature ARCH
    --registers MASK  samples with user registers have these; each value is its number times 0x11
    --abi N        these are of a program of 32 (1) or 64 bits (2)

This shares nothing with the reader.  The layouts are perf's (tools/perf/util/header.c,
tools/lib/perf/include/perf/event.h) and the kernel's (include/uapi/linux/perf_event.h).  The fields
of a raw tracepoint are converted by its format, as recorded in IN.
"""
import argparse
import re
import struct
import subprocess
import sys

(MMAP, LOST, COMM, EXIT, THROTTLE, UNTHROTTLE, FORK, READ, SAMPLE, MMAP2, AUX, ITRACE_START, LOST_SAMPLES, SWITCH,
 SWITCH_CPU_WIDE, NAMESPACES, KSYMBOL, BPF_EVENT, CGROUP, TEXT_POKE, AUX_OUTPUT_HW_ID, CALLCHAIN_DEFERRED) = range(1, 23)
(HEADER_ATTR, EVENT_TYPE, TRACING_DATA, BUILD_ID, FINISHED_ROUND, ID_INDEX, AUXTRACE_INFO, AUXTRACE, AUXTRACE_ERROR,
 THREAD_MAP, CPU_MAP, STAT_CONFIG, STAT, STAT_ROUND, EVENT_UPDATE, TIME_CONV, HEADER_FEATURE, COMPRESSED,
 FINISHED_INIT) = range(64, 83)
(S_IP, S_TID, S_TIME, S_ADDR, S_READ, S_CALLCHAIN, S_ID, S_CPU, S_PERIOD, S_STREAM, S_RAW, S_BRANCH, S_REGS_USER,
 S_STACK, S_WEIGHT, S_DATA_SRC, S_IDENTIFIER, S_TRANSACTION, S_REGS_INTR, S_PHYS, S_AUX, S_CGROUP, S_DATA_PAGE,
 S_CODE_PAGE, S_WEIGHT_STRUCT) = (1 << bit for bit in range(25))
MISC_MMAP_BUILD_ID = 1 << 14
SAMPLE_ID_ALL = 1 << 18
F_TRACING, F_BUILD_ID, F_HOSTNAME, F_ARCH, F_NRCPUS, F_EVENT_DESC, F_TOPOLOGY, F_COMPRESSED, F_DOMAINS = 1, 2, 3, 6, 7, 12, 13, 27, 32
BRANCH_HW_INDEX, BRANCH_COUNTERS = 1 << 17, 1 << 19
FIRST_FLAG_BITS = 64

FEATURES = {3: 's', 4: 's', 5: 's', 6: 's', 7: '44', 8: 's', 9: 's', 10: '8', 11: '{s}', 14: '{488s}', 15: '',
            16: '{4s}', 17: '{s44}', 18: '8*', 19: '', 20: '4{4444sss}', 21: '88', 22: '8*', 23: '8', 24: '8',
            27: '4*', 28: '{ss}', 29: '4488', 30: '{ss}', 31: '{{ss}s}',
            33: '44', 34: '4'}
BPF = (25, 26)
RECORDS = {MMAP: '44888', LOST: '88', COMM: '44', EXIT: '44448', FORK: '44448', THROTTLE: '888', UNTHROTTLE: '888',
           READ: '448*', AUX: '888', ITRACE_START: '44', LOST_SAMPLES: '8', SWITCH: '', SWITCH_CPU_WIDE: '44',
           NAMESPACES: '448*', KSYMBOL: '8422', BPF_EVENT: '224', CGROUP: '8', TEXT_POKE: '822', AUX_OUTPUT_HW_ID: '8',
           CALLCHAIN_DEFERRED: '8*'}
TOOLS = {EVENT_TYPE: '8', TRACING_DATA: '4', BUILD_ID: '4', FINISHED_ROUND: '', ID_INDEX: '8*', AUXTRACE_INFO: '448*',
         AUXTRACE: '8884444', AUXTRACE_ERROR: '44444488', STAT_CONFIG: '8*', STAT: '844888', STAT_ROUND: '88',
         TIME_CONV: '88888', FINISHED_INIT: ''}


class Turner:
    """Takes little-endian fields from `data` and appends them to `out` in the target's order."""

    def __init__(self, data, big):
        self.data, self.at, self.out, self.big = data, 0, bytearray(), big

    def number(self, size):
        value = int.from_bytes(self.data[self.at:self.at + size], 'little')
        self.at += size
        return value

    def put(self, value, size):
        self.out += value.to_bytes(size, 'big' if self.big else 'little')

    def turn(self, size):
        value = self.number(size)
        self.put(value, size)
        return value

    def raw(self, size):
        self.out += self.data[self.at:self.at + size]
        self.at += size

    def left(self):
        return len(self.data) - self.at

    def rest(self):
        self.raw(self.left())

    def fields(self, layout):
        i = 0
        while i < len(layout) and self.left() > 0:
            c = layout[i]
            if c in '248':
                if layout[i + 1:i + 2] == '*':
                    while self.left() >= int(c):
                        self.turn(int(c))
                    i += 1
                else:
                    self.turn(int(c))
            elif c == 's':
                self.raw(self.turn(4))
            elif c == '{':
                depth, end = 1, i
                while depth:
                    end += 1
                    depth += {'{': 1, '}': -1}.get(layout[end], 0)
                for _ in range(self.turn(4)):
                    self.fields(layout[i + 1:end])
                i = end
            i += 1


def place_bits(value, widths, big):
    """Places bit-fields of these widths, in order of declaration, like the target's compiler in 64
    bits."""
    out = at = 0
    for width in widths:
        field = value >> at & ((1 << width) - 1)
        out |= field << (64 - at - width if big else at)
        at += width
    return out


ATTR_FLAGS = [1] * 15 + [2] + [1] * 47                    # precise_ip has two bits
BRANCH_FLAGS = [1, 1, 1, 1, 16, 4, 2, 4, 3, 31]           # mispred predicted in_tx abort cycles type spec new_type priv


class Attr:
    def __init__(self, data):
        self.data = bytes(data)
        size = struct.unpack_from('<I', data, 4)[0] or 64
        full = self.data[:size].ljust(136, b'\0')
        (self.type, self.size, self.config, self.period, self.sample_type, self.read_format,
         self.flags) = struct.unpack_from('<IIQQQQQ', full)
        (self.wakeup, self.bp_type, self.config1, self.config2, self.branch_type, self.regs_user, self.stack_user,
         self.clockid, self.regs_intr) = struct.unpack_from('<IIQQQQIiQ', full, 48)
        self.aux_tail = struct.unpack_from('<IHHII', full, 104)
        self.tail = struct.unpack_from('<QQ', full, 120)
        self.actual = size

    def encode(self, big, size=None, registers=None):
        regs_user = registers if registers and self.sample_type & S_REGS_USER else self.regs_user
        order, wanted = '>' if big else '<', size or self.actual
        out = struct.pack(order + 'IIQQQQQ', self.type, wanted, self.config, self.period, self.sample_type,
                          self.read_format, place_bits(self.flags, ATTR_FLAGS, big))
        out += struct.pack(order + 'IIQQQQIiQ', self.wakeup, self.bp_type, self.config1, self.config2,
                           self.branch_type, regs_user, self.stack_user, self.clockid, self.regs_intr)
        out += struct.pack(order + 'IHHII', *self.aux_tail) + struct.pack(order + 'QQ', *self.tail)
        return out[:wanted] + bytes((7 * i + 1) % 256 for i in range(wanted - len(out)))


class Format:
    """The places of a tracepoint's numbers; the targets of __data_loc count as strings and
    bytes."""

    def __init__(self, text):
        self.numbers, self.locations = [], []
        for line in text.splitlines():
            field = re.match(r'\s*field:(.*);\s*offset:(\d+);\s*size:(\d+);\s*signed:(\d);', line)
            if not field:
                continue
            what, offset, size = field.group(1), int(field.group(2)), int(field.group(3))
            if '__data_loc' in what or '__rel_loc' in what:
                self.numbers.append((offset, 4))
                if re.search(r'\b(unsigned )?(long|u64|__u64|u32|int)\b', what):
                    element = 4 if re.search(r'\b(u32|int)\b', what) else 8
                    self.locations.append((offset, element))
                continue
            array = re.search(r'\[(\d*)\]', what)
            element = size
            if array:
                if re.search(r'\b(char|u8|__u8|uint8_t)\b', what):
                    continue
                count = int(array.group(1) or 0)
                element = size // count if count and size % count == 0 else 1
            if element in (2, 4, 8):
                self.numbers += [(at, element) for at in range(offset, offset + size, element)]

    def turn(self, raw):
        out = bytearray(raw)
        for offset, size in self.numbers:
            if offset + size <= len(raw):
                out[offset:offset + size] = raw[offset:offset + size][::-1]
        for offset, element in self.locations:
            if offset + 4 <= len(raw):
                where = struct.unpack_from('<I', raw, offset)[0]
                for at in range(where & 0xffff, min((where & 0xffff) + (where >> 16), len(raw) - element + 1), element):
                    out[at:at + element] = raw[at:at + element][::-1]
        return bytes(out)


def tracing_text(turner, size, sink=None):
    length = turner.turn(size)
    if sink is not None:
        sink.append(turner.data[turner.at:turner.at + length].decode('latin1'))
    turner.raw(length)


def turn_string(turner):
    end = turner.data.index(b'\0', turner.at)
    turner.raw(end + 1 - turner.at)


def turn_tracing(data, big):
    """Converts TRACING_DATA.  Returns the formats in it by id."""
    turner, texts = Turner(data, big), []
    turner.raw(10)
    turn_string(turner)
    turner.number(1)
    turner.out.append(1 if big else 0)
    turner.raw(1)
    turner.turn(4)
    for _ in range(2):
        turn_string(turner)
        tracing_text(turner, 8)
    for _ in range(turner.turn(4)):
        tracing_text(turner, 8, texts)
    for _ in range(turner.turn(4)):
        turn_string(turner)
        for _ in range(turner.turn(4)):
            tracing_text(turner, 8, texts)
    tracing_text(turner, 4)
    tracing_text(turner, 4)
    if turner.left():
        tracing_text(turner, 8)
    formats = {int(re.search(r'^ID: (\d+)', text, re.M).group(1)): Format(text) for text in texts}
    return bytes(turner.out), formats


class Recording:
    def __init__(self, data, options):
        self.data, self.big, self.options = data, not options.little, options
        magic, self.header_size, entry = struct.unpack_from('<8sQQ', data)
        if magic != b'PERFILE2' or self.header_size != 104:
            sys.exit('reencode.py: not a seekable little-endian recording')
        (attrs_at, attrs_size, self.data_at, self.data_size, _, _) = struct.unpack_from('<6Q', data, 24)
        bits = int.from_bytes(data[72:104], 'little')
        self.events, self.by_id = [], {}
        for at in range(attrs_at, attrs_at + attrs_size, entry):
            ids_at, ids_size = struct.unpack_from('<QQ', data, at + entry - 16)
            ids = [value for value, in struct.iter_unpack('<Q', data[ids_at:ids_at + ids_size])]
            attr = Attr(data[at:at + entry - 16])
            self.events.append((attr, ids))
            for one in ids:
                self.by_id[one] = attr
        self.features, at = {}, self.data_at + self.data_size
        for bit in range(256):
            if bits >> bit & 1:
                where, size = struct.unpack_from('<QQ', data, at)
                self.features[bit] = data[where:where + size]
                at += 16
        if F_COMPRESSED in self.features:
            sys.exit('reencode.py: the recording is compressed')
        self.formats = turn_tracing(self.features[F_TRACING], self.big)[1] if F_TRACING in self.features else {}

    # ---- features ----

    def feature(self, bit):
        turner = Turner(self.features[bit], self.big)
        if bit == F_TRACING:
            return turn_tracing(self.features[bit], self.big)[0]
        if bit == F_ARCH and self.options.arch:
            text = self.options.arch.encode().ljust(64, b'\0')
            turner.put(len(text), 4)
            return bytes(turner.out + text)
        if bit == F_BUILD_ID:
            while turner.left():
                start = turner.at
                turner.fields('42')
                size = turner.turn(2)
                turner.turn(4)
                turner.raw(start + size - turner.at)
        elif bit == F_EVENT_DESC:
            count = turner.turn(4)
            size = turner.number(4)
            wanted = self.attr_size(size)
            turner.put(wanted, 4)
            for _ in range(count):
                turner.out += Attr(turner.data[turner.at:turner.at + size]).encode(self.big, wanted)
                turner.at += size
                ids = turner.turn(4)
                turner.fields('s' + '8' * ids)
        elif bit == F_TOPOLOGY:
            cpus = struct.unpack_from('<I', self.features[F_NRCPUS])[0]
            turner.fields('{s}{s}' + '44' * cpus + '{s}4*')
        elif bit == F_DOMAINS:
            turner.fields('44')
            while turner.left():
                turner.fields('4{4sss}')
        elif bit in FEATURES:
            turner.fields(FEATURES[bit])
        elif bit in BPF:
            return None
        turner.rest()
        return bytes(turner.out)

    def attr_size(self, size):
        return self.options.attr_size or size

    # ---- records ----

    def event_of(self, kind, body):
        first = self.events[0][0]
        if len(self.events) == 1 or not first.sample_type & (S_IDENTIFIER | S_ID):
            return first
        kept, words = first.sample_type, lambda bits: 8 * bin(first.sample_type & bits).count('1')
        if kind == SAMPLE:
            at = 0 if kept & S_IDENTIFIER else words(S_IP | S_TID | S_TIME | S_ADDR)
        else:
            if not first.flags & SAMPLE_ID_ALL:
                return first
            at = len(body) - (8 if kept & S_IDENTIFIER else 8 + words(S_STREAM | S_CPU))
        if at < 0 or at + 8 > len(body):
            return first
        return self.by_id.get(struct.unpack_from('<Q', body, at)[0], first)

    def values(self, turner, form):
        times, others = bin(form & 3).count('1'), bin(form & (4 | 16)).count('1')
        if form & 8:
            count = turner.turn(8)
            for _ in range(times + count * (1 + others)):
                turner.turn(8)
        else:
            for _ in range(1 + times + others):
                turner.turn(8)

    def sample(self, turner, attr):
        kind = attr.sample_type
        for bit, layout in ((S_IDENTIFIER, '8'), (S_IP, '8'), (S_TID, '44'), (S_TIME, '8'), (S_ADDR, '8'), (S_ID, '8'),
                            (S_STREAM, '8'), (S_CPU, '44'), (S_PERIOD, '8')):
            if kind & bit:
                turner.fields(layout)
        if kind & S_READ:
            self.values(turner, attr.read_format)
        if kind & S_CALLCHAIN:
            for _ in range(turner.turn(8)):
                turner.turn(8)
        if kind & S_RAW:
            size = turner.turn(4)
            raw = turner.data[turner.at:turner.at + size]
            form = self.formats.get(attr.config) if attr.type == 2 else None
            turner.out += form.turn(raw) if form and self.big else raw
            turner.at += size
            turner.raw(-(4 + size) % 8)
        if kind & S_BRANCH:
            count = turner.turn(8)
            if attr.branch_type & BRANCH_HW_INDEX:
                turner.turn(8)
            for _ in range(count):
                turner.fields('88')
                turner.put(place_bits(turner.number(8), BRANCH_FLAGS, self.big), 8)
            if attr.branch_type & BRANCH_COUNTERS:
                turner.fields('8' * count)
        if kind & S_REGS_USER:
            self.registers(turner, attr)
        if kind & S_STACK:
            size = turner.turn(8)
            if size:
                for _ in range(size // 8):
                    turner.turn(8) # a 64-bit machine: mostly words
                turner.turn(8)
        for bits in (S_WEIGHT | S_WEIGHT_STRUCT, S_DATA_SRC, S_TRANSACTION):
            if kind & bits:
                turner.turn(8)
        if kind & S_REGS_INTR and turner.turn(8):
            turner.fields('8' * bin(attr.regs_intr).count('1'))
        for bit in (S_PHYS, S_CGROUP, S_DATA_PAGE, S_CODE_PAGE):
            if kind & bit:
                turner.turn(8)
        if kind & S_AUX:
            turner.turn(8)
        turner.rest()

    def registers(self, turner, attr):
        abi, mask = turner.number(8), self.options.registers
        turner.put(self.options.abi or abi, 8)
        if abi and mask:
            turner.at += 8 * bin(attr.regs_user).count('1')
            for bit in range(64):
                if mask >> bit & 1:
                    turner.put(bit * 0x11, 8)
        elif abi:
            turner.fields('8' * bin(attr.regs_user).count('1'))

    def sideband(self, turner, kind, misc, attr):
        tail = b''
        if attr.flags & SAMPLE_ID_ALL:
            layout = ''.join(fields for bit, fields in ((S_TID, '44'), (S_TIME, '8'), (S_ID, '8'), (S_STREAM, '8'),
                                                        (S_CPU, '44'), (S_IDENTIFIER, '8')) if attr.sample_type & bit)
            size = sum(int(c) for c in layout)
            if turner.left() >= size:
                behind = Turner(turner.data[len(turner.data) - size:], self.big)
                behind.fields(layout)
                tail, turner.data = bytes(behind.out), turner.data[:len(turner.data) - size]
        if kind == MMAP2:
            turner.fields('44888')
            if misc & MISC_MMAP_BUILD_ID:
                turner.raw(24)
            else:
                turner.fields('4488')
            if min(turner.data[turner.at:turner.at + 2]) < 32: # otherwise it is the name: Linux 3.12
                turner.fields('44')
        else:
            turner.fields(RECORDS[kind])
        turner.rest()
        turner.out += tail

    def tool(self, turner, kind):
        if kind == THREAD_MAP:
            for _ in range(turner.turn(8)):
                turner.turn(8)
                turner.raw(16)
        elif kind == CPU_MAP:
            self.cpu_map(turner)
        elif kind == EVENT_UPDATE:
            what = turner.turn(8)
            turner.turn(8)
            if what == 1:
                turner.turn(8)
            elif what == 3:
                self.cpu_map(turner)
        else:
            turner.fields(TOOLS[kind])
        turner.rest()

    def cpu_map(self, turner):
        what = turner.turn(2)
        if what == 0:
            turner.fields('22*')
        elif what == 1:
            turner.turn(2)
            if turner.turn(2) == 8:
                turner.raw(2)
                turner.fields('8*')
            else:
                turner.fields('4*')
        elif what == 2:
            turner.raw(2)
            turner.fields('22')

    def records(self):
        at, end = self.data_at, self.data_at + self.data_size
        while at < end:
            kind, misc, size = struct.unpack_from('<IHH', self.data, at)
            body = self.data[at + 8:at + size]
            turner = Turner(body, self.big)
            if kind == SAMPLE:
                self.sample(turner, self.event_of(kind, body))
            elif kind < 64:
                self.sideband(turner, kind, misc, self.event_of(kind, body))
            else:
                self.tool(turner, kind)
            yield self.record(kind, misc, bytes(turner.out))
            at += size
            if kind == AUXTRACE:
                payload = struct.unpack_from('<Q', body)[0]
                yield self.data[at:at + payload]
                at += payload

    def record(self, kind, misc, body):
        return struct.pack('>IHH' if self.big else '<IHH', kind, misc, 8 + len(body)) + body

    # ---- files ----

    def word(self, *values):
        return struct.pack(('>' if self.big else '<') + 'Q' * len(values), *values)

    def magic(self):
        if self.options.first:
            return b'PERFFILE'
        return b'2ELIFREP' if self.big else b'PERFILE2'

    def compressed(self, records):
        """Compresses all records as one zstd stream, divided where a record would become too
        large."""
        plain = b''.join(records)
        packed = subprocess.run(['zstd', '-q', '-1', '-c'], input=plain, stdout=subprocess.PIPE, check=True).stdout
        step = 60000
        self.features[F_COMPRESSED] = struct.pack('<5I', 1, 1, 1, 2, (len(plain) + 0xffff) & ~0xffff)
        return [self.record(COMPRESSED, 0, packed[at:at + step]) for at in range(0, len(packed), step)]

    def file(self):
        records = list(self.records())
        if self.options.compress:
            records = self.compressed(records)
        sizes = {id(attr): self.attr_size(attr.actual) for attr, _ in self.events}
        out, lists = bytearray(104), []
        for _, ids in self.events:
            lists.append((len(out), 8 * len(ids)))
            out += self.word(*ids)
        entry = max(sizes.values()) + 16
        attrs_at = len(out)
        for (attr, _), where in zip(self.events, lists):
            out += attr.encode(self.big, sizes[id(attr)], self.options.registers).ljust(entry - 16, b'\0') + self.word(*where)
        attrs_size, data_at = len(out) - attrs_at, len(out)
        out += b''.join(records)
        data_size = len(out) - data_at
        features = {bit: self.feature(bit) for bit in sorted(self.features)}
        features = {bit: body for bit, body in features.items() if body is not None}
        table = len(out)
        out += bytes(16 * len(features))
        for i, body in enumerate(features.values()):
            out[table + 16 * i:table + 16 * i + 16] = self.word(len(out), len(body))
            out += body
        bits, size = sum(1 << bit for bit in features), 4 if self.options.words32 else 8
        words = [bits >> (8 * size * i) & ((1 << 8 * size) - 1) for i in range(32 // size)]
        out[:104] = self.magic() + self.word(104, entry, attrs_at, attrs_size, data_at, data_size, 0, 0) + b''.join(
            word.to_bytes(size, 'big' if self.big else 'little') for word in words)
        return out

    def names(self):
        """Returns the events' names in EVENT_DESC's order."""
        reader, names = Turner(self.features[F_EVENT_DESC], False), []
        count, size = reader.number(4), reader.number(4)
        for _ in range(count):
            reader.at += size
            ids = reader.number(4)
            room = reader.number(4)
            names.append(reader.data[reader.at:reader.at + room].rstrip(b'\0'))
            reader.at += room + 8 * ids
        return names

    def pipe(self):
        records = list(self.records())
        if self.options.compress:
            records = self.compressed(records)
        out = bytearray(self.magic() + self.word(16))
        for attr, ids in self.events:
            out += self.record(HEADER_ATTR, 0, attr.encode(self.big, self.attr_size(attr.actual)) + self.word(*ids))
        for (_, ids), name in zip(self.events, self.names()):
            if ids:
                text = name + b'\0' * (8 - len(name) % 8)
                out += self.record(EVENT_UPDATE, 0, self.word(2, ids[0]) + text)
        for bit in sorted(self.features):
            body = self.feature(bit)
            if bit == F_TRACING:
                padded = body + bytes(-len(body) % 8)
                out += self.record(TRACING_DATA, 0, len(padded).to_bytes(4, 'big' if self.big else 'little')) + padded
            elif bit == F_BUILD_ID:
                at, order = 0, '>' if self.big else '<'
                while at < len(body):
                    size = struct.unpack_from(order + 'H', body, at + 6)[0]
                    out += self.record(BUILD_ID, struct.unpack_from(order + 'H', body, at + 4)[0], body[at + 8:at + size])
                    at += size
            elif body is not None and bit > F_BUILD_ID and len(body) < 60000:
                body += bytes(-len(body) % 8)
                out += self.record(HEADER_FEATURE, 0, self.word(bit) + body)
        # Ends the features as perf does.
        out += self.record(HEADER_FEATURE, 0, self.word(32))
        return out + b''.join(records)


def main():
    parser = argparse.ArgumentParser()
    for flag in ('--pipe', '--compress', '--words32', '--first', '--little'):
        parser.add_argument(flag, action='store_true')
    parser.add_argument('--attr-size', type=int)
    parser.add_argument('--arch')
    parser.add_argument('--abi', type=int)
    parser.add_argument('--registers', type=lambda text: int(text, 0))
    parser.add_argument('input')
    parser.add_argument('output')
    options = parser.parse_args()
    with open(options.input, 'rb') as file:
        recording = Recording(file.read(), options)
    with open(options.output, 'wb') as file:
        file.write(recording.pipe() if options.pipe else recording.file())


main()
