"""The kinds of program, one row each: how to build and run it, and what is true of its stacks.

A program prints its parts' shares of its CPU time ("half 50.02"), measured by its own CPU clock.
`paths` has the calls that lead to each part, callers first: the share of samples with that path
must be the part's share.  Names are regular expressions; "..." is any number of frames.
"""
from dataclasses import dataclass, field

import sessions

GET = {  # tool: how to get it
    "python3.12": "Debian 12 has none; pyenv install 3.12",
    "python3.13": "Debian 12 has none; pyenv install 3.13",
}
GET.update(
    dict.fromkeys(
        "rustc go java javac node python3 postgres initdb psql redis-server nginx luajit php "
        "chezscheme ruby".split(),
        "scripts/packages truth",
    )
)
PACKAGES = {
    "Rscript": "r-base-core",
    "erl": "erlang-base",
    "guile": "guile-3.0",
    "qemu-x86_64": "qemu-user",
    "ocamlopt": "ocaml-nox",
    "gnatmake": "gnat",
    "cobc": "gnucobol",
    "mcs": "mono-mcs",
    "mono": "mono-runtime",
    "tclsh": "tcl",
    "swipl": "swi-prolog-nox",
    "octave-cli": "octave",
    **{
        tool: tool
        for tool in "racket sbcl ghc perl fpc gdc gfortran crystal nim lua5.4 gawk gforth clisp "
        "ecl".split()
    },
}
GET.update({tool: f"apt-get install {package}" for tool, package in PACKAGES.items()})
GET.update(
    dict.fromkeys("gcc g++ clang clang++ musl-gcc strip objcopy git".split(), "scripts/packages test")
)


@dataclass
class Kind:
    name: str
    what: str  # for the table
    build: tuple = ()  # commands: {source} and {here} are folders
    run: tuple = ()
    paths: dict = field(default_factory=dict)
    comm: str = ""  # only samples of this command count
    session: type = None  # instead of only `run`: starts it and makes it work (sessions.py)
    how: str = "-p"  # for a session: the recorder's option for it
    starts: tuple = ()  # further functions in which a stack begins
    needs: tuple = ()  # the session's tools
    complete: float = 99  # least percentage of stacks that reach their start
    points: float = 2  # the most that a share may be off
    truths: object = None  # makes {part: percent} from the program's (output, errors)


def paths(parts, *path):
    """Makes the same path for each part, with its name in place of {}."""
    return {part: tuple(name.replace("{}", part) for name in path) for part in parts.split()}


