#!/bin/bash
# A name can't control the terminal that shows it.  Paths, comms, functions, events and arguments
# try to set the title.  TAP; $TALLY is the binary, $WORKLOAD the program of record_workload.c.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export PAGER=cat NO_COLOR=1 TERM=xterm HOME=$scratch XDG_CACHE_HOME=$scratch
hostile=$'\e]0;owned\a'
name="w${hostile}"$'\x9b5m\r'"k"

if ! command -v script >/dev/null; then
	echo "1..0 # SKIP no script(1), which gives a command a terminal"
	exit 0
fi

# on_terminal COMMAND…: output and messages go to a terminal; ./out gets its bytes
on_terminal() {
	printf '%q ' "$@" >line
	timeout 60 script -qec "bash $scratch/line" /dev/null >out 2>&1 </dev/null
}

# Neither output nor messages contain a byte that sets the title, a bell, or 8-bit CSI.
clean() { # WHAT [least number of bytes]
	if [ "$(wc -c <out)" -lt "${2:-20}" ]; then
		not_ok "$1: prints something"
	elif LC_ALL=C grep -aqF -e $'\e]0;' -e $'\a' out || LC_ALL=C grep -aqP '(?<![\xc3-\xf4\x80-\xbf])\x9b' out; then
		not_ok "$1: no name can send escapes to the terminal"
	else
		ok "$1: no name can send escapes to the terminal"
	fi
}

cp "$WORKLOAD" "$name"
if "$TALLY" record -q -e cpu-clock -F 999 -g -o rec -- "./$name" escapes >err 2>&1 && "$TALLY" script -j -i rec >plain 2>err; then
	# JSON gives names back as they are
	grep -qF '\u001b]0;owned\u0007' plain && ok "the recording contains the names" || { cp plain out; not_ok "the recording contains the names"; }
	# The first faults happen under the file's name, before the program sets its own name.
	"$TALLY" record -q -e page-faults -c 1 -g -o faults -- "./$name" escapes >err 2>&1
	for recording in rec faults; do
		for command in "report --stdio" "report --stdio -g" "report --stdio --sort comm,dso" "report --header --stdio" "script" \
			       "script --header" "script --show-mmap-events --show-task-events" "script --records" "report -j" \
			       "fold" "fold --full-names" "timeline" "timeline --by task" "annotate"; do
			# shellcheck disable=SC2086 # words
			on_terminal "$TALLY" $command -i $recording
			clean "$recording: $command"
		done
	done
	"$TALLY" record -q -e cpu-clock -F 999 -g --no-pack -o bare -- "./$name" escapes >err 2>&1
	printf more >>"$name" # no longer the recorded file
	rm "$name"
	on_terminal "$TALLY" report --stdio -i bare
	clean "a report after the program and its files were removed"
	on_terminal "$TALLY" pack bare
	clean "pack" 0
	cp rec "$name"
	for command in "report --stdio" "script" "flamegraph -o -"; do
		head -c 3000 rec >"$name.cut"
		# shellcheck disable=SC2086 # words
		on_terminal "$TALLY" $command -i "$name.cut"
		clean "$command of a damaged file of such a name" 0
		# shellcheck disable=SC2086 # words
		on_terminal "$TALLY" $command -i "not there $hostile"
		clean "$command of a file that is not there"
	done
	"$TALLY" flamegraph -i rec -o graph.svg >err 2>&1 && cp graph.svg out && clean "a flame graph's picture"
	"$TALLY" flamegraph -i rec -o graph.html >err 2>&1 && cp graph.html out && clean "a flame graph's page"
else
	skip "recordings" "$(head -n 1 err)"
fi
on_terminal "$TALLY" "frobnicate$hostile"
clean "an unknown command"
on_terminal "$TALLY" stat -e "cycl$hostile" true
clean "stat of an unknown event"
on_terminal "$TALLY" stat -e task-clock "./not there $hostile"
clean "stat of a missing program"
on_terminal "$TALLY" stat -e "task-clock/name=x$hostile/" true
clean "stat of an event with such a name"
on_terminal "$TALLY" stat -e task-clock bash -c "true $hostile"
clean "stat of a command with such an argument"
on_terminal "$TALLY" record -e "cycl$hostile" -o none true
clean "record of an unknown event"
on_terminal "$TALLY" record -o none "./not there $hostile"
clean "record of a missing program"
on_terminal "$TALLY" record -e task-clock -o "no such folder $hostile/file" true
clean "record to a file that can't be made"
on_terminal "$TALLY" list "cycl$hostile"
clean "list" 0
on_terminal "$TALLY" report "--frob$hostile"
clean "an unknown option"
on_terminal "$TALLY" compare "a$hostile" "b$hostile"
clean "compare of missing files"
echo "1..$number"
