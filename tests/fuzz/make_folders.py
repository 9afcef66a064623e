#!/usr/bin/env python3
"""Makes the folders of tests/corpus/views and tests/corpus/walk (folder.h): programs, and recordings of them.

The fuzzer writes its process's number for PID, and its directory's name for DIRECTORY.
Usage: make_folders.py TALLY CORPUS; needs cc, c++ and binutils.
"""
import os
import struct
import subprocess
import sys
import tempfile

PID = 0x21444950
DIRECTORY = b'/tmp/tally-fuzz-XXXXXX'
TEXT = 0x400000

APP = r'''
struct node { long value; node *next; };
namespace shop {
template <typename T> static inline __attribute__((always_inline)) T twice(T n) { return n + n; }
__attribute__((noinline)) long leaf(long n) {
	volatile long sum = 0;
	for (long i = 0; i < n; i++)
		sum = sum + twice(i);
	return sum;
}
struct Cart { __attribute__((noinline)) long total(long n) const { return leaf(n) + twice(leaf(n / 2)); } };
template <typename A, typename B> __attribute__((noinline)) long pair_of(A a, B b) {
	volatile long room[4] = { (long)a, (long)b };
	return Cart().total(room[0]) + room[1];
}
}
extern "C" {
long data[64];
long d_name(long) __asm__("_D4core6memory2GC7collectFZv");
__attribute__((noinline)) long d_name(long n) { return shop::pair_of<int, char>((int)n, 'a') + data[n & 63]; }
static __attribute__((noinline)) long rusty(long n) __asm__("_RNvCs1234_7mycrate3foo");
static __attribute__((noinline)) long rusty(long n) { return d_name(n) + 1; }
void _start() { volatile long n = 3; rusty(n); for (;;) __asm__ volatile("hlt"); }
}
'''

# What calls foreign code, and Go's two switches of stacks.
ENTERED = r'''
	.text
	.globl schedule, StgRun, main
	.type StgRun, @function
StgRun:	.cfi_startproc
	push %rbx
	.cfi_def_cfa_offset 16
	sub $0x40, %rsp
	.cfi_def_cfa_offset 80
	jmp *%rdi
	add $0x40, %rsp
	.cfi_def_cfa_offset 16
	pop %rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size StgRun, .-StgRun
	.type schedule, @function
schedule: .cfi_startproc
	sub $0x18, %rsp
	.cfi_def_cfa_offset 32
	call StgRun
in_schedule: add $0x18, %rsp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size schedule, .-schedule
	.type main, @function
main:	.cfi_startproc
	.cfi_undefined rip
	call schedule
in_main: mov variable(%rip), %rax
	call *%rax
in_main_2: call *variable(%rip)
in_main_3: ret
	.cfi_endproc
	.size main, .-main
	.data
variable: .quad StgRun
'''
GO = r'''
	.section .gopclntab, "a"
	.incbin "table"
	.text
	.globl runtime.asmcgocall.abi0, runtime.cgocallback.abi0, runtime.cgocallbackg, c_function
	.type runtime.asmcgocall.abi0, @function
runtime.asmcgocall.abi0: .cfi_startproc
	sub $0x28, %rsp
	.cfi_def_cfa_offset 48
	call c_function
in_asmcgocall: mov 0x10(%rsp), %rdi
	mov 8(%rdi), %rsi
	sub 0x8(%rsp), %rsi
	mov %rsi, %rsp
	ret
	.cfi_endproc
	.size runtime.asmcgocall.abi0, .-runtime.asmcgocall.abi0
	.type on_thread, @function
on_thread: .cfi_startproc
	sub $0x28, %rsp
	.cfi_def_cfa_offset 48
	call c_function
in_on_thread: mov 0x10(%rsp), %rsi
	mov %rsi, %rsp
	ret
	.cfi_endproc
	.size on_thread, .-on_thread
	.type runtime.cgocallback.abi0, @function
runtime.cgocallback.abi0: .cfi_startproc
	sub $0x38, %rsp
	.cfi_def_cfa_offset 64
	call runtime.cgocallbackg
in_cgocallback: lea 0x38(%rsp), %rax
	sub %rsp, %rax
	ret
	.cfi_endproc
	.size runtime.cgocallback.abi0, .-runtime.cgocallback.abi0
	.type runtime.cgocallbackg, @function
runtime.cgocallbackg: .cfi_startproc
	nop
	call runtime.asmcgocall.abi0
in_cgocallbackg: ret
	.cfi_endproc
	.size runtime.cgocallbackg, .-runtime.cgocallbackg
	.type c_function, @function
c_function: .cfi_startproc
	nop
	ret
	.cfi_endproc
	.size c_function, .-c_function
'''


