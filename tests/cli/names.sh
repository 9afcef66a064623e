#!/bin/bash
# SPEC G6: names from every source: debug files, small tables in the object, other roots, removed
# files, the kernel's file.  TAP; $TALLY is the binary, $SOURCE the source's folder.
set -u
. "$(dirname "$0")/tap.sh"
running=
trap '[ -z "$running" ] || kill $running 2>/dev/null; rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export PAGER=cat NO_COLOR= HOME=$scratch XDG_CACHE_HOME=$scratch/cache DEBUGINFOD_URLS=
mkdir cache

cat >spin.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
volatile unsigned long sink;
static inline __attribute__((always_inline)) void leaf_that_is_inlined(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i; }
static __attribute__((noinline)) void hidden_in_the_middle(void) { leaf_that_is_inlined(10000); sink++; }
int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 0.3;
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
	puts("up"); fflush(stdout);
	while (clock() < end) hidden_in_the_middle();
	return 0;
}
END
if ! have gcc || ! have objcopy || ! gcc -g -O2 -fno-omit-frame-pointer -o spin spin.c 2>out ||
	! timeout 20 "$TALLY" record -e cpu-clock -F 2000 -g -o tally.data -- ./spin >out 2>&1; then
	echo "1..0 # SKIP needs gcc, binutils, and a kernel that may be asked"
	exit 0
fi

# names FILE [option…]: writes the function names of its stacks to `out`
names() { timeout 60 "$TALLY" script --stdio -i "$1" "${@:2}" >out 2>err; }
# shows FILE TEXT [option…]
shows() { names "$1" "${@:3}" && grep -q -- "$2" out; }
misses() { ! shows "$@"; }
record() { timeout 60 "$TALLY" record --no-pack -e cpu-clock -F 2000 -g -o "$1" "${@:2}" >out 2>err; }
# same_as_perf FILE PERF-OPTIONS -- TALLY-OPTIONS: both have the same names of kernel frames, one a
# line, sorted.
same_as_perf() {
	local file=$1 perf_options=()
	shift
	while [ "$1" != -- ]; do perf_options+=("$1"); shift; done
	timeout 100 perf script --no-inline -F ip,sym,dso -i "$file" "${perf_options[@]}" 2>/dev/null |
		awk 'NF >= 3 && $3 ~ /^.\[kernel|vmlinux/ { print $2 }' | sort >perf.names
	names "$file" --no-inline "${@:2}"
	awk 'NF >= 3 && $1 ~ /^[0-9a-f]+$/ && $NF ~ /^.\[kernel/ { sub(/\+0x[0-9a-f]+$/, "", $2); print $2 }' out | sort >tally.names
	[ -s perf.names ] && diff perf.names tally.names >out
}

# ---- files of debug information -------------------------------------------------------------------------------------

objcopy --only-keep-debug spin spin.debug
nm --defined-only spin | awk '{ print $3 }' | sort >all
mkdir bin
strip -o bin/spin spin
record stripped.data bin/spin
check "a stripped program has no names" misses stripped.data hidden_in_the_middle
"$TALLY" report --stdio -i stripped.data >out 2>&1
check "… and the report says how to get them" eval \
	'grep -q "samples lack names, in spin: .*-dbgsym.*--debuginfod" out && ! grep -q "without names:" out'
"$TALLY" report -v --stdio -i stripped.data >out 2>&1
check "… and with -v the file's path" grep -q "warning: without names: [0-9.]*%, $PWD/bin/spin$" out
"$TALLY" report --stdio --sort comm,dso -i stripped.data >out 2>&1
check "… unless it shows no functions" eval 'grep -q spin out && ! grep -q "without names" out'
record few.data sh -c 'bin/spin 0.03; ./spin 0.9'
"$TALLY" report --stdio -i few.data >out 2>&1
check "… or few samples lack a name: 3 in a hundred" eval 'grep -qF "[spin" out && ! grep -q "without names" out'

