#!/bin/bash
# A name comes from the very file that was mapped, or not at all: paths that several files had, files
# that are replaced, removed or written anew while they are recorded or afterwards, files of other
# machines.  TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export HOME=$scratch

have cc || skip_all "there is no C compiler"
# Two builds of one program and of one library: other names, at other addresses.  Also without
# build-ids.
cat >spin.c <<'C'
#include <stdlib.h>
#include <time.h>
volatile unsigned long sink;
static double now(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
#ifdef SHIFTED
__attribute__((noinline)) int padding(int n) { return n * sink + 3 * n % 7; }
#endif
__attribute__((noinline)) void LEAF(long n) { for (long i = 0; i < n; i++) sink += i; }
__attribute__((noinline)) void work(double s) { for (double end = now() + s; now() < end;) LEAF(100000); __asm__ volatile(""); }
#ifdef PROGRAM
int main(int count, char **words) { work(count > 1 ? atof(words[1]) : 0.1); return 0; }
#endif
C
cat >host.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) /* library, seconds, then perhaps a command that replaces the library, and it is used again */
{
	for (int i = 1; i + 1 < count; i += 3) {
		void *library = dlopen(words[i], RTLD_NOW);
		if (!library)
			return puts(dlerror()), 1;
		((void (*)(double))dlsym(library, "work"))(atof(words[i + 1]));
		dlclose(library);
		if (i + 2 < count && system(words[i + 2]))
			return 1;
	}
	return 0;
}
C
build() { cc -O1 -g -fno-inline -DLEAF="$2" "${@:3}" -o "$1" spin.c 2>err || skip_all "the compiler refuses"; }
build A right_a -DPROGRAM && build B right_b -DPROGRAM -DSHIFTED
build nA right_a -DPROGRAM -Wl,--build-id=none && build nB right_b -DPROGRAM -DSHIFTED -Wl,--build-id=none
build libA.so right_a -shared -fPIC && build libB.so right_b -shared -fPIC -DSHIFTED
build libnA.so right_a -shared -fPIC -Wl,--build-id=none && build libnB.so right_b -shared -fPIC -DSHIFTED -Wl,--build-id=none
cc -O1 -o host host.c -ldl 2>err || skip_all "the compiler refuses"

record() { timeout 60 "$TALLY" record -q -e cpu-clock:u -F 997 -o r.data "$@" >out 2>&1; }
fold() { timeout 60 "$TALLY" fold -i "${1:-r.data}" >out 2>err; }
# NAME…: samples are in these functions and in no other of ours.
only() {
	local name
	for name; do grep -q ";$name " out || return 1; done
	! grep -oE 'right_[ab]|padding|\[[a-z.]*prog\]|\[lib[a-z.]*\]' out | grep -vxF "$(printf '%s\n' "$@")" | grep -q .
}
timeout 60 "$TALLY" record -q -e cpu-clock:u -o r.data -- ./A 0.1 >out 2>&1 || skip_all "perf events are refused"

# ---- replaced, removed, written anew while it is recorded ---------------------------------------------------
for n in '' n; do
	with="${n:+ without build-id}"
	cp ${n}A prog && record -- sh -c "./prog 0.2; rm prog" && fold
	check "a program$with that was removed before the end has its names" only right_a
	cp ${n}A prog && record -- sh -c "./prog 0.4 & sleep 0.2; cp ${n}B new && mv new prog; wait" && fold
	check "a program$with that was replaced while it ran has the names of its own file" only right_a
	cp ${n}A prog && record -- sh -c "./prog; rm prog; cp ${n}B prog; ./prog" && fold
	check "two builds$with at one path, one after the other: each has its own names" only right_a right_b
	cp lib${n}A.so lib.so && record -- ./host ./lib.so 0.2 "cp lib${n}B.so new && mv new lib.so" ./lib.so 0.2 && fold
	check "a library$with that is replaced while it is recorded: old and new have their names" only right_a right_b
	cp lib${n}A.so lib.so && record -- ./host ./lib.so 0.2 "rm lib.so" && fold
	check "a library$with that is removed while it is recorded has its names" only right_a