def build(source, suffix, *options, inputs=()):
    with tempfile.TemporaryDirectory() as folder:
        for name, data in inputs:
            with open(os.path.join(folder, name), 'wb') as file:
                file.write(data)
        path = os.path.join(folder, 'source' + suffix)
        with open(path, 'w') as file:
            file.write(source)
        out = os.path.join(folder, 'out')
        subprocess.run(['c++' if suffix == '.cpp' else 'cc', '-nostdlib', '-static', '-Wl,-z,noseparate-code',
                        '-Wl,--build-id', '-fno-pie', '-no-pie', '-Wl,--entry=0', *options, '-o', out, path], check=True, cwd=folder)
        symbols = {}
        for line in subprocess.run(['nm', out], check=True, capture_output=True, text=True).stdout.splitlines():
            if not line.startswith(' '):  # undefined
                address, _, name = line.split(maxsplit=2)
                symbols[name] = int(address, 16)
        with open(out, 'rb') as file:
            return file.read(), symbols


def folder(files, views=0):
    out = b'TALLYFLD' + struct.pack('<Q', views)
    for name, data in files:
        out += struct.pack('<HI', len(name), len(data)) + name.encode() + data
    return out


# ---- recordings ------------------------------------------------------------

IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD, STREAM = (1 << i for i in range(10))
RAW, BRANCH, REGS_USER, STACK_USER, WEIGHT, DATA_SRC, IDENTIFIER, TRANSACTION, REGS_INTR, PHYS = (1 << i for i in range(10, 20))
CGROUP, DATA_PAGE, CODE_PAGE, WEIGHT_STRUCT = 1 << 21, 1 << 22, 1 << 23, 1 << 24
SAMPLE_ID_ALL, MMAP2_BIT, COMM_BIT, TASK_BIT = 1 << 18, 1 << 23, 1 << 9, 1 << 13
USER, KERNEL = 2, 1
KERNEL_MARK, USER_MARK = (1 << 64) - 128, (1 << 64) - 512
REGS = 0xff0fff
BASE = IDENTIFIER | IP | TID | TIME | CPU | PERIOD


def record(kind, misc, body):
    body += b'\0' * (-len(body) % 8)
    return struct.pack('<IHH', kind, misc, 8 + len(body)) + body


