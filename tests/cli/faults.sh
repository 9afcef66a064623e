#!/bin/bash
# What tally does where something is missing or too small: limits, signals, mounts, time.  A command
# works, or one line says why not and the exit status is not 0; what was recorded is readable.
# `faults.sh full` tries more limits.  TAP; $TALLY is the binary, $WORKLOAD the program of record_workload.c, $CROWD of crowd.c, $CLOCK_JUMPS
# the library of clock_jumps.c.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
chmod 755 "$scratch" && cp "$TALLY" "$scratch/tally" && cp "$WORKLOAD" "$scratch/work" && cp "$CROWD" "$scratch/crowd" || exit 1
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch XDG_CACHE_HOME=$scratch/cache PERF_CONFIG=/dev/null PAGER=cat NO_COLOR=1 TMPDIR=$scratch
tally=$scratch/tally
is_sanitized() { grep -q __asan_report_load tally; }

if ! ./tally record -q -g -e cpu-clock -F 500 -o in.data -- ./work threads 2>out; then
	skip_all "nothing can be recorded: $(head -1 out)"
fi
cp in.data other.data
./tally stat -j -r 3 -e task-clock -o counts.json true 2>out
printf 'exit 0\n' >program.sh

# Each command, as its words.  NEW is a new output.
commands="record -q -e cpu-clock -o NEW -- true
record -q -g -e cpu-clock -o NEW -- $scratch/work spin 0.02
stat -e task-clock true
stat -e task-clock -o NEW true
report --stdio -i in.data
report -j -g -i in.data
script -i in.data
fold -i in.data
fold -i in.data -o NEW
flamegraph -i in.data -o NEW
annotate --stdio -i in.data
annotate -i in.data -o NEW
diff in.data other.data
export -f pprof -i in.data -o NEW
timeline -i in.data
timeline -i in.data -o NEW
pack -i in.data -o NEW
compare counts.json counts.json
top --stdio --duration 0.2 -e cpu-clock -p $$
doctor
list
sim $here/../../examples/stacks.sim -o NEW
cache
completion bash
help"

# Puts a new output's name into a line of the commands.
fill_in() {
	line=${line//NEW/$scratch/new.out}
	case $line in *flamegraph*) line=${line/new.out/new.out.svg} ;; *annotate*-o*) line=${line/new.out/new.out.html} ;; esac
}
# Prints the output of a command, and its file, if both are the same each time.
repeatable() { # LINE
	case $1 in
	flamegraph* | report* | script* | fold* | annotate* | diff* | timeline* | compare* | completion* | help*)
		cat printed "$scratch"/new.out* 2>/dev/null
		;;
	esac
}
expect() {
	local line
	while read -r line; do
		rm -rf new.out* && fill_in
		# shellcheck disable=SC2086 # the words of the line
		case $line in record* | top* | stat* | sim*) ;; *) "$tally" $line >printed 2>/dev/null </dev/null ;; esac
		repeatable "$line" >"expected.$(md5sum <<<"$line" | cut -c 1-32)"
	done <<<"$commands"
}

# Runs COMMAND with the words of each of tally's commands behind it.  A run ends by itself with status 0, 1 or 2
# (126: record's command was not started).  If it is 0, the output is whole; if not, standard error says why, once.
faulty() { # PATTERN COMMAND…
	local pattern=$1 line status bad=0 errors said
	shift
	while read -r line; do
		rm -rf new.out* && fill_in
		# shellcheck disable=SC2086 # the words of the line
		said=$(timeout 100 "$@" "$tally" $line 2>&1 >printed </dev/null)
		status=$?
		errors=$(grep -v ': warning: ' <<<"$said" | grep -c '^tally [a-z]*: ')
		case $status in
		0)
			repeatable "$line" >got
			cmp -s got "expected.$(md5sum <<<"$line" | cut -c 1-32)" && continue
			grep -qiE "$pattern" got && continue # a view says itself what it lacks
			;;
		1 | 2 | 126) grep -qiE "$pattern" <<<"$said" && [ "$errors" -le 1 ] && continue ;;
		esac
		bad=1
		{ echo "tally $line: status $status, $errors error lines"; head -n 5 <<<"$said"; } >>out
	done <<<"$commands"
	return $bad
}
run() { expected=$1; shift; timeout 100 "$@" >out 2>&1 </dev/null; status=$?; [ "$status" = "$expected" ] || { echo "status $status" >>out; false; }; }
has() { grep -qF -- "$1" out; }
samples() { ./tally script -i "$1" 2>>out | grep -c '^[^	].*[0-9]: '; }
begun() { until [ -s "$1" ] && ! kill -0 "$2" 2>&-; do kill -0 "$2" 2>&- || return 1; [ -s "$1" ] && return; sleep 0.02; done; }

