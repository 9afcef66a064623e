"""The kinds of program, one row each: how a program is built and run, and what is true of its stacks.

The program prints its parts' shares of its CPU time ("half 50.02"), which it measured by its own CPU clock.  `paths` has the
calls that lead to each part, callers first: the share of samples with that path must be the part's share.  The last function
of a path is where the time is spent.  Names are regular expressions; "..." is any number of frames.
"""
from dataclasses import dataclass, field

THREADS = {
    "half": ("main", "drive", "stage_of_half", "half"),
    "third": ("worker", "drive", "stage_of_rest", "third"),
    "fifth": ("worker", "drive", "stage_of_rest", "fifth"),
}
GET = {  # tool: how to get it
    "gcc": "apt-get install gcc", "g++": "apt-get install g++", "clang": "apt-get install clang",
    "clang++": "apt-get install clang",
    "musl-gcc": "apt-get install musl-tools", "rustc": "apt-get install rustc, or rustup", "go": "apt-get install golang-go",
    "java": "apt-get install openjdk-17-jdk-headless", "javac": "apt-get install openjdk-17-jdk-headless",
    "node": "apt-get install nodejs", "redis-server": "apt-get install redis-server",
    "nginx": "apt-get install nginx-light", "git": "apt-get install git", "strip": "apt-get install binutils",
    "postgres": "apt-get install postgresql", "initdb": "apt-get install postgresql", "psql": "apt-get install postgresql",
    "python3": "apt-get install python3", "python3.12": "pyenv install 3.12", "python3.13": "pyenv install 3.13",
}


@dataclass
class Kind:
    name: str
    what: str                      # for the table
    build: tuple = ()              # commands: {source} and {here} are folders
    run: tuple = ()
    paths: dict = field(default_factory=dict)
    comm: str = ""                 # only samples of this command count
    how: str = "command"           # or how the recorder is told of the program: "-p", "-u", "-a"
    starts: tuple = ()             # further functions in which a stack begins
    env: dict = field(default_factory=dict)
    needs: tuple = ()              # tools beside those of the commands


def c(flags, compiler="gcc", source="native.c", after=()):
    return ((compiler, "-std=gnu11", "-w", *flags.split(), "{source}/" + source, "-o", "{here}/program", "-pthread"), *after)


def native(name, what, build, **more):
    return Kind(name, what, build, ("{here}/program",), more.pop("paths", THREADS), **more)


FRAMES = "-fno-omit-frame-pointer"
KINDS = (
    native("c", "C, gcc -O2", c("-O2")),
    native("c-frame-pointers", "C, gcc -O2 -fno-omit-frame-pointer", c("-O2 " + FRAMES)),
    native("c-leaf", "C, gcc -O1 -fno-omit-frame-pointer", c("-O1 " + FRAMES)),
    native("c-unoptimized", "C, gcc -O0", c("-O0")),
    native("c-clang", "C, clang -O2", c("-O2", "clang")),
    native("c-clang-frame-pointers", "C, clang -O2 -fno-omit-frame-pointer", c("-O2 " + FRAMES, "clang")),
    native("static", "C, gcc -O2 -static", c("-O2 -static")),
    native("static-pie", "C, gcc -O2 -static-pie", c("-O2 -static-pie")),
    native("no-pie", "C, gcc -O2 -no-pie", c("-O2 -no-pie")),
    native("stripped", "C, gcc -O2, stripped", c("-O2 -rdynamic", after=(("strip", "{here}/program"),)),
           paths={name: path[-3:] for name, path in THREADS.items()}),
    native("musl", "C, musl-gcc -O2", c("-O2", "musl-gcc")),
    native("musl-static", "C, musl-gcc -O2 -static", c("-O2 -static", "musl-gcc")),
)
