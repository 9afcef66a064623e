#!/bin/bash
# Files beside a recording that are large, or stand for large ones: perf maps, dumps of JITs, objects,
# debuginfod's answers.  tally leaves them out, names the limit, and takes little memory.
. "$(dirname "$0")/tap.sh"
. "$(dirname "$0")/within.sh"
cd "$scratch" || exit 1
export PYTHONPATH=$SOURCE/tests/cli PYTHONDONTWRITEBYTECODE=1 XDG_CACHE_HOME=$scratch/cache HOME=$scratch
pid=$((4100000 + $$ % 90000)) # larger than those of this machine's processes
trap 'rm -rf "$scratch" /tmp/perf-$pid.map; [ -z "${server:-}" ] || kill $server 2>/dev/null' EXIT

# FILE [PATH [BUILD_ID]]…: a recording with samples in made code, and in each file that is mapped.
cat >recording.py <<'PY'
from make_recording import *
pid, out, files = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
event = Event("cpu-clock", [1], type=1, config=0, sample_type=IP | TID | TIME | PERIOD | IDENTIFIER, flags=SAMPLE_ID_ALL | MMAP | COMM | MMAP2)
end = lambda time: u32(pid, pid) + u64(time, 1)
records, time = [record("COMM", u32(pid, pid) + padded("prog") + end(1))], 10
def sample(address):
    global time
    time += 10
    records.append(record("SAMPLE", u64(1, address) + u32(pid, pid) + u64(time, 1000), USER))
def mmap(address, size, name, ids=(0, 0, 0), offset=0):
    records.append(record("MMAP2", u32(pid, pid) + u64(address, size, offset) + u32(ids[0], ids[1]) + u64(ids[2], 0) + u32(5, 2) +
                          padded(name) + end(2), USER))
mmap(0x10000000, 1 << 20, "//anon")
sample(0x10000010)
for number, name in enumerate(files):
    name, _, build_id = name.partition("=")
    address = 0x20000000 + (number << 24)
    if build_id:
        records.append(record("MMAP2", u32(pid, pid) + u64(address, 1 << 20, 0) + bytes([20, 0, 0, 0]) + bytes.fromhex(build_id) +
                              u32(5, 2) + padded(name) + end(2), USER | 1 << 14))
    else:
        there = os.stat(name)
        mmap(address, 1 << 20, name, (os.major(there.st_dev), os.minor(there.st_dev), there.st_ino))
    sample(address + 0x1000)
write_file(out, [event], records, common_features([event]))
PY
recording() { python3 recording.py "$pid" "$@"; }

# ---- debug information and sources

mkdir dwarf && python3 -c 'import growing_inputs, os; growing_inputs.functions(300, os.path.abspath("dwarf"))' && mv dwarf/r.data dwarf.data
within 100 "$TALLY" report -g -i dwarf.data --sort srcline && [ "$status" = 0 ] && ! says 'not read whole'
check "debug information below the limit is read"
TALLY_LIMITS=dwarf=1K within 100 "$TALLY" report -g -i dwarf.data --sort srcline && says 'is not read whole' && says 'TALLY_LIMITS=dwarf=1024G raises the limit'
check "… and above it not, which a warning says"
if have gcc; then
	printf 'volatile long x;\nint main(void) { for (long i = 0; i < 30000000; i++) x += i; return 0; }\n' >source.c
	yes '/* a line */' | head -n 1000 >>source.c
	if gcc -g -O1 source.c -o source 2>err && "$TALLY" record -q -e cpu-clock -o source.data ./source >out 2>err; then
		TALLY_LIMITS=source=1K within 100 "$TALLY" annotate --stdio -i source.data && failed && says 'source.c was left out' &&
			says 'TALLY_LIMITS=source=1G raises the limit'
		check "a source above the limit is left out"
	else
		skip "a source above the limit is left out" "$(head -n 1 err)"
	fi
else
	skip "a source above the limit is left out" "needs gcc"
fi

# ---- perf maps