class Recording:
    """Records of one process, whose time goes on by 1,000 ns with each."""

    def __init__(self, events):
        self.events = events  # (type, config, sample_type)
        self.time = 1000000
        self.records = b''

    def add(self, kind, misc, body, trailer=True):
        self.time += 1000
        body += b'\0' * (-len(body) % 8)
        if trailer:  # TID, TIME, CPU, IDENTIFIER
            body += struct.pack('<IIQQQ', PID, PID, self.time, 0, 1)
        self.records += record(kind, misc, body)

    def mmap(self, path, start, size, offset=0, inode=1, misc=USER, pid=PID, protection=5):
        if isinstance(path, str):
            path = path.encode()
        self.add(10, misc, struct.pack('<IIQQQIIQQII', pid, pid, start, size, offset, 8, 1, inode, 0, protection, 2)
                 + path + b'\0' * (8 - len(path) % 8))

    def comm(self, name):
        self.add(3, 0, struct.pack('<II', PID, PID) + name.encode().ljust(8, b'\0'))

    def sample(self, event, ip, chain=(), stack=b'', regs=None, **facts):
        self.time += 1000
        kinds = self.events[event][2]
        body = struct.pack('<QQIIQ', event + 1, ip, PID, PID, self.time)
        if kinds & ADDR:
            body += struct.pack('<Q', facts.get('addr', ip))
        body += struct.pack('<QQ', 0, 1000)
        if kinds & CALLCHAIN:
            body += struct.pack('<Q', len(chain)) + b''.join(struct.pack('<Q', word) for word in chain)
        if kinds & RAW:
            raw = facts.get('raw', b'\0' * 12)
            body += struct.pack('<I', len(raw)) + raw + b'\0' * (-(4 + len(raw)) % 8)
        if kinds & BRANCH:
            branches = facts.get('branches', ())
            body += struct.pack('<Q', len(branches)) + b''.join(struct.pack('<QQQ', a, b, f) for a, b, f in branches)
        if kinds & REGS_USER:
            words = regs or [0] * 20
            body += struct.pack('<Q', 2) + b''.join(struct.pack('<Q', word) for word in words)
        if kinds & STACK_USER:
            body += struct.pack('<Q', len(stack)) + stack + struct.pack('<Q', len(stack))
        if kinds & (WEIGHT | WEIGHT_STRUCT):
            body += struct.pack('<Q', 0x0003_0002_0000_0055)
        if kinds & DATA_SRC:
            body += struct.pack('<Q', facts.get('source', 0x68100142))
        if kinds & TRANSACTION:
            body += struct.pack('<Q', 0x1000021)
        if kinds & REGS_INTR:
            body += struct.pack('<QQ', 2, ip)
        for bit in (PHYS, CGROUP, DATA_PAGE, CODE_PAGE):
            if kinds & bit:
                body += struct.pack('<Q', 4096)
        self.records += record(9, KERNEL if ip >> 63 else USER, body)

    def attr(self, event):
        kind, config, kinds = self.events[event]
        flags = SAMPLE_ID_ALL | MMAP2_BIT | COMM_BIT | TASK_BIT
        return struct.pack('<IIQQQQQIIQQQQIiQIHHI', kind, 128, config, 1000, kinds, 4, flags, 0, 0, 0, 0,
                           8 if kinds & BRANCH else 0, REGS if kinds & REGS_USER else 0,
                           1024 if kinds & STACK_USER else 256 if kinds & REGS_INTR else 0, 0, 0, 127, 0, 0, 0).ljust(128, b'\0')

    def file(self):
        head = 104
        ids = b''.join(struct.pack('<Q', i + 1) for i in range(len(self.events)))
        attrs_at = head + len(ids)
        attrs = b''.join(self.attr(i) + struct.pack('<QQ', head + 8 * i, 8) for i in range(len(self.events)))
        data_at = attrs_at + len(attrs)
        features = {6: self.text('x86_64'), 3: self.text('host'), 4: self.text('6.1.0'), 5: self.text('6.1'),
                    7: struct.pack('<II', 2, 2), 21: struct.pack('<QQ', 1000000, self.time),
                    29: struct.pack('<IIQQ', 1, 1, 1700000000000000000, 1000000)}
        at = data_at + len(self.records) + 16 * len(features)
        table, sections, bits = b'', b'', 0
        for number in sorted(features):
            table += struct.pack('<QQ', at + len(sections), len(features[number]))
            sections += features[number]
            bits |= 1 << number
        header = struct.pack('<QQQQQQQQQQQQQ', 0x32454c4946524550, head, 144, attrs_at, len(attrs), data_at,
                             len(self.records), 0, 0, bits, 0, 0, 0)
        return header + ids + attrs + self.records + table + sections

    def pipe(self):
        out = struct.pack('<QQ', 0x32454c4946524550, 16)
        for i in range(len(self.events)):
            out += record(64, 0, self.attr(i) + struct.pack('<Q', i + 1))
        return out + self.records

    @staticmethod
    def text(value):
        padded = value.encode() + b'\0' * (64 - len(value) % 64)
        return struct.pack('<I', len(padded)) + padded


def words(*values):
    return b''.join(struct.pack('<Q', value & ((1 << 64) - 1)) for value in values)


# ---- folders ---------------------------------------------------------------

