#!/bin/bash
# Completion in bash, zsh and fish, each called as a user's shell calls it.  TAP; $TALLY is the
# binary.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
mkdir bin home && ln -s "$TALLY" bin/tally && PATH=$scratch/bin:$PATH
export PATH HOME=$scratch/home LC_ALL=C.UTF-8
touch a_recording.data

for shell in bash zsh fish; do
	"$TALLY" completion $shell >$shell.completion
done
check "another shell is refused" eval '"$TALLY" completion tcsh >out 2>&1; [ $? = 2 ] && grep -q "bash, zsh or fish" out'

# --- what each completes: WORDS of the line, then words that must be among the answers ---------------------------------
cases() {
	answers 'tally st' 'stat'
	answers 'tally help rep' 'report'
	answers 'tally stat --ev' '--event'
	answers 'tally report --sort data_' 'data_page_size' # the list is long
	answers 'tally stat -e page-fau' 'page-faults'
	answers 'tally record --event cs,page-fau' 'cs,page-faults'
	answers 'tally record -F 99 --call-graph ' 'fp dwarf none'
	answers 'tally report -g ca' 'caller callee'
	answers 'tally report -i a_rec' 'a_recording.data'
	answers 'tally report a_rec' 'a_recording.data'
	answers 'tally flamegraph --diff a_rec' 'a_recording.data'
	answers 'tally stat -r 3 -- env' 'env'
}

# bash: calls the function like readline
bash_asks() {
	bash --norc -c 'source bash.completion || exit 1
		read -ra COMP_WORDS <<<"$1"
		[[ $1 == *" " ]] && COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		COMP_LINE=$1 COMP_POINT=${#1}
		_tally 2>/dev/null
		printf "%s\n" "${COMPREPLY[@]}"' - "$1"
}
fish_asks() { fish --no-config -c 'source fish.completion; complete -C "$argv[1]"' "$1" | cut -f1; }

answers() {
	"${shell}_asks" "$1" >out 2>&1
	for word in $2; do
		grep -qxF -- "$word" out || { not_ok "$shell: '$1' finds $2"; return; }
	done
	ok "$shell: '$1' finds $2"
}
shell=bash
cases
bash_asks 'tally stat -e cs -- env' >out
check "bash: words after -- are not completed by tally" eval '! grep -q "^--" out'
COMP='source bash.completion; COMP_WORDS=(tally stat -e sched : sched_swi); COMP_CWORD=5; _tally 2>/dev/null; echo "${COMPREPLY[@]}"'
if [ "$("$TALLY" list sched:sched_switch 2>/dev/null | wc -l)" -gt 0 ]; then
	bash --norc -c "$COMP" >out
	check "bash: an event's name is completed after its colon" grep -qx sched_switch out
else
	skip "bash: an event's name is completed after its colon" "tracepoints are not listed here"
fi
bash --norc -c 'source bash.completion; COMP_WORDS=(tally record --call-graph = d); COMP_CWORD=4; _tally; echo "${COMPREPLY[@]}"' >out 2>&1
check "bash: a value after = is completed" grep -qx dwarf out

if command -v fish >/dev/null; then
	shell=fish
	fish --no-execute fish.completion >out 2>&1
	check "fish accepts its completion file" test ! -s out
	cases
else
	skip "fish completes" "fish is not installed"
fi

# zsh: types a line into a shell on a terminal of its own, then Tab; a single answer appears in the
# line
if command -v zsh >/dev/null; then
	zsh -n zsh.completion >out 2>&1
	check "zsh accepts its completion file" test ! -s out
	cat >ask.zsh <<'END'
zmodload zsh/zpty
zpty shell "zsh -f -i"
heard() { local text= part; while zpty -r -t shell part; do text+=$part; done; print -r -- "$text"; }
wait_for() { local text= i; for i in {1..100}; do text+=$(heard); [[ $text == *"$1"* ]] && return 0; sleep 0.1; done; return 1; }
zpty -w shell "PS1='> '; autoload -U compinit; compinit -u -D; source zsh.completion; setopt no_beep; echo re''ady"
wait_for ready || exit 1
ask() {
	zpty -n -w shell "$1"$'\t'
	sleep 0.3
	zpty -n -w shell $'\x01echo "[\x05]"\n'
	wait_for "$2" && print -r -- "$1 => $2"
}
ask 'tally doc' '[tally doctor'
ask 'tally stat --deta' '[tally stat --detailed'
ask 'tally record -e page-fau' 'page-faults'
ask 'tally report -i a_rec' 'a_recording.data'
END
	timeout 60 zsh -f ask.zsh >out 2>&1
	for line in 'tally doc =>' 'tally stat --deta =>' 'tally record -e page-fau =>' 'tally report -i a_rec =>'; do
		check "zsh: ${line% =>}" grep -qF -- "$line" out
	done
else
	skip "zsh completes" "zsh is not installed"
fi
echo "1..$number"