objcopy --add-gnu-debuglink=spin.debug bin/spin bin/linked && mv bin/linked bin/spin
record linked.data bin/spin
check "a debug link to a missing file gives no names" misses linked.data hidden_in_the_middle
cp spin.debug bin/
check "a debug link is followed to the program's folder" shows linked.data hidden_in_the_middle
check "… with lines and inlined functions" shows linked.data leaf_that_is_inlined
check "… --no-inline leaves inlined functions out" misses linked.data leaf_that_is_inlined --no-inline
mkdir bin/.debug && mv bin/spin.debug bin/.debug/
check "a debug link is followed to .debug" shows linked.data hidden_in_the_middle
printf x >>bin/.debug/spin.debug
check "a debug file with another checksum is refused" misses linked.data hidden_in_the_middle
rm -r bin/.debug

id=$(readelf -n spin | sed -n 's/.*Build ID: //p')
mkdir -p "symfs$scratch/bin" "symfs/usr/lib/debug/.build-id/${id:0:2}" && cp bin/spin "symfs$scratch/bin/spin"
cp spin.debug "symfs/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
check "--symfs: finds a debug file by build-id below the folder" shows linked.data hidden_in_the_middle --symfs symfs
rm -r symfs/usr
mkdir -p "symfs/usr/lib/debug$scratch/bin" && cp spin.debug "symfs/usr/lib/debug$scratch/bin/"
check "--symfs: finds it by debug link in usr/lib/debug below the folder" shows linked.data leaf_that_is_inlined --symfs symfs
rm -r symfs/usr && cp spin.debug "symfs$scratch/bin/"
check "--symfs: finds it by debug link beside the program below the folder" shows linked.data leaf_that_is_inlined --symfs symfs
mkdir elsewhere
check "--symfs: takes no file outside of the folder" misses linked.data hidden_in_the_middle --symfs elsewhere
"$TALLY" report --symfs nowhere -i linked.data >out 2>&1
check "--symfs: a missing folder is an error" grep -q "option --symfs: nowhere: No such file" out

timeout 60 "$TALLY" record -e cpu-clock -F 2000 -g -o packed.data bin/spin >out 2>&1
check "a function without a name when recorded has no name" misses packed.data hidden_in_the_middle
cp spin.debug bin/
check "… until its debug file is installed" shows packed.data hidden_in_the_middle
timeout 60 "$TALLY" record -e cpu-clock -F 2000 -g -o packed.data bin/spin >out 2>&1
rm bin/spin.debug && mv bin/spin gone
check "the names in the recording remain when the program is removed" shows packed.data leaf_that_is_inlined
mkdir -p "other_root$scratch/bin" && objcopy --remove-section .gnu_debuglink gone "other_root$scratch/bin/spin"
check "--symfs: the names of these files win over the recording's" misses packed.data hidden_in_the_middle --symfs other_root
check "… if the files exist" shows packed.data hidden_in_the_middle --symfs elsewhere
check "without the program there are no names" misses linked.data hidden_in_the_middle
"$TALLY" report --stdio -i linked.data >out 2>&1
check "… and the report says that the program is missing" grep -q 'names, in spin (not found on this machine): use --symfs DIR.*tally pack' out
check "… and asks for no debug file" eval '! grep -q "spin.*dbgsym" out'
mkdir -p "kept/.build-id/${id:0:2}/${id:2}" && cp spin "kept/.build-id/${id:0:2}/${id:2}/elf"
check "--buildid-dir: names come from this cache of perf" shows linked.data leaf_that_is_inlined --buildid-dir kept
mv kept .debug
check "names come from perf's cache in ~/.debug" shows linked.data leaf_that_is_inlined
rm -r .debug

# ---- functions without symbols, by their unwind rules ---------------------------------------------------------------

