#!/usr/bin/env python3
"""Regions in Python, by ctypes: a context manager around libtally, and its figures.

    TALLY_REPORT=table python3 regions.py

prints the report when Python exits.  $LIBTALLY is the library's path, by default libtally.so.0.
"""
import contextlib
import ctypes
import os
import sys
import threading

try:
    library = ctypes.CDLL(os.environ.get("LIBTALLY", "libtally.so.0"), use_errno=True)
except OSError as error:
    sys.exit(f"regions.py: {error}; LIBTALLY=/path/to/libtally.so.0 says where it is")


class Figures(ctypes.Structure):
    """struct tally_region_figures of tally/region.h."""
    _fields_ = [(name, ctypes.c_uint64) for name in ("calls", "recursive", "open", "measured", "scaled", "total",
                                                     "self", "max", "p50", "p99")]
    _fields_ += [("mean", ctypes.c_double), ("sigma", ctypes.c_double), ("empty", ctypes.c_uint64),
                 ("pair", ctypes.c_uint64), ("share", ctypes.c_double)]


library.tally_region_begin.argtypes = library.tally_region_end.argtypes = [ctypes.c_char_p]
library.tally_region_begin.restype = library.tally_region_end.restype = None
library.tally_region_read.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(Figures), ctypes.c_size_t]


@contextlib.contextmanager
def region(name):
    """Measures a `with` block; exceptions end it, too."""
    name = name.encode()
    library.tally_region_begin(name)
    try:
        yield
    finally:
        library.tally_region_end(name)


def figures(name, event="wall"):
    """Returns the figures of a region on all threads; times are in ns."""
    found = Figures()
    if library.tally_region_read(name.encode(), event.encode(), found, ctypes.sizeof(found)) < 0:
        raise OSError(ctypes.get_errno(), f"region '{name}', event '{event}'")
    return found


def work():
    for _ in range(50):
        with region("work"):
            numbers = [i * 7919 % 10007 for i in range(2000)]
            with region("sort"):
                numbers.sort()


threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
outer, inner = figures("work"), figures("sort")
print(f"calls={outer.calls}\nself_and_inside={outer.self + inner.total == outer.total}")
print(f"mean_us={outer.mean / 1000:.1f}\nsort_share={inner.total / outer.total:.2f}")