recording map.data
printf '10000000 100 made_function\n' >/tmp/perf-$pid.map
within 100 "$TALLY" report -i map.data && [ "$status" = 0 ] && grep -q made_function out
check "a small perf map names code"
python3 -c 'for i in range(200000): print("%x 10 function_%d" % (0x10000000 + 16 * i, i))' >>/tmp/perf-$pid.map
TALLY_LIMITS=perf-map=1M within 100 "$TALLY" report -i map.data && failed &&
	says "/tmp/perf-$pid.map was left out" && says 'TALLY_LIMITS=perf-map=1G raises the limit'
check "a perf map above the limit is left out"
TALLY_LIMITS=perf-maps=1M within 100 "$TALLY" report -i map.data && failed && says 'TALLY_LIMITS=perf-maps=1G raises the limit'
check "all perf maps together have a limit"
truncate -s 6G /tmp/perf-$pid.map
within 600 "$TALLY" report -i map.data && failed && says 'TALLY_LIMITS=perf-map=1G'
check "a sparse perf map of 6 GiB takes no more than the limit"
yes '1 1 a' | head -n 300000 >/tmp/perf-$pid.map
TALLY_LIMITS=perf-map=2M within 100 "$TALLY" report -i map.data && failed && says 'TALLY_LIMITS=perf-map=1G'
check "a perf map of short lines makes no large table"
rm /tmp/perf-$pid.map

# ---- dumps of JITs

# FILE FUNCTIONS BYTES: a dump with so many functions of so many bytes at 0x10000000.
cat >dump.py <<'PY'
import struct, sys
out, count, size = open(sys.argv[1], "wb"), int(sys.argv[2]), int(sys.argv[3])
out.write(struct.pack("<6IQQ", 0x4A695444, 1, 40, 62, 0, 7, 0, 0))
for i in range(count):
    name, code = b"jitted_%d\0" % i, bytes(size)
    address = 0x10000000 + i * size
    out.write(struct.pack("<IIQIIQQQQ", 0, 56 + len(name) + size, 1, 7, 7, address, address, size, i) + name + code)
PY
python3 dump.py jit-1.dump 10 100
recording dump.data "$PWD/jit-1.dump"
within 100 "$TALLY" report -i dump.data && [ "$status" = 0 ] && grep -q jitted_0 out
check "a small dump names code"
cp jit-1.dump start
truncate -s 8G jit-1.dump
within 100 "$TALLY" report -i dump.data && [ "$status" = 0 ] && grep -q jitted_0 out
check "a sparse dump is read up to the end of its records"
printf '\x10\0\0\0\0\0\0\xf0' >more # a record of an unknown kind, 3.75 GiB long, all of it a hole
cat start more >jit-1.dump && truncate -s 8G jit-1.dump
within 100 "$TALLY" report -i dump.data && failed && says 'jit-1.dump was left out' && says 'TALLY_LIMITS=jit-dump=2G'
check "a record that is a hole does not make a dump large"
python3 - <<'PY'
import struct
size = 900 << 20
with open("jit-1.dump", "wb") as out: # one function, whose code is a hole
    out.write(struct.pack("<6IQQ", 0x4A695444, 1, 40, 62, 0, 7, 0, 0))
    out.write(struct.pack("<IIQIIQQQQ", 0, 61 + size, 1, 7, 7, 0x10000000, 0x10000000, size, 0) + b"huge\0")
    out.truncate(101 + size)
PY
recording dump.data "$PWD/jit-1.dump"
within 600 "$TALLY" annotate --stdio -i dump.data && [ "$status" = 0 ] && [ "$(wc -c <out)" -lt 200000000 ]
check "annotate shows only the beginning of a function without end"
rm -f out
python3 dump.py jit-1.dump 3000 1000
recording dump.data "$PWD/jit-1.dump"
TALLY_LIMITS=jit-dump=1M within 100 "$TALLY" report -i dump.data && failed && says 'jit-1.dump was left out' &&
	says 'TALLY_LIMITS=jit-dump=1G'
check "a dump above the limit is left out"
names=()
for i in 1 2 3 4 5 6; do
	python3 dump.py jit-$i.dump 300 1000
	names+=("$PWD/jit-$i.dump")
done
recording dumps.data "${names[@]}"
TALLY_LIMITS=jit-dumps=1M within 100 "$TALLY" report -i dumps.data && failed &&
	says 'jit-4.dump (and 2 more) was left out' && says 'TALLY_LIMITS=jit-dumps=1G'
