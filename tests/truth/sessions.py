"""Programs that run before they are recorded: starts them, makes them work, reads their CPU time,
stops.

A session has start(), which returns the processes to record; work(), which returns {part: percent};
and stop().  `pids` has the parts that are processes of their own.
"""
import ctypes
import os
import re
import signal
import socket
import subprocess
import time

PR_SET_PDEATHSIG = 1
NOBODY = 65534  # servers refuse to run as root


class Skip(Exception):
    """Says why a kind can't run here."""


class Failed(Exception):
    """Says why a kind failed although everything is installed."""


def truths(output):
    """Returns what a program measured itself: {part: percent}."""
    skip = re.search(r"^skip (.*)$", output, re.M)
    if skip:
        raise Skip(skip.group(1))
    return {
        match.group(1): float(match.group(2))
        for match in re.finditer(r"^([\w.-]+) ([0-9.]+)$", output, re.M)
    }


def time_report(output, errors):
    """Reads gcc's -ftime-report: user and system time of the phases."""
    used = {}
    for name, row in (
        ("parsing", "phase parsing"),
        ("generating", "phase opt and generate"),
        ("whole", "TOTAL"),
    ):
        match = re.search(rf"^ *{row} *: *([0-9.]+) *(?:\([^)]*\))? *([0-9.]+)", errors, re.M)
        if not match:
            raise Skip("this gcc's -ftime-report has other rows")
        used[name] = float(match.group(1)) + float(match.group(2))
    return {name: 100 * used[name] / used["whole"] for name in ("parsing", "generating")}


class Waiting:
    """A program of ours that waits to be recorded (truth_begin), as another user if this one may do
    that."""

    def __init__(self, tools, command):
        self.command, self.program = command, None
        self.pids = {}

    def start(self, here, env):
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        self.program = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=here,
            env={**env, "TRUTH_WAITS": "1"},
            **user,
        )
        line = self.program.stdout.readline()
        if line.startswith("skip"):
            truths(line)
        return [int(line.split()[1])]

    def work(self):
        return truths(self.program.communicate("\n", timeout=120)[0])

    def stop(self):
        if self.program and self.program.poll() is None:
            self.program.kill()
            self.program.wait()


def cpu_ns(pid):
    """Returns a process's CPU time, by its clock."""
    return time.clock_gettime_ns(((~pid) << 3) | 2)


class Server:
    """A server in a folder of its own, as a user other than root, reached by a socket there."""

    def __init__(self, tools, command):
        self.tools, self.server, self.here = tools, None, None
        self.pids = {}  # parts that are processes of their own

    def start_server(self, command, here, env):
        self.here = here
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        folder = os.path.join(here, "server")
        os.makedirs(folder, exist_ok=True)
        if user:
            os.chown(folder, NOBODY, NOBODY)
        with open(os.path.join(here, "server.log"), "ab") as log:
            self.server = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=env,
                start_new_session=True,
                preexec_fn=self.die_with_parent,
                **user,
            )
        return self.server

    def die_with_parent(self):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, self.stop_signal)

    def log(self):
        with open(os.path.join(self.here, "server.log"), encoding="utf-8", errors="replace") as log:
            return log.read()[-1500:]

    def until(self, ready):
        """Waits until a condition holds."""
        for _ in range(1500):
            if ready():
                return
            if self.server.poll() is not None:
                break
            time.sleep(0.02)
        raise Failed(f"the server does not start: {self.log()}")

    def stop(self):
        if self.server and self.server.poll() is None:
            self.server.send_signal(self.stop_signal)
            try:
                self.server.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(self.server.pid, signal.SIGKILL)
                self.server.wait()

    stop_signal = signal.SIGTERM


class Postgres(Server):
    """Two backends, one of which sorts and one counts; the CPU time of each is its process's."""

    stop_signal = signal.SIGQUIT  # stops at once and keeps nothing
    QUERIES = {
        "sorting": "select max(b) from (select (a::bigint * 7919 % 100003)::text b "
        "from generate_series(1, 1000000) a order by 1) c",
        "counting": "select count(*) from generate_series(1, 8000000) a where a % 3 = 0",
    }

    def start(self, here, env):
        initdb, postgres, self.psql = self.tools
        data = os.path.join(here, "server", "data")
        made = self.start_server(
            [
                initdb,
                "-D",
                data,
                "-A",
                "trust",
                "-U",
                "truth",
                "-N",
                "--no-instructions",
                "-E",
                "UTF8",
                "--locale=C",
            ],
            here,
            env,
        )
        if made.wait(timeout=100):
            raise Failed(f"initdb: {self.log()}")
        folder = os.path.join(here, "server")
        self.start_server(
            [
                postgres,
                "-D",
                data,
                "-k",
                folder,
                "-c",
                "listen_addresses=",
                "-c",
                "fsync=off",
                "-c",
                "jit=off",
                "-c",
                "max_parallel_workers_per_gather=0",
                "-c",
                "work_mem=256MB",
            ],
            here,
            env,
        )
        self.until(lambda: os.path.exists(os.path.join(folder, ".s.PGSQL.5432")))
        self.clients = {}
        for part in self.QUERIES:
            for _ in range(100):
                client = subprocess.Popen(
                    [
                        self.psql,
                        "-h",
                        folder,
                        "-U",
                        "truth",
                        "-d",
                        "postgres",
                        "-qtAX",
                        "-v",
                        "ON_ERROR_STOP=1",
                    ],
                    text=True,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=env,
                )
                client.stdin.write("select pg_backend_pid();\n")
                client.stdin.flush()
                answer = client.stdout.readline()
                if answer:
                    break
                client.communicate()  # the server is still starting
                time.sleep(0.05)
            else:
                raise Failed(f"no connection: {self.log()}")
            self.clients[part] = client, int(answer)
            self.pids[part] = int(answer)
        return [pid for _, pid in self.clients.values()]

    def work(self):
        before = {part: cpu_ns(pid) for part, (_, pid) in self.clients.items()}
        for part, (client, _) in self.clients.items():
            client.stdin.write(self.QUERIES[part] + ";\n")
            client.stdin.flush()
        for client, _ in self.clients.values():
            if not client.stdout.readline().strip():
                raise Failed(f"a query failed: {self.log()}")
        return shares({part: cpu_ns(pid) - before[part] for part, (_, pid) in self.clients.items()})

    def stop(self):
        for client, _ in getattr(self, "clients", {}).values():
            client.kill()
            client.communicate()
        super().stop()


