#!/bin/bash
# tally record: one recording in several files, the flight recorder, control by another program,
# limits, and failed endings.  TAP; $TALLY is the binary, $SHARES MS [THREADS] spends 50, 30 and 20
# % of its time in three functions.
set -u
. "$(dirname "$0")/tap.sh"
cp "$TALLY" "$scratch/tally" && cp "$SHARES" "$scratch/shares" || exit 1
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch PERF_CONFIG=/dev/null

run() { expected=$1; shift; timeout 60 "$@" >out 2>&1; status=$?; [ "$status" = "$expected" ] || { echo "status $status" >>out; false; }; }
has() { grep -qF -- "$1" out; }
samples() { ./tally script --stdio -i "$1" 2>>out | grep -c '^[^	].*[0-9]: '; }
has_perf=no; command -v perf >/dev/null && perf --version >/dev/null 2>&1 && has_perf=yes
times() { sed -nE 's/^[^\t].* ([0-9]+\.[0-9]{6}): .*/\1/p'; }
# same FILE: perf has the same samples, at the same times
same() {
	[ $has_perf = yes ] || return 0
	perf script -i "$1" 2>>out | times >perf.times
	./tally script --stdio -i "$1" 2>>out | times >tally.times
	[ -s perf.times ] && cmp perf.times tally.times >>out 2>&1
}

if ! ./tally record -q -o probe -e cpu-clock true 2>out; then
	echo "1..0 # SKIP cpu-clock can't be sampled: $(head -1 out)"
	exit 0
fi

# --- several files -----------------------------------------------------------------------------------------------
run 0 ./tally record --switch-output=200ms -e cpu-clock -F 2000 -- ./shares 1000 && [ ! -e tally.data ] &&
	[ "$(ls tally.data.[0-9]* | wc -l)" -ge 3 ]
check "--switch-output=TIME starts a new file each time"
total=0 alike=yes
for file in tally.data.[0-9]*; do
	total=$((total + $(samples "$file")))
	[ "$(samples "$file")" = 0 ] || same "$file" || alike="no: $file" # a busy machine may not run it for so long
	[ "$(samples "$file")" -lt 20 ] || ./tally report --stdio -i "$file" 2>>out | grep -q half || alike="no names: $file"
done
echo "$total in all; $alike" >>out
[ "$total" = "$(sed -n 's/^tally: \([0-9,]*\) samples in .*/\1/p' out | tr -d ,)" ] && [ "$alike" = yes ]
check "no sample is lost or doubled; each file has its names and is readable for perf"
rm -f tally.data*
mkdir apart && run 0 ./tally record --switch-output=100ms -o apart/few -e cpu-clock -F 2000 -- ./shares 500 && ! has 'no names' &&
	[ -z "$(ls few.[0-9]* 2>/dev/null)" ] && [ "$(ls apart/few.[0-9]* | wc -l)" -ge 2 ]
check "… also in another folder, where they are named"
run 0 ./tally record --switch-output=8K --switch-max-files 2 -z 0 -e cpu-clock -F 4000 -o few -- ./shares 1000 &&
	[ "$(grep -c 'samples, ' out)" -ge 3 ] && [ "$(ls few.[0-9]* | wc -l)" = 2 ] && [ ! -e few ]
check "--switch-output=SIZE, of whose files --switch-max-files are kept"
run 0 ./tally record --timestamp-filename -o named -e cpu-clock -- ./shares 50 && ls named.[0-9]* >/dev/null && [ ! -e named ]
check "--timestamp-filename puts the time into the name"
run 2 ./tally record --switch-output=fast true && has 'SIZE (500K'
check "an invalid --switch-output is refused"
run 1 sh -c './tally record --switch-output=1s -o - true | cat; exit ${PIPESTATUS:-1}' && has 'not a pipe'
check "--switch-output is refused for a pipe"
# --- what is no file stays where it is ------------------------------------------------------------------------------
mkdir far && ./tally record -q -o far/data -e cpu-clock true 2>out && ln -s far/data link && run 0 ./tally record -q -o link -e cpu-clock true &&
	[ -L link ] && [ -f far/data ] && [ -f far/data.old ] && [ ! -e link.old ]