expect

# --- limits ------------------------------------------------------------------------------------------------------
is_full=no
stacks="64" blocks="1" descriptors="5 12 24 48 64" megabytes="16 24 32"
[ "${1-}" != full ] || { is_full=yes stacks="32 64 128 256 1024" blocks="0 1 8 64" descriptors=$(seq 3 40) megabytes=$(seq 10 2 60); }
for kb in $stacks; do
	: >out
	faulty 'stack' bash -c "ulimit -s $kb && exec \"\$@\"" -
	check "a stack of $kb KB is enough, or a message says that it is not"
done
for kb in $blocks; do
	: >out
	faulty 'file too large' bash -c "ulimit -f $kb && exec \"\$@\"" -
	check "a limit of $kb KB for files is reported"
done
run 1 bash -c 'ulimit -f 40 && exec ./tally record -e cpu-clock -F 5000 -z 0 -o limited -- ./work threads 0.5' && grep -qi 'file too large' out && has 'readable in limited' &&
	[ "$(samples limited)" -gt 20 ]
check "a recorder at the limit of a file's size keeps what it wrote"
rm -f limited*
run 153 ./tally record -q -e cpu-clock -o limited -- bash -c 'ulimit -f 0; echo >long; kill -XFSZ $$'
check "… and its command has the usual limit"
for count in $descriptors; do
	: >out
	faulty 'descriptors|open files' bash -c "ulimit -n $count && exec \"\$@\"" -
	check "$count descriptors are enough, or a message says that they are not"
done
if is_sanitized; then
	skip "little memory is enough, or a message says that it is not" "a sanitizer needs terabytes of address space"
else
	for mb in $megabytes; do
		: >out
		faulty '[Mm]emory|allocate|map segment|not enough|shared libraries' bash -c "ulimit -v $((mb << 10)) && exec \"\$@\"" -
		check "$mb MB of memory are enough, or a message says that they are not"
	done
fi

