"""The kinds of program, one row each: how a program is built and run, and what is true of its stacks.

The program prints its parts' shares of its CPU time ("half 50.02"), which it measured by its own CPU clock.  `paths` has the
calls that lead to each part, callers first: the share of samples with that path must be the part's share.  The last function
of a path is where the time is spent.  Names are regular expressions; "..." is any number of frames.
"""
from dataclasses import dataclass, field

import sessions

THREADS = {
    "half": ("main", "drive", "stage_of_half", "half"),
    "third": ("worker", "drive", "stage_of_rest", "third"),
    "fifth": ("worker", "drive", "stage_of_rest", "fifth"),
}
GET = {  # tool: how to get it; `scripts/packages truth` has most of them
    **{tool: "scripts/packages truth" for tool in (
        "rustc", "go", "java", "javac", "node", "postgres", "initdb", "psql", "redis-server", "nginx", "python3")},
    **{tool: "scripts/packages test" for tool in ("gcc", "g++", "clang", "clang++", "musl-gcc", "strip", "git")},
    "python3.12": "Debian 12 has none; pyenv install 3.12", "python3.13": "Debian 12 has none; pyenv install 3.13",
}


@dataclass
class Kind:
    name: str
    what: str                      # for the table
    build: tuple = ()              # commands: {source} and {here} are folders
    run: tuple = ()
    paths: dict = field(default_factory=dict)
    comm: str = ""                 # only samples of this command count
    session: type = None           # instead of `run` alone: starts it and makes it work (sessions.py)
    how: str = "-p"                # then: how the recorder is told of it
    starts: tuple = ()             # further functions in which a stack begins
    env: dict = field(default_factory=dict)
    needs: tuple = ()              # the session's tools
    truths: object = None          # makes {part: percent} of what the program printed: (output, errors)


def c(flags, compiler="gcc", source="native.c", after=()):
    return ((compiler, "-std=gnu11", "-w", *flags.split(), "{source}/" + source, "-o", "{here}/program", "-pthread"), *after)


def native(name, what, build, **more):
    return Kind(name, what, build, ("{here}/program",), more.pop("paths", THREADS), **more)


def cpp(flags, compiler="g++"):
    return ((compiler, "-std=c++17", "-w", *flags.split(), "{source}/objects.cpp", "-o", "{here}/program"),)


OBJECTS = {
    "sorting": ("main", "sorting.*"),
    "calling": ("main", "calling.*", r"shapes::(?:square|circle)::area.*"),
    "throwing": ("main", "throwing.*"),
}
LIBRARY = {part: ("main", part) for part in ("copying", "searching", "asking", "printing", "sorting")}
MIXED = {"hashing": ("main", "drive", "hashing"), "sorting": ("main", "drive", "sorting"), "own": ("main", "drive", "own")}
TRAMPOLINES = {part: ("main", f"py::drive:.*", "evaluate", f"py::{part}:.*", "evaluate", part) for part in ("half", "third", "fifth")}
PYTHON = {
    "packing": ("Py_BytesMain", "Py_RunMain", "...", "_PyEval_EvalFrameDefault", "...", "deflate"),
    "hashing": ("Py_BytesMain", "Py_RunMain", "...", "_PyEval_EvalFrameDefault", "...", "PKCS5_PBKDF2_HMAC"),
}
PYTHON_PERF = {
    part: ("main", "...", "py::drive:.*", "...", "py::spend:.*", "...", f"py::{part}:.*") for part in ("packing", "hashing", "looping")
}
NODE = {part: (r"node::Start.*", "...", rf"JS:[~^*+]*{part} .*") for part in ("leaf", "sorting", "matching")}
JAVA = {part: ("JavaMain", "...", rf"(?:.* )?Truth\.{part}\b.*") for part in ("leaf", "sorting", "building")}