NATIVE = {
    **paths("half", "main", "drive", "stage_of_half", "{}"),
    **paths("third fifth", "worker", "drive", "stage_of_rest", "{}"),
}
STRIPPED = {part: path[1:] for part, path in NATIVE.items()}  # main is not exported
OBJECTS = {
    "sorting": ("main", "sorting.*"),
    "calling": ("main", "calling.*", "shapes::(?:square|circle)::area.*"),
    "throwing": ("main", "throwing.*"),
}
RUST = {
    "step": ("sim::main", "sim::run_steps", ".*sim::step"),
    "order": ("sim::run_rest", ".*sim::order"),
    "count": ("sim::run_rest", ".*sim::count"),
}
GO = {
    **paths("leaf ordering", r"runtime\.main", r"main\.main", "...", r"main\.{}"),
    **paths("copying", r"runtime\.goexit.*", "...", r"main\.worker", "...", r"main\.{}"),
}
OF_MAIN = (r"runtime\.goexit.*", r"runtime\.main", r"main\.main", r"main\.{}")
TO_C = (r"runtime\.cgocall", r"runtime\.asmcgocall.*", "...")
TO_GO = ("crosscall2", r"runtime\.cgocallback.*", "...")
CGO = {
    **paths("plain busy", *OF_MAIN, r"main\._Cfunc_c_{}.*", *TO_C, "c_{}"),
    **paths("back", *OF_MAIN, "...", *TO_C, "c_calls_back", "goBack", *TO_GO, r"main\.leaf"),
    **paths(
        "nested",
        *(*OF_MAIN, "...", *TO_C, "c_calls_nested", "goNested"),
        *(*TO_GO, r"main\.inner", "...", *TO_C, "c_inner"),
    ),
}
COROUTINES = {
    "half": ("main", "stage_of_half", "half"),
    "third": ("coroutine", "stage_of_third", "third"),
    "fifth": ("other_coroutine", "stage_of_fifth", "fifth"),
}
SIGNALS = {
    "half": ("main", "stage", "...", "on_raised", "half"),
    "third": ("main", "stage", "...", "on_raised_elsewhere", "third"),
    "timed": ("main", "stage", "...", "on_timer", "timed"),
}
LIBRARY = paths("copying searching asking printing sorting", "main", "{}")
DEEP = {"shallow": ("main", "shallow"), "deep": ("main", "descend", "...", "descend", "deep")}
MIXED = paths("hashing sorting own", "main", "drive", "{}")
TRAMPOLINES = paths(
    "half third fifth", "main", "py::drive:.*", "evaluate", "py::{}:.*", "evaluate", "{}"
)
INTERPRETER = ("Py_BytesMain", "Py_RunMain", "...", "_PyEval_EvalFrameDefault", "...")
PYTHON = {"packing": (*INTERPRETER, "deflate"), "hashing": (*INTERPRETER, "PKCS5_PBKDF2_HMAC")}
PYTHON_PERF = paths(
    "packing hashing looping",
    *("Py_BytesMain", "...", "py::drive:.*", "...", "py::spend:.*", "...", "py::{}:.*"),
)
NODE = paths("leaf sorting matching", "node::Start.*", "...", "JS:[~^*+]*{} .*")
JAVA = paths("leaf sorting building", "thread_native_entry.*", "...", r"(?:.* )?Truth\.{}\b.*")
POSTGRES = paths("sorting counting", "main", "PostmasterMain", "...", "PostgresMain")
COMMAND = ("main", "aeMain", "...", "processCommand", "call", "...")
REDIS = {
    "sorting": (*COMMAND, "sortCommand.*"),
    "joining": (*COMMAND, "zunion.*"),
    "scripting": (*COMMAND, "lua.*"),
}
WORKER = ("main", "ngx_master_process_cycle", "...", "ngx_process_events_and_timers", "...")
NGINX = {"packing": (*WORKER, "deflate"), "matching": (*WORKER, "pcre2_match_8")}
GCC = {
    "parsing": ("main", "toplev::main.*", "...", "c_parse_file.*"),
    "generating": ("main", "toplev::main.*", "...", "symbol_table::finalize_compilation_unit.*"),
}


def c(flags, compiler="gcc", source="native.c", after=()):
    words = [compiler, "-std=gnu11", "-w", *flags.split(), "{source}/" + source]
    return ((*words, "-o", "{here}/program", "-pthread"), *after)


def cpp(flags, compiler="g++"):
    words = [compiler, "-std=c++17", "-w", *flags.split(), "{source}/objects.cpp"]
    return ((*words, "-o", "{here}/program"),)


def native(name, what, build, calls, **more):
    return Kind(name, what, build, ("{here}/program",), calls, **more)


def mixed(name, what, **more):
    return native(name, what, c("-O2 " + FRAMES, source="mixed.c"), MIXED, **more)


def trampolines(name, what, variant):
    build = c("-O2", source="trampolines.c")
    return Kind(name, what, build, ("{here}/program", variant), TRAMPOLINES)


def script(name, what, calls, *command):
    return Kind(name, what, (), command, calls)


def java(name, what, *flags):
    """The map is written at the end.

    The parts stay functions of their own, and the program waits for its compiler (-Xbatch), so that
    they are compiled when it has warmed up.  Interpreted frames have no names."""
    apart = [f"-XX:CompileCommand=dontinline,Truth.{part}" for part in JAVA]
    map_written = ("-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit")
    run = (
        "java",
        "-Xbatch",
        *flags,
        *map_written,
        "-XX:CompileCommand=quiet",
        *apart,
        "-XX:+UseSerialGC",
    )
    build = (("javac", "-d", "{here}", "{source}/Truth.java"),)
    return Kind(name, what, build, (*run, "-cp", "{here}", "Truth"), JAVA, comm="truth")


FOREIGN = "{source}/languages/truth."
PHP_JIT = "php -d opcache.enable_cli=1 -d opcache.jit=tracing -d opcache.jit_buffer_size=64M".split()
PHP = paths("leaf sorting", "php_execute_script", "...", "zend_execute", r".*\${}\$.*")
CAML = r"(?:camlTruth__|Truth\.)"  # a name as perf shows it, or as tally does
ERLANG = {
    "leaf": ("truth:main/0", "...", "truth:spend/4", "truth:leaf/2"),
    "deep": ("truth:main/0", "...", "truth:deep/1", "truth:bottom/2"),
}


