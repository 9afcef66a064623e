#!/bin/bash
# `tally report` and `tally top` on a terminal: tmux drives them, and the test reads its panes.
# TAP; $TALLY is the binary, $WORKLOAD the program of record_workload.c.
set -u
. "$(dirname "$0")/tap.sh"
export TMUX_TMPDIR=$scratch HOME=$scratch LC_ALL=C.UTF-8 SHELL=/bin/sh # tmux runs commands with it: some users have nologin
unset TMUX NO_COLOR PAGER TALLY_PAGER LESS
trap 'tmux kill-server 2>/dev/null; rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1

have tmux || skip_all "no tmux"
libraries | grep -q 'libncursesw\.so\.6' || skip_all "no libncursesw6"
"$TALLY" record -q -e cpu-clock,minor-faults -F 999 --call-graph fp -o tally.data "$WORKLOAD" recursion >screen 2>&1 </dev/null ||
	skip_all "can't record"

# pane WIDTH HEIGHT COMMAND: runs it in a new terminal; its last output and its status follow
pane() {
	panes=$((panes + 1)) # the old one ends after the new one starts, so that the server stays
	tmux -f /dev/null new-session -d -s "pane$panes" -x "$1" -y "$2" "TERM=screen-256color; export TERM; $3; echo \"left with \$?\"; sleep 600"
	[ $panes = 1 ] || tmux kill-session -t "pane$((panes - 1))"
}
panes=0
look() { tmux capture-pane -t "pane$panes" -p >screen 2>&1; }
# shows TEXT: waits for it up to ten seconds
shows() {
	for ((i = 0; i < 200; i++)); do
		look
		grep -qF -e "$1" screen && return 0
		sleep 0.05
	done
	return 1
}
# The line of the cursor: the only reversed one except for the last line.
cursor_has() {
	for ((i = 0; i < 200; i++)); do
		look
		tmux capture-pane -t "pane$panes" -p -e | sed '$d' | grep -a $'\033\\[\\([0-9;]*;\\)\\?7m' | sed 's/\x1b\[[0-9;]*m//g' |
			grep -qaF -e "$1" && return 0
		sleep 0.05
	done
	return 1
}
# keys KEYS…
keys() { tmux send-keys -t "pane$panes" "$@"; }
hides() { for ((i = 0; i < 200; i++)); do look; grep -qF -e "$1" screen || return 0; sleep 0.05; done; return 1; }

# ---- report ----------------------------------------------------------------------------------------------
pane 80 24 "\"\$TALLY\" report --cpu 0-4095"
check "a report opens on a terminal" shows "? help"
check "it says what was measured" grep -q "samples of cpu-clock" screen
check "it has a line for each function" grep -q "FUNCTION" screen
check "nothing is wider than the terminal" [ "$(wc -L <screen)" -le 80 ]
keys s a
check "the menu sorts by total" shows "[x] heaviest total first"
keys q / inner Enter
check "a search moves to the match" cursor_has "inner"
keys Enter
check "Enter opens a tree" shows "▾"
keys Enter
check "and closes it again" hides "▾"
keys e
check "e opens all" shows "└"
keys E
check "E closes all" hides "└"
keys '?'
check "? shows help" shows "open or close a call tree"
keys q
check "a key closes it" hides "open or close a call tree"
keys / RECURS Enter
check "... in either case" cursor_has "recursion"
keys f zzz Enter
check "a filter hides lines without its word" shows "nothing passes the filter"
keys Escape
check "Escape ends the filter" hides "nothing passes"
keys s s q
keys t
check "t keeps threads apart" shows "TID"
keys t c
check "c switches the trees" shows "trees show"
check "the bottom line shows the event's number, and the key for the next" shows "Tab: event 1/2"
keys Tab
check "Tab goes to the next event" shows "samples of minor-faults"
check "... which is the second" shows "Tab: event 2/2"
keys BTab
check "and back" shows "samples of cpu-clock"
if have less; then
	keys g / inner Enter
	total=$(sed -n 's/^[^0-9]*\([0-9,]*\) samples of cpu-clock.*/\1/p' screen | tr -d ,)
	keys a
	check "a annotates the function" eval 'shows "inner" && hides "? help"'
	check "... with the report's samples, which are of one command" shows "samples other than --cpu 0-4095 are"
	check "... counted as in the report: with samples in other objects" shows "of the ${total:-?} samples of cpu-clock"
	keys q
	check "and comes back" shows "? help"
	keys Escape
fi
tmux resize-window -t "pane$panes" -x 50 -y 12
check "the view follows the terminal's size" shows "samples of cpu-clock"
tmux resize-window -t "pane$panes" -x 140 -y 40
check "... also when it grows" shows "d object"
keys q
check "q leaves, with status 0" shows "left with 0"

if "$TALLY" record -q --off-cpu -o waits.data -- sh -c '"$0" spin 0.2; sleep 0.2' "$WORKLOAD" >screen 2>&1 </dev/null; then
	pane 80 24 "\"\$TALLY\" report -i waits.data"
	check "a recording of waits opens with the waits" shows "samples of offcpu-time"
	check "... with their number, mean and maximum" grep -Eq "SELF +TIME +WAITS +MEAN +LONGEST" screen
	check "... within the terminal's width" [ "$(wc -L <screen)" -le 80 ]
	check "... another event was recorded too" shows "Tab: event 2/2"
	keys Tab
	check "... and one key shows it" shows "samples of c"
	keys q
	pane 140 40 "\"\$TALLY\" report -i waits.data --wakers"
	check "the tasks that ended waits can be browsed in trees" eval 'shows "TOTAL" && keys e && shows "[w"'
	keys q