done
cp A prog && record -- sh -c "./prog; cat B >prog; ./prog" && fold
check "a program whose file is written anew between two runs: each has its own names" only right_a right_b
cp nA prog && record -- sh -c "./prog; cat nB >prog; ./prog" && fold
check "… without build-ids no name is wrong" eval '! { grep -q "right_a" out && ! grep -q right_b out; } && ! grep -q padding out'
cp libA.so lib.so && touch -d 2020-01-01 lib.so && record -- ./host ./lib.so 0.2 "cat libB.so >lib.so" && fold
check "a library that is written anew in place gives no wrong names" eval '! grep -qE "right_b|padding" out'
cp A prog && record -p "$(./prog 0.6 >out & echo $!; sleep 0.1; rm prog)" --duration 0.2 && fold
check "a program that was removed before the recording began has its names" only right_a

# ---- replaced after the recording ---------------------------------------------------------------------------
for n in '' n; do
	with="${n:+ without build-id}"
	cp ${n}A prog && record --no-pack -- ./prog && cp ${n}B new && mv new prog && fold
	check "a program$with that was replaced after the recording has no names" eval '! grep -qE "right|padding" out'
	check "… and one line says why" eval '[ "$(grep -c "prog is not the recorded file (it has another" err)" = 1 ]'
	timeout 60 "$TALLY" annotate --stdio -i r.data right_b >out 2>&1
	check "… annotate doesn't show its code" eval '! grep -q "sink += i" out'
done
cp nA prog && record --no-pack -- ./prog && cat nB >prog && fold
check "a program without build-id that was written anew in place has no names" eval '! grep -qE "right|padding" out && grep -q "was written later" err'
cp nA prog && record --no-pack -- ./prog && fold
check "a program without build-id that is still there has its names" only right_a
mkdir -p "symfs$PWD" && cp nA "symfs$PWD/prog" && cp nB new && mv new prog && timeout 60 "$TALLY" fold --symfs symfs -i r.data >out 2>err
check "--symfs finds the recorded file" only right_a

# ---- before and after ---------------------------------------------------------------------------------------
cp A prog && record -- ./prog && mv r.data before.data && cp B new && mv new prog && record -- ./prog
timeout 60 "$TALLY" diff before.data r.data >out 2>err
check "diff of two builds at one path has the names of both" eval 'grep -q right_a out && grep -q right_b out && ! grep -q padding out'

# ---- what perf reads ----------------------------------------------------------------------------------------
if have perf; then
	cp A prog && record -- sh -c "./prog; rm prog; cp B prog; ./prog"
	perf script -i r.data -F comm,ip,sym 2>/dev/null >out
	check "perf reads the recording, and gives the build that is gone no names" eval 'grep -q right_b out && ! grep -q padding out'
	cp nA prog && perf record -q -N -e cpu-clock:u -F 997 -o p.data ./prog 0.3 >out 2>&1 & perf=$!
	record -- ./A 0.3
	wait "$perf" && perf script -i p.data -F ip,sym >out 2>err && grep -q right_a out
	check "a recording that perf makes meanwhile is not spoilt"
	cp nA prog && perf record --buildid-mmap -q -N -e cpu-clock:u -o p.data ./B 0.3 >out 2>&1 & perf=$!
	record -- ./prog 0.3 && fold
	check "… nor ours, when perf records build-ids" only right_a
	wait "$perf"
	cp nA prog && perf record -q -B -N -e cpu-clock:u -F 997 -o r.data ./prog >out 2>&1 && fold
	check "perf's recording without build-ids: a file that is still there has names" only right_a
	cp nB new && mv new prog && fold
	check "… and none when another file is there" eval '! grep -qE "right|padding" out'
	cp A prog && perf record -q -e cpu-clock:u -F 997 -o r.data ./prog >out 2>&1 && cp B new && mv new prog && fold
	check "perf's recording with build-ids: a replaced file has the names of perf's copy" only right_a
	rm -rf .debug
	cp A prog && perf record --buildid-mmap -N -q -e cpu-clock:u -F 997 -o r.data ./prog >out 2>&1 && fold
	check "perf's recording with build-ids in its mappings has names" only right_a
	cp B new && mv new prog && fold
	check "… and none when another build is there" eval '! grep -qE "right|padding" out'