def language(name, what, build, run, calls=None, **more):
    """A program of languages/."""
    commands = tuple(
        tuple(command.split()) if isinstance(command, str) else command for command in build
    )
    words = run if isinstance(run, (list, tuple)) else run.split()
    return Kind(name, what, commands, tuple(words), calls or {}, **more)


LANGUAGES = (
    language("ocaml", "OCaml", (f"cp {FOREIGN}ml truth.ml", "ocamlopt -o program truth.ml"),
             "{here}/program", paths("leaf sorting", "main", "...", CAML + "spend_.*",
                                     CAML + "{}_.*"), complete=98),
    language("pascal", "Free Pascal", (f"fpc -O2 -o{{here}}/program {FOREIGN}pas",),
             "{here}/program", complete=98),
    language("ruby", "Ruby's interpreter", (), f"ruby {FOREIGN}rb"),
    language("perl", "Perl", (), f"perl {FOREIGN}pl"),
    language("ada", "Ada, gnatmake -O2", (f"cp {FOREIGN}adb truth.adb",
             "gnatmake -q -O2 -g truth.adb -o program"), "{here}/program",
             paths("leaf sorting", "_ada_truth", r"truth__spend\..*", r"truth__{}\..*")),
    language("d", "D, gdc -O2", (f"gdc -O2 -g {FOREIGN}d -o program",), "{here}/program",
             paths("leaf sorting", "D main", r"truth\.spend.*", r"truth\.{}.*")),
    language("fortran", "Fortran, gfortran -O2 -fno-inline",
             (f"gfortran -O2 -fno-inline -g {FOREIGN}f90 -o program",), "{here}/program",
             paths("leaf multiplying", "MAIN__", "__work_MOD_spend", "__work_MOD_{}")),
    language("crystal", "Crystal", (f"crystal build {FOREIGN}cr -o program",),
             "{here}/program", paths("leaf sorting", "__crystal_main", r"\*spend.*", "...", r"\*{}.*")),
    language("nim", "Nim",
             (f"nim c -d:release --hints:off --nimcache:{{here}} -o:program {FOREIGN}nim",),
             "{here}/program", {"sorting": ("NimMain", "main__truth.*", "sorting__truth.*")}),
    language("cobol", "COBOL", (f"cobc -x -O2 -o program {FOREIGN}cob",), "{here}/program"),
    # .NET's clock of a process counts 10 ms at a time.
    language("mono", "Mono, --jitmap", ("mcs -out:Truth.exe {source}/languages/Truth.cs",),
             "mono --jitmap {here}/Truth.exe",
             paths("leaf sorting", "mono_main", "...", r"Truth:Main.*", r"Truth:Spend.*",
                   r"Truth:(?i:{}) .*"), complete=96, points=6),
    language("lua", "Lua's interpreter", (), f"lua5.4 {FOREIGN}lua"),
    language("tcl", "Tcl", (), f"tclsh {FOREIGN}tcl"),
    language("awk", "awk (gawk)", (), f"gawk -f {FOREIGN}awk"),
    language("forth", "Forth (gforth)", (), f"gforth {FOREIGN}fs"),
    language("prolog", "Prolog (swipl)", (), f"swipl {FOREIGN}prolog"),
    language("octave", "Octave", (), "octave-cli {source}/languages/octave.m"),
    language("clisp", "CLISP", (), "clisp {source}/languages/truth-common.lisp"),
    language("ecl", "ECL", (), "ecl --shell {source}/languages/truth-common.lisp"),
    language("php", "PHP, opcache's JIT", (), [*PHP_JIT, FOREIGN + "php"]),
    language("php-map", "… -d opcache.jit_debug=16", (),
             [*PHP_JIT, "-d", "opcache.jit_debug=16", FOREIGN + "php"], PHP),
    # Its start calls deeply, and briefly: the share of such stacks is the start's share of the run.
    # Measured: 77.6 % (two idle CPUs) to 97 % (one busy CPU).
    language("r", "R", (), f"Rscript {FOREIGN}R", complete=74),
    language("erlang", "Erlang, erl +JPperf true", (f"cp {FOREIGN}erl truth.erl", "erl -compile truth"),
             "erl +JPperf true -noshell -s truth main", ERLANG, comm="1_scheduler",
             starts=("erts_beamasm:normal_exit.*",), complete=70, points=12),
    language("haskell", "Haskell, ghc -O1", (f"cp {FOREIGN}hs truth.hs",
             "ghc -O1 -o program truth.hs"), "{here}/program", complete=95),
    # Where a trace ends, LuaJIT's own unwind rules are wrong for some instructions.
    language("luajit", "LuaJIT", (), f"luajit {FOREIGN}lua", complete=94),
    language("lisp", "SBCL", (), f"sbcl --script {FOREIGN}lisp"),
    language(
        "guile",
        "Guile",
        (
            f"cp {FOREIGN}scm truth.scm",
            (
                "guile",
                "-c",
                "((@ (system base compile) compile-file)"
                ' "truth.scm" #:output-file "truth.go")',
            ),
        ),
        ("guile", "-c", '(load-compiled "{here}/truth.go")'),
        complete=97,
    ),
    language("chez", "Chez Scheme", (), "chezscheme --script {source}/languages/truth-chez.scm"),
    language("racket", "Racket", (f"cp {FOREIGN}rkt truth.rkt", "racket -l- raco make truth.rkt"),
             "racket truth.rkt"),
    Kind("pcre2", "PCRE2's JIT", c("-O2", source="matching.c"), ("{here}/program",),
         {"matching": ("main", "matching", "pcre2_match_8", "...", "pcre2_jit_match_8"),
          "other": ("main", "other")}),
    Kind("qemu", "qemu-user's guest code", c("-O2 -static"), ("qemu-x86_64", "{here}/program")),
)
FRAMES = "-fno-omit-frame-pointer"
PLAIN_JS, PERF_JS = "{source}/script.js", "--perf-basic-prof"
KINDS = (
    native("c", "C, gcc -O2", c("-O2"), NATIVE),
    native("c-frame-pointers", "C, gcc -O2 " + FRAMES, c("-O2 " + FRAMES), NATIVE),
    native("c-leaf", "C, gcc -O1 " + FRAMES, c("-O1 " + FRAMES), NATIVE),
    native("c-unoptimized", "C, gcc -O0", c("-O0"), NATIVE),
    native("c-clang", "C, clang -O2", c("-O2", "clang"), NATIVE),
    native("c-clang-frame-pointers", "C, clang -O2 " + FRAMES, c("-O2 " + FRAMES, "clang"), NATIVE),
    native("static", "C, gcc -O2 -static", c("-O2 -static"), NATIVE),
    native("static-pie", "C, gcc -O2 -static-pie", c("-O2 -static-pie"), NATIVE),
    native("no-pie", "C, gcc -O2 -no-pie", c("-O2 -no-pie"), NATIVE),
    native(
        "stripped",
        "C, gcc -O2, stripped",
        c("-O2 -rdynamic", after=(("strip", "{here}/program"),)),
        STRIPPED,
    ),
    native("musl", "C, musl-gcc -O2", c("-O2", "musl-gcc"), NATIVE),
    native("musl-static", "C, musl-gcc -O2 -static", c("-O2 -static", "musl-gcc"), NATIVE),
    # The report has the names from another file; the recorder doesn't look there.
    native(
        "musl-static-stripped",
        "… without unwind tables, stripped",
        c(
            "-O2 -static -fno-asynchronous-unwind-tables",
            "musl-gcc",
            after=(
                ("objcopy", "--only-keep-debug", "{here}/program", "{here}/program.debug"),
                ("strip", "{here}/program"),
                ("objcopy", "--add-gnu-debuglink={here}/program.debug", "{here}/program"),
            ),
        ),
        NATIVE,
    ),
    native("c++", "C++, g++ -O2", cpp("-O2"), OBJECTS),
    native("c++-frame-pointers", "C++, g++ -O2 " + FRAMES, cpp("-O2 " + FRAMES), OBJECTS),
    native("c++-clang", "C++, clang++ -O2", cpp("-O2", "clang++"), OBJECTS),
    native(
        "rust",
        "Rust, rustc -O",
        (("rustc", "-O", "--edition", "2021", "-o", "{here}/program", "{source}/sim.rs"),),
        RUST,
    ),
    native("go", "Go", (("go", "build", "-o", "{here}/program", "{source}/routines.go"),), GO),
    native(
        "go-stripped",
        "Go, -ldflags '-s -w'",
        (("go", "build", "-ldflags", "-s -w", "-o", "{here}/program", "{source}/routines.go"),),
        GO,
    ),
    # A C function that uses rbp hides its callers from the kernel's chain: those come from the
    # task's memory, which is read every few milliseconds.
    native(
        "cgo",
        "Go and C, called by each other",
        (("go", "build", "-o", "{here}/program", "{source}/crossing.go"),),
        CGO,
        complete=85,
        points=7,
    ),
    native(
        "coroutines",
        "C, coroutines: ucontext, assembly",
        c("-O2", source="coroutines.c"),
        COROUTINES,
        starts=("other_coroutine",),
    ),
    native("signals", "C, signal handlers", c("-O2", source="signals.c"), SIGNALS),
    native("library", "glibc's assembly, vdso, qsort", c("-O2", source="library.c"), LIBRARY),
    native(
        "library-frame-pointers",
        "… of a program with frame pointers",
        c("-O2 " + FRAMES, source="library.c"),
        LIBRARY,
    ),
    native(
        "library-musl", "musl's assembly, vdso, qsort", c("-O2", "musl-gcc", "library.c"), LIBRARY
    ),
    native("deep", "C, recursion 3,000 deep", c("-O2", source="deep.c"), DEEP),
    native(
        "deep-frame-pointers",
        "… with frame pointers",
        c("-O1 " + FRAMES, source="deep.c"),
        DEEP,
    ),
    mixed("mixed", "frame pointers, libraries without"),
    mixed("mixed-p", "… by -p", session=sessions.Waiting, how="-p"),
    mixed("mixed-u", "… by -u", session=sessions.Waiting, how="-u"),
    mixed("mixed-a", "… by -a", session=sessions.Waiting, how="-a"),
    trampolines("trampolines", "code made at run time: CPython's perf trampolines", "plain"),
    trampolines("trampolines-frame-pointers", "… with frame pointers", "frames"),
    trampolines("trampolines-dump", "… in a jitdump that tells how to unwind", "dump"),
    script("python", "python3 (native)", PYTHON, "python3", "{source}/interpreted.py"),
    *(
        script(
            f"python-{mode.replace('perf_', '')}-{version}",
            f"python{version} -X {mode}",
            PYTHON_PERF,
            f"python{version}",
            "-X",
            mode,
            "{source}/interpreted.py",
        )
        for version, mode in (("3.12", "perf"), ("3.13", "perf"), ("3.13", "perf_jit"))
    ),
    script("node", "node " + PERF_JS, NODE, "node", PERF_JS, PLAIN_JS),
    script(
        "node-interpreted-frames",
        "… --interpreted-frames-native-stack",
        NODE,
        "node",
        PERF_JS,
        "--interpreted-frames-native-stack",
        PLAIN_JS,
    ),
    java(
        "java-frame-pointers", "java, map, -XX:+PreserveFramePointer", "-XX:+PreserveFramePointer"
    ),
    java("java", "java, map"),
    Kind(
        "postgres",
        "postgres (two backends)",
        session=sessions.Postgres,
        needs=("initdb", "postgres", "psql"),
        paths=POSTGRES,
    ),
    Kind("redis", "redis", session=sessions.Redis, needs=("redis-server",), paths=REDIS),
    Kind("nginx", "nginx (a worker)", session=sessions.Nginx, needs=("nginx",), paths=NGINX),
    # Some recursions are larger than a copy, and gone before the task's memory is read: docs/accuracy.md.
    Kind(
        "gcc",
        "gcc -O2 (cc1)",
        (("python3", "{source}/made_source.py", "32"),),
        ("gcc", "-O2", "-ftime-report", "-c", "made.c"),
        GCC,
        comm="cc1",
        complete=98,
        truths=sessions.time_report,
    ),
    Kind(
        "git",
        "git (stripped), zlib",
        (
            ("gcc", "-w", "-O2", "-shared", "-fPIC", "{source}/timed_library.c", "-o", "timed.so"),
            ("python3", "{source}/made_source.py", "7000"),
            ("git", "init", "-q", "."),
        ),
        ("env", "LD_PRELOAD={here}/timed.so", "git")
        + ("-c", "core.compression=9", "hash-object", "-w", "made.c"),
        {"deflate": ("deflate",)},
        comm="git",
    ),
    *LANGUAGES,
)