cat >parts.c <<'END'
#include <stdlib.h>
#include <time.h>
volatile unsigned long sink;
static clock_t end;
__attribute__((visibility("default"))) void exported(void) { sink++; }
static __attribute__((noinline)) void first_nameless(void) { for (int i = 0; i < 10000; i++) sink += i; }
static __attribute__((noinline)) void second_nameless(void) { for (int i = 0; i < 10000; i++) sink ^= i; }
static __attribute__((noinline, noreturn)) void does_not_return(void)
{
	while (clock() < end) { first_nameless(); second_nameless(); exported(); }
	exit(0);
}
static __attribute__((noinline, noreturn)) void ends_in_a_call(void) { sink++; does_not_return(); }
__attribute__((visibility("default"))) void behind(void) { sink--; }
int main(void) { end = clock() + CLOCKS_PER_SEC / 2; ends_in_a_call(); }
END
# The functions lie in this order without gaps: a call at the end of ends_in_a_call() returns to
# behind().
gcc -O1 -fno-toplevel-reorder -falign-functions=1 -fasynchronous-unwind-tables -rdynamic -fvisibility=hidden \
	-Wl,--build-id -o parts parts.c && mkdir -p bare && strip -o bare/parts parts
# Prints a function's name by address, from its address in the program with symbols.
called() { printf '[parts+0x%x]' "0x$(nm parts | awk -v name="$1" '$3 == name { print $1 }')"; }
nameless_stack() { # all of it, in FILE
	timeout 60 "$TALLY" fold -i "$1" >out 2>err &&
		grep -qF -- ";$(called main);$(called ends_in_a_call);$(called does_not_return);$(called first_nameless) " out &&
		grep -qF -- ";$(called does_not_return);$(called second_nameless) " out
}
nameless_rows() {
	timeout 60 "$TALLY" report --stdio --no-children -g none "$@" >out 2>err &&
		grep -qF -- "$(called first_nameless)" out && grep -qF -- "$(called second_nameless)" out
}
if grep -q '\.cold\|\.part' <(nm parts) || ! nm parts | grep -q ' behind'; then
	skip "functions without symbols" "the compiler took them to pieces"
else
	record parts.data bare/parts
	check "a function without a symbol is shown as object and address" nameless_stack parts.data
	check "… and not as the exported function before it" eval '! grep -q "exported;\|behind;\|behind " out'
	check "… each has its own row" nameless_rows -i parts.data
	check "… in JSON too" eval "timeout 60 \"\$TALLY\" report -j -i parts.data 2>err | grep -qF '\"function\": \"$(called first_nameless)\"'"
	check "… --symbol accepts such a name" eval "nameless_rows -i parts.data --symbol '[parts+*' && ! grep -q exported out"
	timeout 60 "$TALLY" report --stdio --no-children -g none -i parts.data --symbol "$(called first_nameless)" >out 2>err
	check "… and selects only this function" eval 'grep -qF -- "$(called first_nameless)" out && ! grep -qF -- "$(called second_nameless)" out'
	bare=$(called first_nameless | tr -d '[]')
	timeout 60 "$TALLY" report --stdio -i parts.data --symbol "$bare" >out 2>err
	check "… and if the brackets are missing, an error shows the right form" grep -qF -- "did you mean --symbol '[$bare]'" err
	timeout 60 "$TALLY" annotate -i parts.data "$(called second_nameless)" >out 2>err
	check "… annotate accepts it" grep -qF -- "$(called second_nameless)  $scratch/bare/parts" out
	names parts.data
	check "script calls it [unknown], as perf does" eval "grep -q ' \[unknown\] (.*bare/parts)' out && ! grep -q 'parts+0x' out"
	timeout 60 "$TALLY" diff parts.data parts.data >out 2>err
	check "diff compares them" grep -qF -- "$(called first_nameless)" out
	sed 's/second_nameless(void) {/& sink++;/' parts.c >other.c
	mkdir other_build && gcc -O1 -Wl,--build-id -o other_build/parts other.c && strip other_build/parts && record other.data other_build/parts
	timeout 60 "$TALLY" diff parts.data other.data >out 2>err
	check "… but only by object if the builds differ, since addresses differ" eval "grep -q '\[parts\]' out && ! grep -q 'parts+0x' out"
	timeout 60 "$TALLY" record -e cpu-clock -F 2000 -g -o carried.data bare/parts >out 2>&1
	mv bare/parts bare/gone
	check "the recording contains these names" nameless_stack carried.data
	check "… for all views" nameless_rows -i carried.data
	timeout 60 "$TALLY" annotate -i carried.data "$(called second_nameless)" >out 2>err
	check "… and their code" grep -q '% ±.*of the .* samples' out
	"$TALLY" report --stdio -i carried.data >out 2>&1
	check "… and the hint that debug files would give names" grep -q 'samples lack names, in parts' out
	check "without the program and without the recording's own names, code is known by its place in the file" \
		eval 'timeout 60 "$TALLY" fold -i parts.data >out 2>err && ! grep -qF "[parts]" out && grep -q "\[parts+0x[0-9a-f]*\]" out'
	mv bare/gone bare/parts