def app_recordings(app, symbols):
    leaf, total = symbols['_ZN4shop4leafEl'], symbols['_ZNK4shop4Cart5totalEl']
    d_name, rusty = symbols['_D4core6memory2GC7collectFZv'], symbols['_RNvCs1234_7mycrate3foo']
    start, data = symbols['_start'], symbols['data']

    def begin(*events):
        made = Recording(list(events))
        made.mmap('[kernel.kallsyms]_text', 0xffffffff81000000, 0x1000000, 0xffffffff81000000, misc=KERNEL, pid=0xffffffff)
        made.comm('app')
        made.mmap('/bin/app', TEXT, 0x10000)
        made.mmap('[stack]', 0x7ffc00000000, 0x21000)
        return made
    chained = begin((1, 0, BASE | CALLCHAIN), (1, 2, BASE | CALLCHAIN))
    for i in range(12):
        chained.sample(i % 2, leaf + i % 9, [USER_MARK, leaf + i % 9, total + 5 + i % 3, d_name + 12, rusty + 8, start + 20][:2 + i % 5])
    chained.sample(0, 0xffffffff81000010, [KERNEL_MARK, 0xffffffff81000010, 0xffffffff81000105, USER_MARK, leaf + 4])
    chained.add(7, 0, struct.pack('<IIIIQ', PID + 1, PID, PID + 1, PID, chained.time))
    chained.add(14, 0, b'')
    chained.add(4, 0, struct.pack('<IIIIQ', PID, PID, PID, PID, chained.time))
    stacked = begin((1, 0, BASE | REGS_USER | STACK_USER), (1, 1, BASE | CALLCHAIN | REGS_USER | STACK_USER))
    for i in range(6):
        stack = words(*([0] * (i % 3)), total + 5, 1, 2, 3, d_name + 12, 4, rusty + 8, start + 20, 0, 0, 0)
        regs = [0] * 20
        regs[6], regs[7], regs[8] = 0x7ffc00000040, 0x7ffc00000000, leaf + i
        stacked.sample(i % 2, leaf + i, [USER_MARK, leaf + i], stack, regs)
    memory = begin((4, 0x1cd, BASE | ADDR | WEIGHT_STRUCT | DATA_SRC | TRANSACTION | PHYS | CGROUP | DATA_PAGE | CODE_PAGE),
                   (0, 0, BASE | BRANCH), (1, 10, BASE | RAW))
    for i in range(6):
        memory.sample(0, leaf + i, addr=data + 8 * i, source=0x68100142 + (i << 5))
        memory.sample(1, leaf, branches=[(leaf + 8, leaf + 2, 1), (total + 3, leaf, 2), (start + 4, rusty, 0x41)])
    memory.sample(2, leaf, raw=b'text\n\0\xff\x1b[0m')
    # all that a sample can have
    whole = begin((1, 10, BASE | ADDR | CALLCHAIN | RAW | BRANCH | REGS_USER | STACK_USER | WEIGHT_STRUCT | DATA_SRC |
                   TRANSACTION | REGS_INTR | PHYS | CGROUP | DATA_PAGE | CODE_PAGE))
    whole.add(19, 0, struct.pack('<Q', 4096) + b'/a.slice')
    for i in range(6):
        whole.sample(0, leaf + i, [USER_MARK, leaf + i, total + 5], words(0, total + 5, 0, 0),
                     [0] * 7 + [0x7ffc00000000, leaf + i] + [0] * 11, addr=data + 64 * i, raw=b'bpf text\0\0\0\0',
                     branches=[(leaf + 8, leaf + 2, 1 + i), (total + 3, leaf, 2)])
    return chained, stacked, memory, whole


KALLSYMS = b'''ffffffff81000000 T _text
ffffffff81000000 T _stext
ffffffff81000000 t startup
ffffffff81000100 T do_syscall_64
ffffffff81000200 T _etext
ffffffffc0000000 t helper\t[module]
'''
MAP = b'7f1000000000 40 py::outer:/app/main.py\n7f1000000040 40 LazyCompile:*inner a.js:3\n7f1000000080 20 [bad\x1b]0;"<script>\n'


def jit_recording():
    made = Recording([(1, 0, BASE | CALLCHAIN)])
    made.comm('"j\\\n\x1b]')
    made.mmap(DIRECTORY + b'/jit-1.dump', 0x7f2000000000, 4096)
    made.mmap('//anon', 0x7f1000000000, 4096)
    made.mmap('//anon', 0x7f16b4ed0000, 0x10000)
    for i in range(6):
        made.sample(0, 0x7f1000000010 + 32 * i, [USER_MARK, 0x7f1000000010 + 32 * i, 0x7f16b4edb003 + i])
    return made