check "a link stays, and its target is kept as FILE.old"
mkdir far/data.old~ && run 1 ./tally record -q -o far/data -e cpu-clock true && has "can't be kept as" && has 'far/data.old~' && has hint: &&
	[ -d far/data.old~ ] && [ -s far/data ] && [ -s far/data.old ]
check "a folder named FILE.old makes tally refuse, and nothing is lost"
if mknod device c 1 3 2>out && sh -c ": >device" 2>out; then
	for words in --switch-output=1s --timestamp-filename --overwrite; do
		run 1 ./tally record -q $words -o device -e cpu-clock true && has 'need a file' && [ -c device ] && [ "$(echo device*)" = device ]
		check "$words: a device as output is refused, and stays"
	done
	mv device far/data.old && run 1 ./tally record -q -o far/data -e cpu-clock true && has 'not a regular file' && [ -c far/data.old ] && [ -s far/data ]
	check "a device named FILE.old stays"
else
	skip "a device is not replaced" "needs the right to make devices: $(head -1 out)"
fi

ln -s /dev/null nowhere
run 1 ./tally record --switch-output=1s -o nowhere true && has 'not nowhere' && [ -L nowhere ]
check "a link to a device is refused, and stays"
run 0 ./tally record --max-size 20K -z 0 -e cpu-clock -F 4000 -o limited -- ./shares 20000 && has 'max-size' &&
	[ "$(stat -c %s limited)" -lt 500000 ]
check "--max-size ends recording and command"

# --- the flight recorder -----------------------------------------------------------------------------------------
./tally record --overwrite -m 16K -e cpu-clock -F 2000 --call-graph fp -o flight -- ./shares 1500 >out 2>&1 &
recorder=$!
until [ -s flight ]; do sleep 0.05; done # the events are open
sleep 0.5
kill -USR2 $recorder
wait $recorder && [ "$(ls flight.[0-9]* | wc -l)" = 1 ] && [ -e flight ] && has 'samples, '
check "--overwrite: each SIGUSR2 writes a file"
last=$(samples flight); snapshot=$(samples flight.[0-9]*)
echo "$snapshot, then $last" >>out
same flight && same flight.[0-9]* && [ "$last" -gt 20 ] && [ "$last" -lt 1500 ] && ./tally report --stdio -i flight 2>>out | grep -q half
check "each file has the latest samples in the rings, with names"
end=$(./tally script --stdio -i flight.[0-9]* 2>>out | times | tail -n 1)
begin=$(./tally script --stdio -i flight 2>>out | times | head -n 1)
echo "snapshot to $end, last from $begin" >>out
awk -v end="$end" -v begin="$begin" 'BEGIN { exit !(begin > end) }'
check "samples of one file are not in the next one"
if [ "$(id -u)" = 0 ]; then
	./tally record -a --overwrite -m 64K --call-graph fp -e cpu-clock -F 500 -o storm -- sh -c 'for i in $(seq 300); do ./shares 2 >/dev/null; done' >out 2>&1 &&
		./tally report --stdio --sort comm,sym -i storm >>out 2>&1
	./tally report --stdio --sort sym -i storm 2>>out | grep -q half
	check "… also for short-lived processes"
else
	skip "… also for short-lived processes" "needs root"
fi

# --- control -----------------------------------------------------------------------------------------------------
mkfifo ctl ack
for words in "--duration 0" "--duration 0ms" "--max-size 0"; do
	run 2 ./tally record $words -o none true && has "${words% *}" && [ ! -e none ]
	check "$words is refused as a limit"