fi

# ---- .gnu_debugdata -------------------------------------------------------------------------------------------------

# As in distributions: with functions that .dynsym lacks.
if have xz; then
	strip -o mini/spin spin 2>/dev/null || { mkdir mini && strip -o mini/spin spin; }
	objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbol=hidden_in_the_middle spin.debug mini/debugdata 2>/dev/null
	xz -k mini/debugdata && objcopy --add-section .gnu_debugdata=mini/debugdata.xz mini/spin
	record mini.data mini/spin
	check ".gnu_debugdata has names that .dynsym lacks" shows mini.data hidden_in_the_middle
	names mini.data && ! grep -q ' main+' out
	check "… and only those" test $? = 0
	head -c 100 mini/debugdata.xz >mini/damaged
	objcopy --update-section .gnu_debugdata=mini/damaged mini/spin
	check "… it may be damaged" misses mini.data hidden_in_the_middle
else
	skip ".gnu_debugdata has names that .dynsym lacks" "there is no xz"
fi

# ---- debuginfod --------------------------------------------------------------------------------------------------------

# A server of the test's own, on this machine.
if have python3 && python3 -c 'import ctypes; ctypes.CDLL("libdebuginfod.so.1")' 2>/dev/null; then
	mkdir -p served/buildid/$id && cp spin.debug served/buildid/$id/debuginfo && cp gone served/buildid/$id/executable
	cat >server.py <<'END'