# A cgroup's limit: the kernel kills the recorder.  Version 1 or 2, in this process's own cgroup.
memory_cgroup() {
	local folder
	for folder in /sys/fs/cgroup/memory /sys/fs/cgroup; do
		[ "$folder" = /sys/fs/cgroup ] && ! grep -qw memory $folder/cgroup.subtree_control 2>/dev/null && continue
		cgroup=$folder/tally-test-$$
		mkdir "$cgroup" 2>/dev/null || continue
		{ echo $((6 << 20)) >"$cgroup/memory.limit_in_bytes" || echo $((6 << 20)) >"$cgroup/memory.max"; } 2>/dev/null && return
		rmdir "$cgroup"
	done
	cgroup=
	return 1
}
if memory_cgroup; then
	trap 'rmdir "$cgroup"; rm -rf "$scratch"' EXIT
	rm -f small*
	run 137 bash -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' - "$cgroup" ./tally record -z 0 -e cpu-clock -F 20000 -m 16M -g -o small -- \
		bash -c 'echo $$ >"'"${cgroup%/*}"'/cgroup.procs"; ulimit -t 3; while :; do :; done' || has 'emory'
	./tally script -i small >/dev/null 2>>out || [ ! -e small ]
	check "a recorder that a cgroup's limit of memory ends leaves a readable file, or none"
else
	skip "a recorder that a cgroup's limit of memory ends leaves a readable file, or none" "no cgroup of memory can be made"
fi

unprivileged=(setpriv --reuid=$((20000 + $$ % 40000)) --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)
if [ "$(id -u)" = 0 ]; then
	mkdir -m 777 open
	run 0 "${unprivileged[@]}" bash -c 'ulimit -l 0; exec ./tally record -e cpu-clock:u -o open/locked -- ./work threads' || { has 'emory' && has hint:; }
	check "without locked memory, the kernel's own budget for rings is enough, or a message says so"
fi

# --- what is not there -------------------------------------------------------------------------------------------
# without WHAT…: a shell script that hides these folders, then executes its arguments.
cat >without.sh <<'H'
mkdir -p "$SCRATCH/empty" || exit 77
while [ "$1" != -- ]; do
	mount -t tmpfs -o mode=755 tmpfs "$1" 2>/dev/null || exit 77
	shift
done
shift
exec "$@"
H
export SCRATCH=$scratch
without=(unshare --mount --propagation private bash without.sh)
if [ "$(id -u)" = 0 ] && "${without[@]}" /proc -- true 2>/dev/null; then
	for folders in /proc /sys "/proc /sys" /dev; do
		: >out
		# shellcheck disable=SC2086 # several folders
		faulty "${folders// /|}|/dev/null" "${without[@]}" $folders --
		check "without $folders all commands work, or one line says why not"
	done
	if is_sanitized; then
		skip "without /proc outputs are written" "a sanitizer reads its options from /proc, and looks for leaks there"
	else
		rm -f hidden* && run 0 "${without[@]}" /proc -- ./tally record -g -e cpu-clock -o hidden -- ./work spin && ! has warning &&
			./tally report --stdio -i hidden 2>&1 | grep -q inner
		check "without /proc a recording has its names"
		for output in "fold -i in.data -o new.txt" "annotate -i in.data -o new.html" "pack -i in.data -o new.data" "stat -e task-clock -o new.stat true"; do
			rm -f new.*
			# shellcheck disable=SC2086
			run 0 "${without[@]}" /proc -- ./tally $output && [ -s new.* ] && [ "$(echo .tally*)" = '.tally*' ]
			check "without /proc, ${output%% *} -o writes its file"
		done
	fi
	# The root is read-only, apart from this folder.
	cat >read_only.sh <<'H'
mount --bind . "$PWD" && mount -o remount,bind,ro / || exit 77
cd . && exec "$@"
H
	: >out
	faulty 'read-only' unshare --mount --propagation private bash read_only.sh
	check "on a read-only root all commands write where they can"
	run 1 unshare --mount --propagation private bash read_only.sh ./tally record -e cpu-clock -o /tally-new.data true && grep -qi 'read-only' out && has 'hint: name another file'
	check "… and record says that it can't, and how to"
else
	skip "without /proc and /sys all commands work, or one line says why not" "needs root that may mount"
fi
: >out
faulty 'nothing' env -u HOME -u XDG_CACHE_HOME -u PATH -u TMPDIR -u TERM
check "without HOME and PATH all commands work"
mkdir gone && cp in.data counts.json other.data gone/
cat >removed.sh <<'H'
cd "$SCRATCH/gone" && mv "$SCRATCH/gone" "$SCRATCH/going" && rm -r "$SCRATCH/going" || exit 77
exec "$@"
H
here_commands=$commands
commands=${commands//in.data/$scratch/in.data} commands=${commands//other.data/$scratch/other.data} commands=${commands//counts.json/$scratch/counts.json}
expect
: >out
faulty 'nothing' bash -c 'mkdir -p "$SCRATCH/gone"; exec bash "$SCRATCH/removed.sh" "$@"' -
check "in a folder that was removed all commands work"
mkdir -p gone
run 1 bash removed.sh "$tally" record -e cpu-clock true && has "can't be written: No such file or directory" && has 'hint: name another file'
check "… and record says that its default output can't be there"
commands=$here_commands

# --- time --------------------------------------------------------------------------------------------------------
if is_sanitized; then
	skip "a clock that jumps changes nothing" "the library can't be preloaded"
else
	jumps() { LD_PRELOAD=$CLOCK_JUMPS "$@"; }
	rm -rf jumping* cache
	jumps run 0 ./tally record -g -e cpu-clock -o jumping -- env -u LD_PRELOAD ./work threads && ! has warning && [ "$(samples jumping)" -gt 20 ] &&
		./tally report --stdio -i jumping 2>&1 | grep -q inner
	check "the clock jumps: a recording is whole"
	jumps run 0 ./tally record --timestamp-filename --switch-output=100ms -e cpu-clock -o jumping.many -- env -u LD_PRELOAD ./work spin 0.5 &&
		[ "$(cat jumping.many.* | wc -c)" -gt 100 ] && [ "$(ls jumping.many.* | wc -l)" -ge 3 ]
	check "… and switched files have different names"
	for line in "report --stdio -i in.data" "script -i in.data" "fold -i in.data" "timeline -i in.data"; do
		# shellcheck disable=SC2086
		./tally $line >expected 2>&1; jumps ./tally $line >out 2>&1 && cmp expected out >>out 2>&1
		check "… and ${line%% *} shows the same"
	done
	jumps run 0 ./tally stat -e task-clock -I 50 -x, -- env -u LD_PRELOAD ./work spin 0.3 && [ "$(grep -c task-clock out)" -ge 3 ] &&
		awk -F, '/task-clock/ { if ($1 + 0 < last || $1 > 60) bad = 1; last = $1 + 0 } END { exit bad }' out
	check "… and intervals of stat follow each other"
fi

# --- signals -----------------------------------------------------------------------------------------------------
for signal in USR1 USR2; do
	rm -f signalled*
	./tally record -e cpu-clock -o signalled -- ./work spin 1 >out 2>&1 &
	recorder=$!
	begun signalled $recorder && kill -$signal $recorder
	wait $recorder && has "SIG$signal" && [ "$(samples signalled)" -gt 100 ]
	check "SIG$signal does not end a recording"
	./tally stat -e task-clock -o counted -- ./work spin 0.5 >out 2>&1 &
	counter=$!
	until [ "$(cat /proc/$counter/task/*/children 2>&-)" ]; do sleep 0.02; done
	sleep 0.1
	kill -$signal $counter
	wait $counter && has "SIG$signal" && grep -q task-clock counted
	check "… nor a count"