else
	skip "waits are browsed" "the kernel refuses"
fi

"$TALLY" record -q -e cpu-clock -F 999 -o two.data -- sh -c '"$0" recursion; "$0" recursion' "$WORKLOAD" >screen 2>&1 </dev/null
pane 80 24 "\"\$TALLY\" report -i two.data --sort pid" # each has about half
shows "? help"
keys P C-u 80 Enter
check "a percent limit hides smaller lines" shows "all rows are below the limit"
keys P C-u 0 Enter
check "and shows it again" hides "below the limit"
keys q

if have less && "$TALLY" record -q -e minor-faults -c 1 -o commands.data -- sh -c '"$0" faults 0.02; :' "$WORKLOAD" >screen 2>&1 </dev/null; then
	pane 80 24 "\"\$TALLY\" report -i commands.data --sort comm,sym"
	shows "? help"
	keys / record_workload Enter
	cursor_has record_workload
	keys a
	shows "memory.at. = 1"
	keys g
	check "a annotates with the samples of the line's command, if there are several commands" shows "samples other than --comm record_workload are"
	keys q
	shows "? help"
	keys q
fi

if have less && have strip && strip -o nameless "$WORKLOAD" &&
	"$TALLY" record -q -e cpu-clock -F 999 -o nameless.data ./nameless recursion >screen 2>&1 </dev/null; then
	pane 80 24 "\"\$TALLY\" report -i nameless.data"
	shows "? help"
	keys / '[nameless+0x' Enter
	cursor_has '[nameless+0x'
	keys a
	check "a annotates a function without a symbol" shows "are in it"
	keys q
	shows "? help"
	keys q
fi

pane 80 24 "\"\$TALLY\" report --max-stack 2 --percent-limit 30"
shows "? help"
keys / RECURS Enter
cursor_has "recursion"
keys Enter
check "Enter on an entry without a tree says why" shows "its callers are all below the limit"
keys c
shows "trees show what a function called"
keys / inner Enter
cursor_has "inner"
keys Enter
check "... and names the key for the other direction" shows "its callees are all below the limit; c shows callers"
keys q

pane 100 30 "\"\$TALLY\" report"
shows "? help"
keys C-c
check "Ctrl-C leaves" shows "left with 0"
pane 100 30 "\"\$TALLY\" report --stdio"
check "--stdio writes text" eval 'shows "left with 0" && ! grep -q "? help" screen'
pane 100 30 "TERM=dumb \"\$TALLY\" report --stdio; TERM=dumb \"\$TALLY\" report --tui"
check "--tui on a dumb terminal is refused" shows "left with 2"
pane 100 30 "LC_ALL=C \"\$TALLY\" report"
shows "? help"
keys e '?'
shows "open or close"
check "without UTF-8 the screen is ASCII" eval '! LC_ALL=C grep -q "[^ -~]" screen'
pane 100 30 "NO_COLOR=1 \"\$TALLY\" report"
shows "? help"
check "NO_COLOR is obeyed" eval '! tmux capture-pane -t "pane$panes" -p -e | grep -qa $'"'\\033\\[[0-9;]*3[0-7]m'"

# ---- top -------------------------------------------------------------------------------------------------
cat >spinner.sh <<'S'
while :; do "$WORKLOAD" spin; done
S
pane 100 30 "bash spinner.sh & \"\$TALLY\" top -p \$! -d 300ms; kill \$!"
check "top opens on a terminal" shows "p pause"
check "it shows what runs" shows "inner"
check "the head tells what the samples are of" shows "samples of"
keys p
check "p pauses" shows "paused"
keys p
check "and goes on" shows "sampling continues"
keys t
check "t shows threads apart" shows "TID"
keys t f nosuchthing Enter
check "f filters" shows "nothing passes the filter"
keys Escape '?'
check "? shows top's help" shows "clear all samples"
keys q q
check "q leaves top" shows "left with 0"
pane 100 30 "bash spinner.sh & \"\$TALLY\" top -g -p \$! -d 300ms; kill \$!"
shows "inner"
keys / inner Enter
cursor_has "inner"
keys Enter
check "top -g: Enter opens a tree" shows "└"
keys p z
hides "└"
keys p
check "... which stays open in later views" shows "└"
keys '?'
check "the help has the keys of trees" shows "trees of callers"
keys q q
shows "left with 0"
echo "p;main;a_function_with_a_long_name 400" >old.folded
echo "p;main;a_function_with_another_name 300" >new.folded
pane 80 24 "TALLY_PAGER=cat \"\$TALLY\" diff old.folded new.folded"
check "diff: names have room" eval 'shows "left with 0" && grep -q " a_function_with_a_long_name$" screen'
printf 'p;main;a_function_with_a_long_name %s\np;main;another_function_of_a_long_name %s\n' 100 100 >old.folded
printf 'p;main;a_function_with_a_long_name %s\np;main;another_function_of_a_long_name %s\n' 105 100 >new.folded
pane 60 24 "TALLY_PAGER=cat \"\$TALLY\" diff old.folded new.folded"
check "... also on a narrow terminal, and for noise" eval 'shows "left with 0" && grep -q "  noise  a_function_with_a_long_name$" screen'
tmux kill-server 2>/dev/null
check "without a terminal it is text" eval '"$TALLY" report </dev/null >screen 2>&1 && grep -q FUNCTION screen && ! grep -q "? help" screen'
echo "1..$number"