import http.server, os, time
class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format, *arguments):
        open('asked', 'a').write(format % arguments + '\n')
    def do_GET(self):
        if os.path.exists('stalls'): # never answers
            open('stalled', 'w').write('x')
            time.sleep(60)
        super().do_GET()
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), lambda *a: Handler(*a, directory='served'))
open('port', 'w').write(str(server.server_port))
os.rename('port', 'port.ready')
server.serve_forever()
END
	touch asked
	python3 server.py 2>/dev/null &
	running=$!
	tries=600; while [ ! -s port.ready ] && [ $((tries -= 1)) -gt 0 ]; do sleep 0.05; done
	url=http://127.0.0.1:$(cat port.ready)
	cp spin bin/spin
	timeout 60 "$TALLY" record -e cpu-clock -F 2000 -g -o carried.data -- bin/spin >out 2>&1
	cp gone bin/spin && objcopy --strip-all bin/spin
	record fetched.data bin/spin
	fold() { DEBUGINFOD_CACHE_PATH=$scratch/fetched timeout 60 "$TALLY" fold -i fetched.data "$@" >out 2>err; }
	DEBUGINFOD_URLS=$url fold
	check "without an option no debuginfod server is asked" test ! -s asked -a ! -e fetched
	fold "--debuginfod=$url"
	check "--debuginfod: inlined functions get names" grep -q leaf_that_is_inlined out
	grep -c "GET" asked >out; check "… with one request for each hot object" grep -q "buildid/$id/debuginfo" asked
	# A view that names single places, or names leaves to choose among them, must first know
	# what is hot.
	views() { # views RECORDING: all views of it
		local data=$1
		DEBUGINFOD_CACHE_PATH=$scratch/fetched; export DEBUGINFOD_CACHE_PATH
		check "script without --debuginfod fetches no names: $data" misses "$data" hidden_in_the_middle
		check "script --debuginfod names functions: $data" shows "$data" 'hidden_in_the_middle+.*bin/spin' "--debuginfod=$url"
		check "… and inlined functions" grep -q 'leaf_that_is_inlined+.*inlined' out
		check "… with lines" shows "$data" 'spin.c:[0-9]' "--debuginfod=$url" -F +srcline
		check "… in CSV" shows "$data" ',leaf_that_is_inlined;hidden_in_the_middle;' "--debuginfod=$url" --csv
		"$TALLY" report --stdio --dso spin "--debuginfod=$url" -i "$data" >out 2>&1
		check "report --debuginfod: filters see the fetched names" grep -q hidden_in_the_middle out
		timeout 60 "$TALLY" export -f speedscope -o - "--debuginfod=$url" -i "$data" >out 2>err
		check "export --debuginfod" grep -q leaf_that_is_inlined out
		timeout 60 "$TALLY" pack "--debuginfod=$url" -o "packed.$data" "$data" >out 2>&1
		check "pack --debuginfod: the recording gets the fetched names" shows "packed.$data" leaf_that_is_inlined
		unset DEBUGINFOD_CACHE_PATH
	}
	views fetched.data
	if have perf && perf record -q -e cpu-clock -F 2000 -g -o perf.fetched.data bin/spin >out 2>&1; then
		views perf.fetched.data
	else
		skip "script --debuginfod names functions: perf.fetched.data" "perf can't record"
	fi
	timeout 60 "$TALLY" script "--debuginfod=$url" - <fetched.data >out 2>&1
	check "script --debuginfod: a pipe is refused, since it can't be read twice" test $? = 1
	check "… and says what to do" grep -q '^hint: write the recording to a file' out
	touch stalls
	DEBUGINFOD_CACHE_PATH=$scratch/stalled_cache timeout --foreground 60 "$TALLY" script --stdio "--debuginfod=$url" -i fetched.data >out 2>err &
	asking=$!
	tries=400; while [ ! -s stalled ] && [ $((tries -= 1)) -gt 0 ]; do sleep 0.05; done
	pkill -INT -P $asking; wait $asking
	check "script --debuginfod: Ctrl-C ends the fetching, and script goes on" test $? = 0 -a -s out
	check "… and says so" grep -q 'debuginfod: the rest was not requested' err
	rm stalls
	kill $running; wait $running 2>/dev/null; running=
	fold "--debuginfod=$url"
	check "… files are fetched only once" grep -q leaf_that_is_inlined out
	export DEBUGINFOD_CACHE_PATH=$scratch/fetched3
	check "… if the server is down, the recording's own names remain" shows carried.data hidden_in_the_middle "--debuginfod=$url"
	unset DEBUGINFOD_CACHE_PATH
	rm bin/spin
	mkdir -p fetched2 && DEBUGINFOD_URLS=$url timeout 60 "$TALLY" fold --debuginfod -i fetched.data >out 2>err
	check "… if the server is down, names are missing" test $? = 0
	check "… and a message says so" grep -q 'debuginfod: [0-9]* of [0-9]* debug files\? could not be fetched' err
	"$TALLY" report --debuginfod -i fetched.data >out 2>&1
	check "--debuginfod without a server: the message says what to set" grep -q 'no debuginfod server is named (--debuginfod=http' out
else
	skip "--debuginfod: inlined functions get names" "needs python3 and libdebuginfod1"
fi

# ---- other roots, removed files --------------------------------------------------------------------------------------

