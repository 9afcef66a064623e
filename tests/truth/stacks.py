"""Samples of a recording as lists of frames, and whether a list reaches the start of its thread."""
import functools
import re
import struct
import subprocess
from collections import namedtuple

Frame = namedtuple("Frame", "name address file")
Sample = namedtuple("Sample", "comm pid tid frames")  # the innermost frame first

# Functions in which a process or a thread begins.  In libraries without symbols, they are found by
# file, see below.
STARTS = {
    "_start",
    "_dl_start_user",
    "_dl_start",
    "__start",
    "clone",
    "__clone",
    "clone3",
    "__clone3",
    "__GI___clone",
    "__GI___clone3",
    "__clone_internal",
    "__start_context",
    # Go's own list (topofstack() of its runtime): stacks that the runtime itself considers
    # complete.
    "runtime.goexit",
    "runtime.goexit.abi0",
    "runtime.mstart",
    "runtime.mstart.abi0",
    "runtime.rt0_go",
    "runtime.rt0_go.abi0",
    "runtime.mcall",
    "runtime.mcall.abi0",
    "_rt0_amd64_linux",
    "runtime.clone.abi0",
    "runtime.clone",
    "ret_from_fork_asm",
    "ret_from_fork",
}
FRAME = re.compile(r"\s+([0-9a-f]+) (.*) \(([^()]*(?:\([^()]*\))?[^()]*)\)$")
HEAD = re.compile(r"(\S.*?)\s+(-?\d+)/(-?\d+)\b")
EXIT_BYTES = 12
ENTRY_BYTES = 128  # more than a _start has, also Free Pascal's
CLONES = re.compile(r"\.(?:constprop|isra|part|cold|llvm|lto_priv)(?:\.?\d+)*")


def plain(name):
    """Returns a function's name without offset, parameters, version, and suffixes of copies."""
    name = re.sub(r"\+0x[0-9a-f]+$", "", name)
    name = re.sub(r"@@?[A-Z]+_[0-9.]+$", "", name)
    name = CLONES.sub("", name)
    return name


def in_kernel(frame):
    """True for the kernel and its modules, which are in brackets; so are a program's own
    pseudo-files."""
    return frame.file.startswith("[") and frame.file not in (
        "[vdso]",
        "[vsyscall]",
        "[heap]",
        "[stack]",
        "[unknown]",
        "[anon]",
    )


def samples(lines):
    """Reads the output of `script -F comm,pid,tid,ip,sym,symoff,dso` of tally or perf.

    Addresses are those in the files."""
    head, frames, known = None, [], {}
    for line in lines:
        line = line.rstrip("\n")
        if not line.strip():
            if head:
                yield Sample(*head, tuple(frames))
            head, frames = None, []
        elif line[0].isspace() and head:
            if line not in known:
                known[line] = read_frame(line)
            frames += known[line]
        else:
            match = HEAD.match(line)
            if match:
                head = match.group(1), int(match.group(2)), int(match.group(3))
    if head:
        yield Sample(*head, tuple(frames))


def read_frame(line):
    """Returns the frame of a line, in a list; an empty list for an inlined one, which has no
    address."""
    match = FRAME.match(line)
    if not match:  # a remark such as "[truncated]"
        return [Frame(line.strip(), 0, "")]
    if match.group(3) == "inlined":
        return []
    return [Frame(plain(match.group(2)), int(match.group(1), 16), match.group(3))]


class Starts:
    """Knows from the files where threads and processes begin.

    That is at an executable's entry, and where the unwinding information says that the function has
    no caller (the return address is undefined), as in glibc's clone."""

    def __init__(self, more=()):
        self.names = STARTS | set(more)
        self.ranges = {}

    def of_file(self, path):
        if path not in self.ranges:
            try:
                self.ranges[path] = list(read_starts(path))
            except (OSError, ValueError, struct.error):
                self.ranges[path] = []
        return self.ranges[path]

    def holds(self, frame):
        if frame.name in self.names or any(
            re.fullmatch(name, frame.name) for name in self.names if "*" in name
        ):
            return True
        return any(first <= frame.address < end for first, end in self.of_file(frame.file))

    def complete(self, sample):
        return bool(sample.frames) and self.holds(sample.frames[-1])


def read_starts(path):
    if not path.startswith("/"):
        return
    with open(path, "rb") as file:
        header = file.read(64)
        if header[:4] != b"\x7fELF" or header[4] != 2:
            return
        entry, programs_at = struct.unpack_from("<QQ", header, 24)
        entry_size, entries = struct.unpack_from("<HH", header, 54)
        file.seek(programs_at)
        programs = [struct.unpack_from("<IIQQQQQQ", file.read(entry_size)) for _ in range(entries)]
    loaded = [
        (address, address + size, offset - address)
        for kind, _, offset, address, _, size, _, _ in programs
        if kind == 1
    ]
    found = [(entry, entry + ENTRY_BYTES)] if entry else []
    # After the call of a thread's function, musl ends the thread; no symbol marks the place.
    with open(path, "rb") as file:
        for match in re.finditer(rb"\x0f\x05\xf4", file.read()):  # syscall; hlt
            found += [
                (match.start() - offset - EXIT_BYTES, match.start() - offset)
                for start, behind, offset in loaded
                if start <= match.start() - offset < behind
            ]
    listing = subprocess.run(
        ["readelf", "--debug-dump=frames", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
        check=False,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
    ).stdout
    extent = None
    for line in listing.splitlines():
        match = re.search(r" FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
        if match:
            extent = int(match.group(1), 16), int(match.group(2), 16)
        elif " CIE" in line:
            extent = None
        elif "DW_CFA_undefined: r16" in line and extent:
            found.append(extent)
    for first, end in found:  # as addresses, and as offsets in the file
        yield first, end
        for start, behind, offset in loaded:
            if start <= first < behind:
                yield first + offset, end + offset


def has_path(frames, path):
    """True if the functions are in the stack, callers first, each calling the next.

    "..." is any number of frames."""
    names = [frame.name for frame in reversed(frames) if not in_kernel(frame)]
    at = 0
    for part in parts_of(path):
        while at + len(part) <= len(names):
            if all(wanted(name) for wanted, name in zip(part, names[at:])):
                break
            at += 1
        else:
            return False
        at += len(part)
    return True


@functools.lru_cache(None)
def parts_of(path):
    """Returns the runs of functions between "...", as matchers of names."""
    runs = [[]]
    for name in path:
        if name == "...":
            runs.append([])
        else:
            runs[-1].append(re.compile(name).fullmatch)
    return runs
