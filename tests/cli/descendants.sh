#!/bin/bash
# -p of a server: its workers, which ran before, are recorded and shown too.  stat counts only the
# named process, and says so.  TAP; $TALLY is the binary, $WORKERS MS a master with three workers
# (workers.c).
set -u
. "$(dirname "$0")/tap.sh"
cp "$TALLY" "$scratch/tally" && cp "$WORKERS" "$scratch/workers" && chmod 755 "$scratch" "$scratch/tally" "$scratch/workers" || exit 1
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch
mkfifo -m 666 ctl ack
exec 7<>ack
# attached COMMAND…: attaches the command to $server, which then begins to work, or ends; the output
# is in ./out.
server='./workers 200'
attached() {
	mkfifo hold said
	$server <hold >said 8>&- &
	master=$!
	exec 8>hold
	read -r -t 100 _ <said
	timeout 300 "$@" --control fifo:ctl,ack -p $master 8>&- >out 2>&1 &
	tool=$!
	echo ping >ctl
	IFS= read -r -t 100 _ <&7
	exec 8>&-
	wait $tool
	status=$?
	wait $master
	rm -f hold said
	return $status
}
has() { grep -qF -- "$1" out; }
functions() { timeout 60 ./tally report --stdio -i "$1" --sort sym --no-children 2>>out | grep -o '[a-z]*_works' | sort | tr '\n' ' '; }
# COUNT NAME: milliseconds that stat counted
counted() { sed -n 's/^\([0-9.]*\),msec,task-clock.*/\1/p' out | cut -d. -f1; }

./tally record -q -o probe -e cpu-clock true 2>out || skip_all "the kernel refuses: $(head -n 1 out)"
attached ./tally record -e cpu-clock -g -o all && has "process $master has 3 child processes, which are recorded as well; --no-descendants leaves them out" &&
	timeout 60 ./tally fold -i all >folded 2>>out
check "record -p of a parent says that it records its workers too"
for worker in first second third; do
	check "… the ${worker} is recorded" grep -q "${worker}_works" folded
done
timeout 60 ./tally script --stdio -i all >lines 2>>out
samples=$(grep -c 'cpu-clock:' lines)
check "… once each: 600 ms of work give 600 samples at 999 Hz" eval '[ "$samples" -ge 420 ] && [ "$samples" -le 780 ]'
attached ./tally record -e cpu-clock -o alone --no-descendants
check "--no-descendants leaves them out and says that they exist" \
	eval 'has "process $master has 3 child processes, which are not recorded" && ! timeout 60 ./tally script --stdio -i alone 2>/dev/null | grep -q _works'
attached ./tally record -e cpu-clock -o alone -i
check "so does -i" eval 'has "which are not recorded" && ! timeout 60 ./tally script --stdio -i alone 2>/dev/null | grep -q _works'

# A child created while events are being opened has inherited them: it must not be sampled twice.
most=0 server='./workers 20 12'
for try in 1 2 3; do
	attached ./tally record -q -e cpu-clock -o churn
	timeout 60 ./tally script --stdio -F tid,event -i churn 2>>out | awk '/cpu-clock/ { n[$1]++ } END { for (t in n) print n[t] }' | sort -n | tail -n 1 >count
	[ "$(cat count)" -le $most ] || most=$(cat count)
done
server='./workers 200'
check "short-lived children are sampled once each: 20 ms give 20 samples" eval '[ "$most" -ge 12 ] && [ "$most" -le 30 ]'

# ---- stat ----------------------------------------------------------------------------------------------------------
attached ./tally stat -x, -e task-clock
check "stat -p counts the children that run already, each once" eval '[ "$(counted)" -ge 590 ] && [ "$(counted)" -lt 700 ]'
attached ./tally stat -e task-clock
check "… and says so" \
	eval 'tr -s " \n" " " <out | grep -qF "process $master has 3 child processes, which are counted as well; --no-descendants leaves them out"'
attached ./tally stat -x, -e task-clock --no-descendants
check "--no-descendants counts only the given process, as perf does" eval '[ "$(counted)" -lt 100 ]'

# ---- top -----------------------------------------------------------------------------------------------------------
./workers 2000 </dev/null >said & master=$!
until grep -q ready said; do sleep 0.01; done
timeout 60 ./tally top --stdio -p $master -d 500ms -n 1 >out 2>err </dev/null
check "top -p shows the workers and their number" \
	eval 'grep -q "third_works\|spend" out && has "process $master and 3 child processes"'
timeout 60 ./tally top --stdio -p $master -d 300ms -n 1 --no-descendants >out 2>err </dev/null
check "… unless --no-descendants leaves them out" eval '! grep -q "_works\|spend" out'
wait $master

# ---- another user's ------------------------------------------------------------------------------------------------
mkdir -m 777 theirs
if [ "$(id -u)" = 0 ] && $nobody ./tally record -q -e cpu-clock:u -o theirs/probe true 2>err; then
	cat >theirs.sh <<-SH
		sleep 600 <&- >&- & echo \$! >child
		exec $nobody ./workers 200
	SH
	server='sh theirs.sh'
	attached $nobody ./tally record -e cpu-clock:u -o theirs/data --duration 1
	status=$?
	kill "$(cat child)"
	timeout 60 ./tally script --stdio -i theirs/data >lines 2>>out
	check "a message says that a child of another user is left out" \
		eval '[ $status = 0 ] && has "1 of their threads" && grep -q "_works\|spend" lines'
else
	skip "a message says that a child of another user is left out" "needs root, and a user who may sample"
fi
done_testing