done
for signal in $([ $is_full = yes ] && echo PROF VTALRM IO PWR) ALRM XCPU; do
	rm -f signalled*
	./tally record -e cpu-clock -o signalled -- sleep 30 >out 2>&1 &
	recorder=$!
	begun signalled $recorder && kill -$signal $recorder
	wait $recorder
	[ $? = 143 ] && has 'tally: ' && ./tally script -i signalled >/dev/null 2>>out
	check "SIG$signal ends a recording as SIGTERM does"
done
if [ $is_full = yes ]; then
	rm -f used*
	run 143 bash -c 'ulimit -S -t 1; exec ./tally record -e cpu-clock -F 25000 -c 20000 -g -o used -- bash -c "ulimit -t unlimited; while :; do :; done"'
	has 'ulimit -t' && [ "$(samples used)" -gt 100 ]
	check "a recorder at the limit of its CPU time keeps what it has, and says so"
fi

# Stopped and continued all the time: the kernel interrupts waits.
rm -f storm*
./tally record -g -e cpu-clock -o storm -- ./work spin 1 >out 2>&1 &
recorder=$!
begun storm $recorder
while kill -STOP $recorder 2>&-; do sleep 0.01; kill -CONT $recorder 2>&- || break; sleep 0.01; done
wait $recorder
status=$?
[ $status = 0 ] && [ "$(samples storm)" = "$(sed -n 's/^tally: \([0-9,]*\) samples in .*/\1/p' out | tr -d ,)" ]
check "a recorder that is stopped and continued records on"
./tally stat -e task-clock -I 50 -x, -o counted -- ./work spin 0.6 >out 2>&1 &
counter=$!
while kill -STOP $counter 2>&-; do sleep 0.01; kill -CONT $counter 2>&- || break; sleep 0.01; done
wait $counter && [ "$(grep -c task-clock counted)" -ge 2 ]
check "… and a count counts on"
rm -f killed*
./tally record -e cpu-clock -F 2000 -o killed -- ./work spin 20 >out 2>&1 &
recorder=$!
begun killed $recorder
until flushed=$(samples killed) && [ "$flushed" -gt 100 ]; do sleep 0.2; done
command=$(pgrep -P $recorder)
kill -KILL $recorder "$command"
wait $recorder 2>&-
[ "$(samples killed)" -ge "$flushed" ]
check "the file of a killed recorder has what it flushed"
for pair in "INT INT" "TERM INT" "TERM TERM"; do
	rm -f ended*
	./tally record -e cpu-clock -F 1000 -o ended -- bash -c 'trap "" INT TERM; while :; do :; done' >out 2>&1 &
	recorder=$!
	begun ended $recorder
	command=$(pgrep -P $recorder)
	until [ "$(awk '{ print $14 + $15 }' "/proc/$command/stat")" -ge 10 ]; do sleep 0.05; done # 0.1 s of CPU time
	kill -"${pair% *}" $recorder
	until has 'goes on'; do sleep 0.05; done
	kill -"${pair#* }" $recorder
	wait $recorder
	status=$?
	kill -KILL "$command"
	[ $status = 130 ] && has 'still running' && [ "$(samples ended)" -gt 20 ] && ./tally report --stdio -i ended 2>>out | grep -q bash
	check "SIG${pair% *}, then SIG${pair#* } to a command that ignores both: the recording is whole, the command goes on"
done

# --- very many threads -------------------------------------------------------------------------------------------
count=$([ $is_full = yes ] && echo 10000 || echo 2000)
mkfifo held
./crowd threads $count 20 200 <held >ready &
many=$!
exec 9>held
until grep -qs ready ready; do sleep 0.05; done
./tally record -p "$many" -e cpu-clock -F 200 -o many --duration 1 >out 2>&1
status=$?
[ $status = 0 ] && ./tally script -i many >/dev/null 2>>out || { [ $status = 1 ] && has descriptors && has hint:; }
check "a process with $count threads is recorded, or a message says what to raise"
./tally stat -p "$many" -e task-clock --duration 0.2 >out 2>&1 || { has descriptors && has hint:; }
check "… and counted"
kill "$many"
exec 9>&-
rm -f many* && run 0 ./tally record -g -e cpu-clock -F 999 -o many -- bash -c "./crowd threads $count 20 2000 </dev/null" && ! has ' lost' && [ "$(samples many)" -gt 20 ] &&
	./tally report --stdio -i many >>out 2>&1 && grep -q member out
check "a command that starts $count threads is recorded"
done_testing
