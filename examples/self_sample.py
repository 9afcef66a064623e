#!/usr/bin/env python3
"""A Python program that samples itself, by ctypes, and prints its hottest functions.

The kernel sends a signal for each sample.  Python runs the handler between two instructions of its own, with the
frame that it interrupted; the handler reads the samples that came since, and charges them to that frame's function.
$LIBTALLY is the library's path, by default libtally.so.0.
"""
import collections
import ctypes
import os
import signal
import sys

try:
    library = ctypes.CDLL(os.environ.get("LIBTALLY", "libtally.so.0"), use_errno=True)
except OSError as error:
    sys.exit(f"self_sample.py: {error}; LIBTALLY=/path/to/libtally.so.0 says where it is")

PERIOD_NS = 1000000
RECORD_SAMPLE = 9


class Options(ctypes.Structure):
    """struct tally_event_ring_options of tally/ring.h."""
    _fields_ = [("size", ctypes.c_size_t), ("pid", ctypes.c_int32), ("pages", ctypes.c_uint32),
                ("period", ctypes.c_uint64), ("frequency", ctypes.c_uint64), ("fields", ctypes.c_uint64),
                ("wakeup_samples", ctypes.c_uint32), ("chain_max", ctypes.c_uint16), ("chain", ctypes.c_bool),
                ("disabled", ctypes.c_bool)]


class Header(ctypes.Structure):
    """struct tally_record_header of tally/perf_event.h."""
    _fields_ = [("type", ctypes.c_uint32), ("misc", ctypes.c_uint16), ("size", ctypes.c_uint16)]


library.tally_event_ring_open.restype = ctypes.c_void_p
library.tally_event_ring_open.argtypes = [ctypes.c_char_p, ctypes.POINTER(Options), ctypes.c_char_p, ctypes.c_size_t]
library.tally_event_ring_next.restype = ctypes.POINTER(Header)
library.tally_event_ring_lost.restype = ctypes.c_uint64
for name in "next", "lost", "enable", "disable", "close":
    getattr(library, f"tally_event_ring_{name}").argtypes = [ctypes.c_void_p]
library.tally_event_ring_signal.argtypes = [ctypes.c_void_p, ctypes.c_int]


class Sampler:
    """Samples the thread that makes it, Python's main one, in a `with` block."""

    def __init__(self):
        message = ctypes.create_string_buffer(512)
        options = Options(size=ctypes.sizeof(Options), period=PERIOD_NS, disabled=True)
        self.samples = collections.Counter()
        self.lost = 0
        self.ring = library.tally_event_ring_open(b"cpu-clock:u", options, message, len(message))
        if not self.ring:
            raise OSError(ctypes.get_errno(), message.value.decode())
        signal.signal(signal.SIGUSR1, self.take)
        if library.tally_event_ring_signal(self.ring, signal.SIGUSR1) < 0:
            raise OSError(ctypes.get_errno(), "the kernel sends no signals")

    def take(self, _number, frame):
        """Charges all samples that have come to the function that runs."""
        count = 0
        while record := library.tally_event_ring_next(self.ring):
            count += record.contents.type == RECORD_SAMPLE
        if count and frame:
            self.samples[frame.f_code.co_name] += count

    def __enter__(self):
        library.tally_event_ring_enable(self.ring)
        return self

    def __exit__(self, *_exception):
        library.tally_event_ring_disable(self.ring)
        library.tally_event_ring_signal(self.ring, 0)
        self.take(0, sys._getframe())
        self.lost = library.tally_event_ring_lost(self.ring)
        library.tally_event_ring_close(self.ring)


def light():
    return sum(i * i for i in range(500))


def heavy():
    total = 0
    for i in range(10000):
        total += i * i
    return total


def main():
    try:
        sampler = Sampler()
    except OSError as error:
        sys.exit(f"self_sample.py: {error.strerror}")
    with sampler:
        for _ in range(400):
            light()
            heavy()
    total = sum(sampler.samples.values())
    for name, count in sampler.samples.most_common(3):
        print(f"{100 * count / max(total, 1):5.1f}%  {name}")
    print(f"samples={total} lost={sampler.lost}")


main()