else
	skip "perf reads and writes recordings" "perf is not installed"
fi

# ---- recordings of others -----------------------------------------------------------------------------------
if have python3; then
	made() { "$here/make_recording.py" "$1" r.data >err 2>&1 && timeout 60 "$TALLY" script --no-inline --stdio -F comm,ip,sym,dso -i r.data >out 2>err; }
	named() { ! grep -q "\[unknown\]" out && grep -q ' (/.*)' out; }
	check "a library of the recorded inode has names" eval 'made library_of_this_machine && named'
	check "… and one without any identity, if the recorded code is where its own is" eval 'made library_without_inode && named'
	check "… but not if it isn't, and a line says so" eval 'made library_of_other_size && ! named && grep -q "is not the recorded file (it has its code elsewhere)" err'
	check "a library of another machine, without build-id, has no names" eval 'made library_of_another_machine && ! named && grep -q "(it has another inode)" err'
	check "… nor has one of another inode of the same device" eval 'made library_of_another_inode && ! named && grep -q "(it has another inode)" err'
	check "… unless the user says that its folder has the recorded files" eval 'timeout 60 "$TALLY" script --symfs / --no-inline --stdio -F comm,ip,sym,dso -i r.data >out 2>err; named'
	check "code of guests has none of the host's names, nor replaces the host's build-ids" eval 'made guests && grep -qE "\[unknown\] \(\[guest\.kernel\]\)" out &&
		grep -qE "\[unknown\] \(\[guest\]\)" out && grep -vE "guest|^mapper|^$" out >host && [ "$(grep -c "(/" host)" = 1 ] && ! grep -q unknown host'
	check "… and fold has a function for each, and one line says what to do" eval 'fold && grep -q "^mapper;\[guest\] 1$" out && grep -q "^mapper;\[guest.kernel\] 1$" out &&
		grep -q "2 samples are in guests" err'
	check "a vdso that was recorded with its address as its offset has names" eval 'made old_vdso && grep -qE "(__vdso|__kernel)_.* .\[vdso\]" out'
else
	skip "recordings of others" "needs python3"
fi

# ---- one path in two mount namespaces, and another root -----------------------------------------------------
if [ "$(id -u)" = 0 ] && unshare -m true 2>err && mkdir m && unshare -m mount -t tmpfs none m 2>err; then
	for n in '' n; do
		with="${n:+ without build-ids}"
		start() {
			for x in A B; do unshare -m sh -c "mount -t tmpfs none m && cp $n$x m/prog && exec ./m/prog $1" & eval "pid_$x=$!"; done
			until [ "$(cat "/proc/$pid_A/comm" "/proc/$pid_B/comm" | grep -c '^prog$')" = 2 ]; do sleep 0.01; done
		}
		# Beside other load, one of them may not run in that time.
		own() { grep -qE "^prog ($pid_A right_a|$pid_B right_b)$" out && ! grep -qE "^prog ($pid_A right_b|$pid_B right_a|.* padding)$" out; }
		functions() { timeout 60 "$TALLY" script --no-inline --stdio -F comm,pid,ip,sym -i r.data 2>err | awk '$1 == "prog" { pid = $2 } /^\t/ && $2 ~ /^(right_[ab]|padding)$/ { print "prog", pid, $2 }' | sort -u >out; }
		start 0.4; record -p "$pid_A,$pid_B" --duration 0.2; wait; functions
		check "two namespaces, one path$with: each has the names of its own file" own
		start 0.6; record --no-pack -p "$pid_A,$pid_B" --duration 0.2; functions; wait
		check "… also without the recording's own names, while they live" own
		functions
		check "… and afterwards no name is wrong" eval '! grep -q . out'
		start 0.4; record -a --duration 0.2; wait; functions
		check "… also with -a" own
	done
	mkdir -p "root$PWD" && cc -static -O1 -g -DPROGRAM -DLEAF=right_a -o "root$PWD/prog" spin.c 2>err &&
		cp B prog && record -- chroot root "$PWD/prog" 0.2 && fold
	check "a program in another root has its own names, not those of the file that we see" only right_a
else
	skip "mount namespaces" "not allowed"
fi
done_testing
