#!/bin/bash
# Perf maps are kept while their processes are recorded: also those that a process deletes or
# replaces, and those that disappear with their file system.  TAP; $TALLY is the binary, $MADE_CODE
# the program of made_code.c.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export HOME=$scratch

record() { timeout 60 "$TALLY" record -e cpu-clock -F 1000 -o "$@" >out 2>&1 </dev/null; }
report() { timeout 60 "$TALLY" report --stdio --percent-limit 0 "$1" >out 2>&1; }

cp "$MADE_CODE" made_code
timeout 30 ./made_code >out 2>&1
[ $? != 77 ] || skip_all "it can't be made here: memory that is written and executed, or this machine's code"
# Runs long enough for a recorder that starts late.
record first.data -- sh -c 'echo $$ >pid; exec ./made_code 4' || skip_all "tally can't record here: $(head -c 100 out | tr '\n#' '  ')"
check "the map is gone" test ! -e "/tmp/perf-$(cat pid).map"
report first.data
check "the recording has the names of the perf map" grep -Eq 'perf\.map +made_later' out
check "and the names that the map replaced while recording" grep -Eq 'perf\.map +made_first' out
record bare.data --no-pack -- ./made_code
report bare.data
check "without the recording's own names, none are known" eval '! grep -Eq "made_(first|later)" out'

./made_code 4 stop &
pid=$!
tries=200; until grep -q '^State:.T' "/proc/$pid/status" || [ $((tries -= 1)) = 0 ]; do sleep 0.05; done
sleep 1.2 # its map is older than the recording
record attached.data -p "$pid" -- sh -c 'kill -CONT "$1"; while kill -0 "$1" 2>/dev/null; do sleep 0.1; done' joined "$pid"
wait "$pid"
report attached.data
check "names of a process that is attached to (-p)" eval 'grep -q made_first out && grep -q made_later out'

contained() { unshare -m -p -f sh -c 'mount -t tmpfs none /tmp && mount -t proc proc /proc && exec "$@"' contained "$@"; }
mkdir -p "/var/tmp/tally-$$" && cp made_code "/var/tmp/tally-$$/"
trap 'rm -rf "$scratch" "/var/tmp/tally-$$"' EXIT
if contained true >/dev/null 2>&1; then
	cp made_code "/var/tmp/tally-$$/keeps"
	record contained.data -- unshare -m -p -f sh -c 'mount -t tmpfs none /tmp && mount -t proc proc /proc &&
		cd "$1" && ./keeps 4 keep' contained "/var/tmp/tally-$$"
	report contained.data
	check "names of a container that has ended, in its /tmp and by its own pid" eval 'grep -q made_first out && grep -q made_later out'
else
	skip "names of a container that has ended, in its /tmp and by its own pid" "no namespaces for this user"
fi
# Maps that earlier processes with the next pids left behind, as runtimes do.  They are in a /tmp of
# our own, since tests that run at the same time look for maps too.
here=/var/tmp/tally-$$
cp "$TALLY" "$here/tally"
cat >"$here/silent.c" <<'EOF'
#include <string.h>
#include <sys/mman.h>
int main(void)
{
	unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(code, "\x48\xff\xcf\x75\xfb\xc3", 6);
	((void (*)(unsigned long))code)(2000000000);
	return 0;
}
EOF
cat >"$here/stale" <<'EOF'
mount -t tmpfs none /tmp && cd "$1" || exit
last=$(cut -d' ' -f5 /proc/loadavg)
for ((i = last + 1; i < last + 2000; i++)); do
	echo "0 7fffffffffff made_by_another" >"/tmp/perf-$i.map"
done
sleep 1.2 # starts and changes are told apart by a second
timeout 60 ./tally record -e cpu-clock -F 1000 -o stale.data -- unshare -m -p -f sh -c 'mount -t tmpfs none /tmp &&
	mount -t proc proc /proc && ./keeps 4 keep'
timeout 60 ./tally record -e cpu-clock -F 1000 -o silent.data -- sh -c 'echo $$ >pid; exec ./silent'
echo "0 7fffffffffff made_by_a_later_one" >"/tmp/perf-$(cat pid).map"
timeout 60 ./tally report --stdio silent.data >later 2>&1
EOF
if [ "$(uname -m)" = x86_64 ] && contained true >/dev/null 2>&1 && cc -O1 "$here/silent.c" -o "$here/silent" 2>/dev/null; then
	unshare -m bash "$here/stale" "$here" >out 2>&1 </dev/null
	report "$here/stale.data"
	check "a map that an earlier process with that pid left is not used" eval 'grep -q made_first out && ! grep -q made_by_another out'
	report "$here/silent.data"
	check "nor is one used for a process that writes none" eval 'grep -Fq "[JIT]" out && ! grep -q made_by_another out'
	cp "$here/later" err
	check "a view does not use the map of a later process" eval 'grep -Fq "[JIT]" "$here/later" && ! grep -q made_by "$here/later"'
else
	skip "a map that an earlier process with that pid left is not used" "no namespaces for this user, or not x86-64's code"
	skip "nor is one used for a process that writes none" "no namespaces for this user, or not x86-64's code"
	skip "a view does not use the map of a later process" "no namespaces for this user, or not x86-64's code"
fi
echo "1..$number"