# in_other_root NAME COMMAND…: records, from outside and by its id, a process that runs for 2 s.
if [ "$(id -u)" = 0 ] && have unshare && unshare -m true 2>/dev/null && gcc -static -g -O2 -fno-omit-frame-pointer -o static spin.c 2>/dev/null; then
	mkdir root hole && printf 'int main(void) { return 0; }' | gcc -x c - -o hole/spin
	# attach OUTPUT RECORD-OPTION…: records the process that has reported its start
	attach() {
		local output=$1 tries=600 pid=
		while [ ! -s up ] && [ $((tries -= 1)) -gt 0 ]; do sleep 0.05; done
		pid=$(pgrep -n -P $running || echo $running)
		for tries in 0.3 0.6 1 2 4; do # on a busy machine it hardly runs
			timeout 20 "$TALLY" record --no-pack -e cpu-clock -F 1000 -o "$output" -p "$pid" "${@:2}" -- sleep $tries >out 2>err
			has_some "$output" && break
		done
	}
	has_some() { [ "$("$TALLY" script --stdio -F time -i "$1" 2>/dev/null | grep -c :)" -ge 20 ]; }
	# perf_attaches OUTPUT RECORD-OPTION…: the same with perf
	perf_attaches() {
		for tries in 0.3 0.6 1 2 4; do
			timeout 20 perf record -q -e cpu-clock -F 1000 "${@:2}" -o "$1" -p $running -- sleep $tries >out 2>&1 || return 1
			has_some "$1" && return 0
		done
	}
	stop() { pkill -P $running 2>/dev/null; kill $running 2>/dev/null; wait $running 2>/dev/null; running=; rm -f up; }

	unshare -m sh -c "mount -t tmpfs none $scratch/hole && cp $scratch/static $scratch/hole/spin && exec $scratch/hole/spin 60" >up &
	running=$!
	attach mount.data -g
	check "files in a container have names while it runs" shows mount.data leaf_that_is_inlined
	if have perf && perf_attaches perf.mount.data -N -g; then
		check "… in perf's recordings too" shows perf.mount.data leaf_that_is_inlined
	else
		skip "… in perf's recordings too" "perf can't record it"
	fi
	stop
	check "… and not from a file with the same path outside" misses mount.data '__libc_start_main.*hole/spin'
	"$TALLY" script --stdio --records -i mount.data >out 2>&1
	static_id=$(readelf -n static | sed -n 's/.*Build ID: //p')
	mkdir -p ".debug/.build-id/${static_id:0:2}/${static_id:2}" && cp static ".debug/.build-id/${static_id:0:2}/${static_id:2}/elf"
	check "… the build-id is recorded, so that a copy gives names later" shows mount.data leaf_that_is_inlined
	rm -r .debug

	unshare -m sh -c "mount -t tmpfs none $scratch/hole && cp $scratch/static $scratch/hole/spin && exec $scratch/hole/spin 60" >up &
	running=$!
	attach dwarf.data --call-graph dwarf
	check "… and its stacks are unwound" shows dwarf.data 'main+'
	stop

	cp static root/spin
	chroot root /spin 60 >up &
	running=$!
	attach chroot.data -g
	check "a program with another root directory" shows chroot.data leaf_that_is_inlined
	stop
	cp spin.c named_spin.c && gcc -static -g -O2 -fno-omit-frame-pointer -Wl,--build-id=0x5eed -o root/named named_spin.c
	timeout 60 "$TALLY" record -e cpu-clock -F 1000 -g -o rooted.data chroot root /named >out 2>&1
	"$TALLY" report --stdio -i rooted.data >out 2>&1
	check "… has names after its end, from the file that the recorder had open" grep -q "named  *hidden_in_the_middle" out
	# The kernel reports the path as the program sees it.
	record chroot_exec.data chroot root /spin
	static_id=$(readelf -n static | sed -n 's/.*Build ID: //p')
	mkdir -p ".debug/.build-id/${static_id:0:2}/${static_id:2}" && cp static ".debug/.build-id/${static_id:0:2}/${static_id:2}/elf"
	names chroot_exec.data
	check "… also if it is started with that root" grep -q "leaf_that_is_inlined" out # the process has ended: by its build-id

	cp static removed
	./removed 60 >up &
	running=$!
	tries=600; while [ ! -s up ] && [ $((tries -= 1)) -gt 0 ]; do sleep 0.05; done
	rm removed
	attach removed.data -g
	check "a removed program has names while it runs" shows removed.data leaf_that_is_inlined
	cp hole/spin removed
	check "… also if another file took its path" shows removed.data leaf_that_is_inlined
	stop
else
	skip "files in a container have names while it runs" "needs root, and namespaces"
fi

