#!/bin/bash
# Standard input, output or error is closed: no file gets the descriptor's number, and output that is
# lost is an error.  TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch
have python3 || skip_all "there is no python3"
"$here/make_recording.py" idle one.data && cp one.data two.data || exit 1
printf 'a;b 1\nc 2\n' >stacks.folded
tally() { timeout 60 "$TALLY" "$@"; }

# ---- output that is lost

loses() { # COMMAND…: fails without standard output, and says so; succeeds with it
	tally "$@" >whole 2>err </dev/null && [ -s whole ] || return
	tally "$@" >&- 2>err </dev/null
	[ $? = 1 ] && grep -q "Bad file descriptor" err
}
while read -r words; do
	# shellcheck disable=SC2086
	check "tally $words >&- is an error" loses $words
done <<'L'
--version
--help
help
list
completion bash
cache
report --stdio one.data
script -i one.data
script -j -i one.data
fold stacks.folded
fold -i one.data
flamegraph -o - stacks.folded
export -f pprof -o - -i one.data
timeline -i one.data
diff one.data two.data
report --help
L
counts() { tally stat -e task-clock "$@" true >out 2>err </dev/null; }
if counts; then
	check "tally stat 2>&- is an error, since counts go there" eval '! tally stat -e task-clock true 2>&- >out </dev/null'
	check "… also as /dev/stderr" eval '! tally stat -e task-clock -o /dev/stderr true 2>&- >out </dev/null'
	check "… not with -o, and the file has no messages" eval \
		'tally stat -e task-clock -o with.txt true && tally stat -e task-clock -o without.txt true 2>&- >&- <&- &&
			[ "$(wc -l <with.txt)" = "$(wc -l <without.txt)" ]'
else
	skip "… also as /dev/stderr" "$(head -n 1 err)"
	skip "tally stat 2>&- is an error, since counts go there" "$(head -n 1 err)"
	skip "… not with -o, and the file has no messages" "$(head -n 1 err)"
fi

for command in 'fold -o /dev/stdout stacks.folded' 'fold -o /dev/fd/1 stacks.folded' 'flamegraph -o /proc/self/fd/1 stacks.folded'; do
	# shellcheck disable=SC2086
	check "tally $command >&- is an error" eval "! tally $command >&- 2>err </dev/null && [ -s err ]"
done

# ---- files

check "a file is the same without standard output and error" eval 'tally flamegraph -o one.svg stacks.folded 2>err &&
	tally flamegraph -o two.svg stacks.folded <&- >&- 2>&- && cmp one.svg two.svg'
check "reading from a closed standard input is an error" eval '! tally report --stdio - <&- >out 2>err && grep -q "Bad file descriptor" err'
if tally record -q -e cpu-clock -o probe.data true 2>err >out; then
	same() { # a recording made without descriptors has samples and nothing of tally's messages
		tally record -e cpu-clock -o all.data -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done' 2>err >out </dev/null || return
		message=$(head -n 1 err)
		[ -n "$message" ] && ! grep -aqF "${message#tally: }" lost.data && tally report --stdio lost.data >out 2>err && grep -q 'samples of cpu-clock' out
	}
	for closed in '>&-' '2>&-' '>&- 2>&-' '<&-' '<&- >&- 2>&-'; do
		check "record $closed" eval "rm -f lost.data; tally record -e cpu-clock -o lost.data -- sh -c 'i=0; while [ \$i -lt 20000 ]; do i=\$((i+1)); done' $closed && same"
	done
	check "record -o - without standard output is an error" eval '! tally record -o - -e cpu-clock true >&- 2>err'
	# The command finds its descriptors as they were.
	cat >which.sh <<'S'
fds=
for fd in 0 1 2; do [ ! -e /proc/$$/fd/$fd ] || fds+="$fd "; done
echo "$fds" >&9
S
	check "the command has the descriptors that tally got" eval \
		'tally record -q -e cpu-clock -o own.data -- bash which.sh 9>fds <&- >&- && [ "$(cat fds)" = "2 " ]'
else
	skip "recordings" "$(head -n 1 err)"
fi
done_testing