check "all dumps together have a limit"

# ---- objects

if have cc && have objcopy && have xz; then
	echo 'int main(void) { return 0; } void hot(void) { for (;;); }' >p.c
	cc -g -Wl,--build-id=none -Wl,-z,noseparate-code -o p p.c 2>err
	head -c 100M /dev/zero >zeros
	for way in zlib zlib-gnu zstd; do
		objcopy --remove-section .debug_line --add-section .debug_line=zeros p bomb.plain &&
			objcopy --compress-debug-sections=$way bomb.plain bomb 2>err || {
			skip "a section that unpacks to too much is left out ($way)" "objcopy can't"
			continue
		}
		rm bomb.plain
		recording bomb.data "$PWD/bomb"
		within 150 "$TALLY" report -g -i bomb.data && failed && says "bomb was left out" && says 'TALLY_LIMITS=object-sections=8G'
		check "a section that unpacks to too much is left out ($way)"
	done
	head -c 30M zeros | xz >debugdata.xz
	objcopy -S --add-section .gnu_debugdata=debugdata.xz p mini
	recording mini.data "$PWD/mini"
	TALLY_LIMITS=minidebuginfo=16M within 100 "$TALLY" report -i mini.data && failed && says 'mini was left out' &&
		says 'TALLY_LIMITS=minidebuginfo=1G'
	check "mini debug information that unpacks to too much is left out"
	if [ "$(id -u)" = 0 ]; then
		cp p theirs && truncate -s 6G theirs && chown 65534 theirs
		recording theirs.data "$PWD/theirs"
		within 100 "$TALLY" report -i theirs.data && failed && says 'theirs was left out' && says 'TALLY_LIMITS=object=8G'
		check "another user's object above the limit is not copied"
		truncate -s 3G theirs
		recording theirs.data "$PWD/theirs"
		within 150 "$TALLY" report -i theirs.data && [ "$status" = 0 ]
		check "holes of another user's object take no memory"
	fi
else
	skip "compressed sections" "no cc, objcopy or xz"
fi

# ---- debuginfod

cat >server.py <<'PY'
import http.server, os, sys, zlib
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        if sys.argv[1] == "packed":
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        packer, sent = zlib.compressobj(9, zlib.DEFLATED, 31), 0
        try:
            while sent < 400 << 20:
                chunk = bytes(1 << 20)
                sent += len(chunk)
                if sys.argv[1] == "packed":
                    chunk = packer.compress(chunk)
                if chunk:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        except OSError:
            pass
        self.close_connection = True
    def log_message(self, *words):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
open("port.new", "w").write(str(server.server_port))
os.rename("port.new", "port")
server.serve_forever()
PY
if libraries | grep -q 'libdebuginfod\.so\.1'; then
	recording gone.data "/nowhere/gone=00112233445566778899aabbccddeeff00112233"
	for how in plain packed; do
		# There the signal of RLIMIT_FSIZE does not arrive; the file is limited all the same.
		if [ $how = packed ] && grep -q __asan_report_load "$TALLY"; then
			skip "an answer of debuginfod above the limit is dropped (packed)" "a sanitizer takes the signal"
			continue
		fi
		rm -rf port .cache cache
		python3 server.py $how &
		server=$!
		until [ -s port ]; do sleep 0.05; done
		TALLY_LIMITS=debuginfod=8M within 200 "$TALLY" report --debuginfod="http://127.0.0.1:$(cat port)" -i gone.data && failed &&
			says "debuginfod's file of 00112233445566778899aabbccddeeff00112233 was left out" &&
			says 'TALLY_LIMITS=debuginfod=1G' && [ -z "$(find .cache cache -size +1M 2>/dev/null)" ]
		check "an answer of debuginfod above the limit is dropped ($how)"
		rm -rf .cache cache
		TALLY_LIMITS=debuginfod-all=8M within 200 "$TALLY" report --debuginfod="http://127.0.0.1:$(cat port)" -i gone.data && failed &&
			says 'TALLY_LIMITS=debuginfod-all=1G'
		check "… and one above the limit of all ($how)"
		kill $server
		wait $server 2>/dev/null
		server=
	done
else
	skip "debuginfod's answers" "libdebuginfod is not installed"
fi

done_testing