# ---- code over other code ---------------------------------------------------------------------------------------------
# The runtime writes a line at its end about code at the address of the former hot loop.
if [ "$(uname -m)" = x86_64 ]; then
	cat >over.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static const unsigned char LOOP[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 }; /* dec %rdi; jnz; ret */
int main(void)
{
	char path[64];
	unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(code, LOOP, sizeof(LOOP));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	FILE *map = fopen(path, "w");
	fprintf(map, "%lx 40 hot_loop\n", (unsigned long)code);
	fflush(map);
	for (int i = 0; i < 20; i++)
		((void (*)(long))(void *)code)(100000000);
	fprintf(map, "%lx 40 at_the_end\n", (unsigned long)code);
	fclose(map);
	return 0;
}
C
	gcc -O1 over.c -o over && timeout 60 "$TALLY" record -q -e cpu-clock -F 500 -o over.data ./over >out 2>&1
	"$TALLY" report --stdio -i over.data >out 2>&1
	rm -f "/tmp/$("$TALLY" script -F ip,sym,dso -i over.data 2>/dev/null | grep -oEm 1 'perf-[0-9]+\.map')"
	check "the last lines of a perf map don't rename functions that were hot before" eval 'grep -q " hot_loop" out && ! grep -q at_the_end out'
else
	skip "the last lines of a perf map don't rename functions that were hot before" "its code is x86-64's"
fi

# ---- the kernel's file ------------------------------------------------------------------------------------------------

# make_vmlinux FILE BUILD-ID: the running kernel's functions at other addresses, each on a line of its own.
make_vmlinux() {
	python3 - >vmlinux.s <<'END' &&
base = last = None
seen = {'_text'}
print('\t.globl _text\n\t.text')
for line in sorted((l for l in open('/proc/kallsyms') if '[' not in l), key=lambda l: int(l.split()[0], 16)):
    address, kind, name = line.split()
    address = int(address, 16)
    if name == '_text':
        base = address
        print('_text:')
    if base is None or kind not in 'tT' or address == last or address < base or '.' in name or name in seen:
        continue
    last = address
    seen.add(name)
    print(f'\t.org {address - base:#x}\n\t.type {name}, @function\n{name}: nop')
END
	as -g -o vmlinux.o vmlinux.s 2>out && ld -Ttext=0xffffffff81000000 --build-id="0x$2" -e _text -o "$1" vmlinux.o 2>/dev/null
}

release=$(uname -r)
kernel_id=$(timeout 20 perf buildid-list -k 2>/dev/null)
syscalls() { timeout 60 "$TALLY" record --no-pack -e cpu-clock:k -F 4000 -g -o "$1" -- dd if=/dev/zero of=/dev/null bs=512 count=300000 >out 2>&1; }
if have perf && have python3 && have as && [ "$(id -u)" = 0 ] && [ -n "$kernel_id" ] && syscalls kernel.data &&
	make_vmlinux vmlinux "$kernel_id" 2>out; then
	names kernel.data && cp out without
	check "kernel functions have names without a vmlinux" grep -q 'do_syscall_64+' without
	check "--vmlinux: the names are perf's" same_as_perf kernel.data -k vmlinux -- --vmlinux vmlinux
	check "--vmlinux: the names are those of kallsyms" shows kernel.data 'do_syscall_64+.*(\[kernel.kallsyms\])' --vmlinux vmlinux

	# One function with a function inlined into it, in its place: all of its addresses show the
	# same.
	text=$(awk '$3 == "_text" { print $1 }' /proc/kallsyms) hot=$(awk '$3 == "do_syscall_64" { print $1 }' /proc/kallsyms)
	cat >hot.c <<'END'