class Redis(Server):
    """One command after another; the server's clock is read in between."""

    COMMANDS = {
        "sorting": (b"SORT", b"list", b"ALPHA", b"LIMIT", b"0", b"1"),
        "joining": (b"ZUNIONSTORE", b"both", b"2", b"one", b"other"),
        "scripting": (
            b"EVAL",
            b"local s = 0; for i = 1, 500000 do s = s + i % 7 end; return s",
            b"0",
        ),
    }

    def start(self, here, env):
        path = os.path.join(here, "server", "socket")
        self.start_server(
            [
                self.tools[0],
                "--port",
                "0",
                "--unixsocket",
                path,
                "--save",
                "",
                "--appendonly",
                "no",
            ],
            here,
            env,
        )
        self.until(lambda: os.path.exists(path))
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")
        words = [str(number * 7919 % 100003).encode() for number in range(20000)]
        self.ask(b"RPUSH", b"list", *words)
        for key in (b"one", b"other"):
            self.ask(b"ZADD", key, *(scored for word in words for scored in (word[-3:], word)))
        return [self.server.pid]

    def ask(self, *words):
        self.socket.sendall(
            b"*%d\r\n" % len(words)
            + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        )
        answer = self.file.readline()
        if answer.startswith(b"-"):
            raise Failed(f"redis: {answer}")
        if answer.startswith(b"*"):
            for _ in range(2 * int(answer[1:])):
                self.file.readline()

    def work(self):
        used = dict.fromkeys(self.COMMANDS, 0)
        for _ in range(12):
            for part, command in self.COMMANDS.items():
                start = now = cpu_ns(self.server.pid)
                while now - start < 50000000:
                    self.ask(*command)
                    now = cpu_ns(self.server.pid)
                used[part] += now - start
        return shares(used)

    def stop(self):
        if hasattr(self, "file"):
            self.file.close()
            self.socket.close()
        super().stop()


class Nginx(Server):
    """A worker that compresses a file, and matches a slow regular expression; its clock is read in
    between."""

    CONFIGURATION = """
        daemon off; worker_processes 1; pid nginx.pid; error_log /dev/null crit;
        events {{ }}
        http {{
            access_log off; client_body_temp_path body; proxy_temp_path proxy;
            fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
            gzip on; gzip_comp_level 9; gzip_types *; gzip_http_version 1.0;
            server {{
                listen unix:{folder}/socket; root {folder};
                location ~ "^/(a+)+$" {{ return 204; }}
            }}
        }}"""
    REQUESTS = {
        "packing": b"GET /text HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n",
        "matching": b"GET /aaaaaaaaaaaaaaaaaaaaaaab HTTP/1.0\r\n\r\n",
    }

    def start(self, here, env):
        folder = os.path.join(here, "server")
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, "socket")
        with open(os.path.join(folder, "nginx.conf"), "w", encoding="ascii") as file:
            file.write(self.CONFIGURATION.format(folder=folder))
        with open(os.path.join(folder, "text"), "w", encoding="ascii") as file:
            file.write(" ".join(str(number * 7919 % 100003) for number in range(100000)))
        self.start_server(
            [self.tools[0], "-p", folder, "-c", os.path.join(folder, "nginx.conf"), "-e", "stderr"],
            here,
            env,
        )
        self.until(lambda: os.path.exists(self.path) and self.children())
        self.worker = self.children()[0]
        return [self.worker]

    def children(self):
        pid = self.server.pid
        try:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
                return [int(child) for child in children.read().split()]
        except OSError:
            return []

    def ask(self, request):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.path)
            connection.sendall(request)
            while connection.recv(1 << 20):
                pass

    def work(self):
        used = dict.fromkeys(self.REQUESTS, 0)
        for _ in range(12):
            for part, request in self.REQUESTS.items():
                start = now = cpu_ns(self.worker)
                while now - start < 75000000:
                    self.ask(request)
                    now = cpu_ns(self.worker)
                used[part] += now - start
        return shares(used)


def shares(used):
    return {part: 100 * value / sum(used.values()) for part, value in used.items()}
