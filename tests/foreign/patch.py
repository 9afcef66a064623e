#!/usr/bin/env python3
"""Changes a perf recording into one of another or older recorder: patch.py [OPTION…] IN OUT.

    --unsized          build-ids without their size, as perf before 5.12 and simpleperf write them
    --killed           as a killed recorder leaves it: no sizes, no sections, but their bits
    --without N        without feature section N (may be repeated)
    --tracing-inside   formats of tracepoints in a record, as simpleperf has them (of type 66)
    --tracing-record   the same in simpleperf's own record (32777), which has a 32-bit size
    --text N TEXT      feature N is this string
    --module PATH      a kernel module's map of this path, at the beginning
    --stext OFFSET     the kernel's map names _stext, at this distance behind _text
    --untimed          times only in samples (sample_id_all), as before Linux 2.6.37
    --old-mmap2        MMAP2 records of Linux 3.12 to 3.15: without protection and flags

IN is a seekable little-endian perf.data, not compressed, as for reencode.py.
"""
import argparse
import struct

TRACING, BUILD_ID = 1, 2
BUILD_ID_SIZE = 1 << 15
SAMPLE, MMAP2 = 9, 10
SAMPLE_ID_ALL = 1 << 18
TRAILER = 2 | 4 | 64 | 128 | 512 | 65536 # TID, TIME, ID, CPU, STREAM_ID, IDENTIFIER


class Recording:
    def __init__(self, data):
        self.head = data[:104]
        self.data_at, self.data_size = struct.unpack_from('<QQ', data, 40)
        self.front = bytearray(data[104:self.data_at])
        self.attrs, = struct.unpack_from('<Q', data, 24)
        sample_type, = struct.unpack_from('<Q', data, self.attrs + 24)
        self.trailer = 8 * bin(sample_type & TRAILER).count('1')
        end = self.data_at + self.data_size
        self.records = data[self.data_at:end]
        self.bits = int.from_bytes(data[72:104], 'little')
        self.features = {}
        for bit in range(256):
            if self.bits >> bit & 1:
                at, size = struct.unpack_from('<QQ', data, end)
                self.features[bit] = data[at:at + size]
                end += 16

    def write(self, killed=False):
        head = bytearray(self.head)
        if killed:
            head[48:56] = bytes(8)
            return bytes(head) + bytes(self.front) + self.records
        struct.pack_into('<Q', head, 48, len(self.records))
        head[72:104] = sum(1 << bit for bit in self.features).to_bytes(32, 'little')
        at = self.data_at + len(self.records) + 16 * len(self.features)
        table = bodies = b''
        for bit in sorted(self.features):
            table += struct.pack('<QQ', at + len(bodies), len(self.features[bit]))
            bodies += self.features[bit]
        return bytes(head) + bytes(self.front) + self.records + table + bodies

    def untime(self):
        """Changes one event; ignores EVENT_DESC."""
        at = self.attrs - 104 + 40
        flags, = struct.unpack_from('<Q', self.front, at)
        struct.pack_into('<Q', self.front, at, flags & ~SAMPLE_ID_ALL)
        self.each_record(lambda kind, misc, body: body[:-self.trailer] if kind < 64 and kind != SAMPLE else body)

    def each_record(self, change):
        out, at = [], 0
        while at < len(self.records):
            kind, misc, size = struct.unpack_from('<IHH', self.records, at)
            body = change(kind, misc, self.records[at + 8:at + size])
            out.append(struct.pack('<IHH', kind, misc, 8 + len(body)) + body)
            at += size
        self.records = b''.join(out)


def unsized(section):
    """Clears the sizes, and the bit that says that they exist."""
    out, at = bytearray(section), 0
    while at < len(out):
        misc, size = struct.unpack_from('<HH', out, at + 4)
        struct.pack_into('<H', out, at + 4, misc & ~BUILD_ID_SIZE)
        out[at + 32:at + 36] = bytes(4)
        at += size
    return bytes(out)


def tracing_record(kind, section):
    room = (12 + len(section) + 63) // 64 * 64
    upper = room >> 16 if kind > 32768 else 0
    return struct.pack('<IHHI', kind, upper, room & 0xffff, len(section)) + section.ljust(room - 12, b'\0')


def stext(offset):
    """Changes MMAP records of the kernel."""
    def change(kind, misc, body):
        if kind != 1 or not body[32:].startswith(b'[kernel.kallsyms]_text\0'):
            return body
        at = struct.unpack_from('<Q', body, 24)[0] + offset
        return body[:24] + struct.pack('<Q', at) + b'[kernel.kallsyms]_stext\0' + body[56:]
    return change


def module(path, trailer):
    name = path.encode()
    name = name.ljust((len(name) + 8) // 8 * 8, b'\0')
    body = struct.pack('<iiQQQ', -1, 0, 0xffffffffc0000000, 0x4000, 0) + name + bytes(trailer)
    return struct.pack('<IHH', 1, 1, 8 + len(body)) + body


def main():
    parser = argparse.ArgumentParser()
    for flag in ('--unsized', '--killed', '--tracing-inside', '--tracing-record', '--old-mmap2', '--untimed'):
        parser.add_argument(flag, action='store_true')
    parser.add_argument('--without', type=int, action='append', default=[])
    parser.add_argument('--module')
    parser.add_argument('--stext', type=int)
    parser.add_argument('--text', nargs=2, action='append', default=[])
    parser.add_argument('input')
    parser.add_argument('output')
    options = parser.parse_args()
    with open(options.input, 'rb') as file:
        recording = Recording(file.read())
    features = recording.features
    if options.unsized:
        features[BUILD_ID] = unsized(features[BUILD_ID])
    if options.tracing_inside or options.tracing_record:
        kind = 66 if options.tracing_inside else 32777
        recording.records = tracing_record(kind, features.pop(TRACING)) + recording.records
    if options.untimed:
        recording.untime()
    if options.old_mmap2:
        recording.each_record(lambda kind, misc, body: body[:56] + body[64:] if kind == MMAP2 else body)
    if options.stext is not None:
        recording.each_record(stext(options.stext))
    if options.module:
        recording.records = module(options.module, recording.trailer) + recording.records
    for feature, text in options.text:
        room = (len(text) + 64) // 64 * 64
        features[int(feature)] = struct.pack('<I', room) + text.encode().ljust(room, b'\0')
    for feature in options.without:
        features.pop(feature, None)
    with open(options.output, 'wb') as file:
        file.write(recording.write(options.killed))


main()