__attribute__((section(".text.first"))) void _text(void) { }
static inline __attribute__((always_inline)) void inlined_in_the_kernel(void) { __asm__ volatile(".skip 256, 0x90"); }
__attribute__((section(".hot"))) void do_syscall_64(void) { inlined_in_the_kernel(); }
END
	hot=$(printf '%#x' $((0xffffffff81000000 + 0x$hot - 0x$text)))
	make_hot() { gcc -g -O2 -fno-pie -mcmodel=kernel -nostdlib -static -Wl,-Ttext=0xffffffff81000000,--section-start=.hot=$hot,--build-id=0x$2,-e_text -o "$1" hot.c; }
	mkdir -p kernel_root/usr/lib/debug/boot && make_hot "kernel_root/usr/lib/debug/boot/vmlinux-$release" "$kernel_id" >out 2>&1
	names kernel.data --symfs kernel_root && cp out ours
	check "vmlinux is found by release and by build-id" grep -q '	 *[0-9a-f]* inlined_in_the_kernel+.*(inlined)' out
	# perf 6.1 shows inlined functions only for programs: it has the function itself as often.
	timeout 100 perf script -F ip,sym -i kernel.data -k "kernel_root/usr/lib/debug/boot/vmlinux-$release" 2>/dev/null >theirs
	echo "$(grep -c inlined_in_the_kernel ours) frames, perf has $(grep -c do_syscall_64 theirs)" >out
	check "… with the same inlined functions as perf" test "$(grep -c inlined_in_the_kernel ours)" = "$(grep -c do_syscall_64 theirs)"
	check "… --no-inline leaves inlined functions out" misses kernel.data inlined_in_the_kernel --symfs kernel_root --no-inline
	timeout 60 "$TALLY" annotate --stdio --no-source -i kernel.data --symfs kernel_root do_syscall_64 >out 2>&1
	if head -c 1 /proc/kcore >one 2>&1 || grep -q libLLVM out; then
		skip "annotate shows the code in vmlinux" "there is /proc/kcore, or no libLLVM"
	else
		check "annotate shows the code in vmlinux" test "$(grep -c ' nop$' out)" = 256
		timeout 60 "$TALLY" annotate --stdio -i kernel.data do_syscall_64 >out 2>&1
		check "… and without it says what is missing, and where to get it" grep -q 'hint: name it with --vmlinux FILE' out
	fi
	if [ -f server.py ]; then
		mkdir -p "served/buildid/$kernel_id" && cp "kernel_root/usr/lib/debug/boot/vmlinux-$release" "served/buildid/$kernel_id/debuginfo"
		rm -f port.ready; python3 server.py 2>/dev/null & running=$!
		tries=600; while [ ! -s port.ready ] && [ $((tries -= 1)) -gt 0 ]; do sleep 0.05; done
		DEBUGINFOD_CACHE_PATH=$scratch/fetched_kernel timeout 60 "$TALLY" fold -i kernel.data "--debuginfod=http://127.0.0.1:$(cat port.ready)" >out 2>err
		check "--debuginfod: vmlinux is fetched" grep -q inlined_in_the_kernel out
		kill $running; wait $running 2>/dev/null; running=
	else
		skip "--debuginfod: vmlinux is fetched" "needs python3 and libdebuginfod1"
	fi
	make_hot "kernel_root/usr/lib/debug/boot/vmlinux-$release" 0123456789
	check "… and the vmlinux of another build is not used" misses kernel.data inlined_in_the_kernel --symfs kernel_root

	make_vmlinux other 0123456789 && "$TALLY" report --stdio -i kernel.data --vmlinux other >out 2>&1
	check "… unless the user names it; then there is a warning" grep -q 'the given vmlinux is another build' out
	head -c 4096 /dev/urandom >vmlinuz
	"$TALLY" report --stdio -i kernel.data --vmlinux vmlinuz >out 2>&1
	check "a compressed kernel is refused" grep -q 'is not an ELF file (use the uncompressed kernel' out

	cp /proc/kallsyms kallsyms
	sed 's/ do_syscall_64$/ renamed_function/' kallsyms >renamed
	check "--kallsyms: names come from a copy" shows kernel.data 'renamed_function+' --kallsyms renamed
	check "… as in perf" same_as_perf kernel.data --kallsyms renamed -- --kallsyms renamed
	check "… and the copy is not stored in the cache" misses kernel.data 'renamed_function'
else
	skip "kernel functions have names from vmlinux" "needs root, perf, python3, as, and kallsyms"
fi

echo "1..$number"