def java(name, what, *flags):
    return Kind(name, what, (("javac", "-d", "{here}", "{source}/Truth.java"),),
                ("java", *flags, "-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit", "-XX:CompileCommand=quiet",
                 "-XX:CompileCommand=dontinline,Truth.leaf", "-XX:CompileCommand=dontinline,Truth.sorting",
                 "-XX:CompileCommand=dontinline,Truth.building", "-XX:+UseSerialGC", "-cp", "{here}", "Truth"),
                JAVA, comm="java")


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
    native("c++", "C++, g++ -O2", cpp("-O2"), paths=OBJECTS),
    native("c++-frame-pointers", "C++, g++ -O2 -fno-omit-frame-pointer", cpp("-O2 " + FRAMES), paths=OBJECTS),
    native("c++-clang", "C++, clang++ -O2", cpp("-O2", "clang++"), paths=OBJECTS),
    native("rust", "Rust, rustc -O", (("rustc", "-O", "--edition", "2021", "-o", "{here}/program", "{source}/sim.rs"),), paths={
        "step": (r"sim::main", r"sim::run_steps", r".*sim::step"),
        "order": (r"sim::run_rest", r".*sim::order"),
        "count": (r"sim::run_rest", r".*sim::count"),
    }),
    native("go", "Go", (("go", "build", "-o", "{here}/program", "{source}/routines.go"),), paths={
        "leaf": (r"runtime\.main", r"main\.main", r"...", r"main\.leaf"),
        "ordering": (r"runtime\.main", r"main\.main", r"...", r"main\.ordering"),
        "copying": (r"runtime\.goexit.*", "...", r"main\.worker", r"...", r"main\.copying"),
    }),
    native("coroutines", "C, coroutines: ucontext, assembly", c("-O2", source="coroutines.c"), starts=("other_coroutine",), paths={
        "half": ("main", "stage_of_half", "half"), "third": ("coroutine", "stage_of_third", "third"),
        "fifth": ("other_coroutine", "stage_of_fifth", "fifth"),
    }),
    native("signals", "C, signal handlers", c("-O2", source="signals.c"), paths={
        "half": ("main", "stage", "...", "on_raised", "half"), "third": ("main", "stage", "...", "on_raised_elsewhere", "third"),
        "timed": ("main", "stage", "...", "on_timer", "timed"),
    }),
    native("library", "glibc's assembly, vdso, qsort", c("-O2", source="library.c"), paths=LIBRARY),
    native("library-frame-pointers", "… of a program with frame pointers", c("-O2 " + FRAMES, source="library.c"), paths=LIBRARY),
    native("library-musl", "musl's assembly, vdso, qsort", c("-O2", "musl-gcc", source="library.c"), paths=LIBRARY),
    native("deep", "C, recursion 3,000 deep", c("-O2", source="deep.c"), paths={
        "shallow": ("main", "shallow"), "deep": ("main", "descend", "...", "descend", "deep"),
    }),
    native("deep-frame-pointers", "… with frame pointers", c("-O1 " + FRAMES, source="deep.c"), paths={
        "shallow": ("main", "shallow"), "deep": ("main", "descend", "...", "descend", "deep"),
    }),
    native("mixed", "frame pointers, libraries without", c("-O2 " + FRAMES, source="mixed.c"), paths=MIXED),
    native("mixed-p", "… by -p", c("-O2 " + FRAMES, source="mixed.c"), paths=MIXED, session=sessions.Waiting, how="-p"),
    native("mixed-u", "… by -u", c("-O2 " + FRAMES, source="mixed.c"), paths=MIXED, session=sessions.Waiting, how="-u"),
    native("mixed-a", "… by -a", c("-O2 " + FRAMES, source="mixed.c"), paths=MIXED, session=sessions.Waiting, how="-a"),
    native("trampolines", "code made at run time: CPython's perf trampolines", c("-O2", source="trampolines.c"), paths=TRAMPOLINES),
    Kind("trampolines-frame-pointers", "… with frame pointers", c("-O2", source="trampolines.c"), ("{here}/program", "frames"),
         TRAMPOLINES),
    Kind("trampolines-dump", "… in a jitdump that tells how to unwind", c("-O2", source="trampolines.c"), ("{here}/program", "dump"),
         TRAMPOLINES),
    Kind("python", "python3 (native)", (), ("python3", "{source}/interpreted.py"), PYTHON),
    Kind("python-perf-3.12", "python3.12 -X perf", (), ("python3.12", "-X", "perf", "{source}/interpreted.py"), PYTHON_PERF),
    Kind("python-perf-3.13", "python3.13 -X perf", (), ("python3.13", "-X", "perf", "{source}/interpreted.py"), PYTHON_PERF),
    Kind("python-jit-3.13", "python3.13 -X perf_jit", (), ("python3.13", "-X", "perf_jit", "{source}/interpreted.py"), PYTHON_PERF),
    Kind("node", "node --perf-basic-prof", (), ("node", "--perf-basic-prof", "{source}/script.js"), NODE),
    Kind("node-interpreted-frames", "… --interpreted-frames-native-stack", (),
         ("node", "--perf-basic-prof", "--interpreted-frames-native-stack", "{source}/script.js"), NODE),
    java("java-frame-pointers", "java, map, -XX:+PreserveFramePointer", "-XX:+PreserveFramePointer"),
    java("java", "java, map"),
    Kind("postgres", "postgres (two backends)", session=sessions.Postgres, needs=("initdb", "postgres", "psql"), paths={
        part: ("main", "PostmasterMain", "...", "PostgresMain")
        for part in sessions.Postgres.QUERIES
    }),
    Kind("redis", "redis", session=sessions.Redis, needs=("redis-server",), paths={
        part: ("main", "aeMain", "...", "processCommand", "call", "...", function)
        for part, function in (("sorting", "sortCommand.*"), ("joining", "zunion.*"), ("scripting", "lua.*"))
    }),
    Kind("nginx", "nginx (a worker)", session=sessions.Nginx, needs=("nginx",), paths={
        part: ("main", "ngx_master_process_cycle", "...", "ngx_process_events_and_timers", "...", function)
        for part, function in (("packing", "deflate"), ("matching", "pcre2_match_8"))
    }),
    Kind("gcc", "gcc -O2 (cc1)", (("python3", "{source}/made_source.py", "20"),), ("gcc", "-O2", "-ftime-report", "-c", "made.c"), {
        "parsing": ("main", "toplev::main.*", "...", "c_common_parse_file.*", "c_parse_file.*"),
        "generating": ("main", "toplev::main.*", "...", "symbol_table::finalize_compilation_unit.*"),
    }, comm="cc1", truths=sessions.time_report),
    Kind("git", "git (stripped), zlib", (
        ("gcc", "-w", "-O2", "-shared", "-fPIC", "{source}/timed_library.c", "-o", "{here}/timed_library.so", "-ldl"),
        ("python3", "{source}/made_source.py", "7000"), ("git", "init", "-q", "{here}"),
    ), ("env", "LD_PRELOAD={here}/timed_library.so", "git", "-c", "core.compression=9", "hash-object", "-w", "made.c"), {
        "deflate": ("deflate",),
    }, comm="git"),
)