done
run 2 ./tally top --duration 0 && has "--duration: '0' is not a time"
check "top --duration 0 is refused"
run 2 ./tally record -D -1 true && has -- --control
check "-D -1 without a way to enable events is refused"
./tally record -D -1 --control fifo:ctl,ack -e cpu-clock -F 1000 -o controlled -- ./shares 20000 >out 2>&1 &
recorder=$!
exec 5<>ack
answer() { IFS= read -r -t 20 -u 5 line && [ "$line" = ack ]; }
echo ping >ctl && answer && begin=$(date +%s%N) && echo enable >ctl && answer && sleep 0.3 && echo disable >ctl && answer &&
	on=$(($(date +%s%N) - begin)) && sleep 0.7 &&
	echo fly >ctl && ! IFS= read -r -t 0.5 -u 5 line && echo stop >ctl && answer
check "each valid command gets an answer"
exec 5>&-
wait $recorder && has "'fly' is none of enable" && has 'events are on' && has 'events are off' && [ "$(samples controlled)" -gt 5 ] &&
	./tally script --stdio -i controlled 2>>out | times |
	awk -v on="${on:-0}" 'NR == 1 { first = $1 } { last = $1 } END { print "over", last - first, "s of", on / 1e9; exit last - first > on / 1e9 }' >>out
check "samples are recorded while enabled; stop ends recording and command"

# --- endings -----------------------------------------------------------------------------------------------------
# nohup(1) ignores SIGHUP, and tally keeps that.
unignored=(env --default-signal=HUP)
"${unignored[@]}" true 2>out || unignored=()
for signal in INT TERM HUP; do
	rm -f ended
	"${unignored[@]}" ./tally record -e cpu-clock -F 1000 -o ended -- sleep 20 >out 2>&1 &
	recorder=$!
	until [ -s ended ]; do sleep 0.05; done
	sleep 0.2
	kill -$signal $recorder
	wait $recorder
	code=$?
	number_of=$(kill -l $signal); [ $signal = INT ] && number_of=15 # if kill sends it, tally passes it on as SIGTERM
	echo "status $code" >>out
	[ $code = $((128 + number_of)) ] && ./tally script --stdio -i ended >/dev/null 2>>out && ! grep warning out | grep -qv 'no samples'
	check "after SIG$signal the file is whole, and the exit status is the command's"
	rm -f ended
done
mkdir disk && ln -s disk/run.data linked
for i in 1 2; do run 0 ./tally record -q --timestamp-filename -e cpu-clock -o linked -- true; done
[ -L linked ] && [ "$(ls disk | wc -l)" = 2 ] && [ "$(ls -d linked* | wc -l)" = 1 ]
check "a link without a target: the recording is written there, and the link stays"
./tally record -o - -e cpu-clock -F 2000 -- ./shares 400 2>out | head -c 4096 >/dev/null
status=${PIPESTATUS[0]}
echo "status $status" >>out
[ "$status" = 1 ] && grep -q 'tally record: ' out
check "a message says that the pipe's reader has gone"
if [ "$(id -u)" = 0 ] && mkdir small && mount -t tmpfs -o size=64k tmpfs small 2>/dev/null; then
	run 1 ./tally record -e cpu-clock -F 4000 -z 0 -o small/full -- ./shares 1500 && has 'No space left' && has 'readable in small/full' &&
		[ "$(samples small/full)" -gt 50 ]
	check "on a full disk, the part that was written is readable"
	rm -f small/full
	run 1 ./tally record -e cpu-clock -F 4000 -z 0 --switch-output=20K -o small/full -- ./shares 1500 && has 'No space left'
	check "the same with several files"
	all=yes
	for file in small/full*; do ./tally script --stdio -i "$file" >/dev/null 2>>out || all=no; done
	[ $all = yes ]
	check "all of these are readable"
	umount small
else
	skip "on a full disk, the part that was written is readable" "needs root that may mount"
fi
echo "1..$number"