def views(tally, corpus):
    app, symbols = build(APP, '.cpp', '-O1', '-g', '-fno-exceptions', '-fasynchronous-unwind-tables', '-fno-stack-protector')
    chained, stacked, memory, whole = app_recordings(app, symbols)
    root = [('root/bin/app', app), ('root/kallsyms', KALLSYMS)]
    with open(os.path.join(corpus, 'jit_dump/rules'), 'rb') as file:
        dump = file.read()
    made = {
        'app_chains': [('recording', chained.file())] + root,
        'app_stacks': [('recording', stacked.file())] + root,
        'app_memory': [('recording', memory.file())] + root,
        'app_whole': [('recording', whole.file())] + root,
        'app_pipe': [('recording', chained.pipe())] + root,
        'app_directory': [('recording/data', chained.file()), ('recording/data.0', stacked.records[-600:]),
                          ('recording/data.1', chained.records)] + root,
        'jit': [('recording', jit_recording().file()), ('jit-1.dump', dump), ('perf-map', MAP), ('root/kallsyms', KALLSYMS)],
    }
    with tempfile.TemporaryDirectory() as place:  # the names that tally packs
        os.makedirs(os.path.join(place, 'root/bin'))
        for name, data in root + [('recording', stacked.file())]:
            with open(os.path.join(place, name), 'wb') as file:
                file.write(data)
        subprocess.run([tally, 'pack', '--symfs', os.path.join(place, 'root'), '--kallsyms',
                        os.path.join(place, 'root/kallsyms'), '-o', os.path.join(place, 'packed'),
                        os.path.join(place, 'recording')], check=True)
        with open(os.path.join(place, 'packed'), 'rb') as file:
            made['app_packed'] = [('recording', file.read())]
    for name, files in made.items():
        with open(os.path.join(corpus, 'views', name), 'wb') as file:
            file.write(folder(files))


def walks(corpus):
    code, stack_at, memory_at = 0x7f0000000000, 0x7ffc00000000, 0xc000000000
    entered, symbols = build(ENTERED, '.s')
    with open(os.path.join(corpus, 'go_table/go1.18-64'), 'rb') as file:
        table = file.read()[2:]
    go, go_symbols = build(GO, '.s', inputs=[('table', table)])
    at = {**symbols, **go_symbols}

    def registers(rip, rbp=0):
        values = [0] * 17
        values[6], values[7], values[16] = rbp, stack_at, rip
        return words(*values)
    room = [0] * 8
    made = {
        'entered': ([('object', entered), ('code', b'\x90' * 64), ('registers', registers(code + 16)),
                     ('stack', words(*room, 7, at['in_schedule'], 1, 2, 3, at['in_main'], 0)), ('memory', b'')], 0),
        'entered_through': ([('object', entered), ('code', b'\x90' * 64), ('registers', registers(code + 16)),
                             ('stack', words(*room, 7, at['in_main_2'], 0)), ('memory', b'')], 0),
        'go_to_c': ([('object', go), ('registers', registers(at['c_function'])),
                     ('stack', words(at['in_asmcgocall'], 0x10, memory_at, memory_at, 0x10, 0, 0, 0)),
                     ('memory', words(0, stack_at + 0x40, 0)), ('code', b'')], 0),
        'go_on_thread': ([('object', go), ('registers', registers(at['c_function'])),
                          ('stack', words(at['in_on_thread'], 0, stack_at + 0x30, stack_at + 0x30, 0, 0,
                                          at['in_cgocallbackg'], 0)),
                          ('memory', b''), ('code', b'')], 0),
        'c_to_go': ([('object', go), ('registers', registers(at['runtime.cgocallbackg'] + 1)),
                     ('stack', words(at['in_cgocallback'], 0, stack_at + 0x30, 0, 0, 0, stack_at + 0x60, at['in_on_thread'], 0, 0, 0, 0, 0, 0)),
                     ('memory', b''), ('code', b'')], 0),
    }
    made['c_to_go_skipping'] = (made['c_to_go'][0], 1)
    os.makedirs(os.path.join(corpus, 'walk'), exist_ok=True)
    for name, (files, flags) in made.items():
        with open(os.path.join(corpus, 'walk', name), 'wb') as file:
            file.write(folder(files, flags))


if __name__ == '__main__':
    views(*sys.argv[1:])
    walks(sys.argv[2])
