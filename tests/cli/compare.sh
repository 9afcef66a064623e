#!/bin/bash
# `tally compare`: tables, conditions and exit statuses.  TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export NO_COLOR=

# STATUS ARGUMENT…: the expected exit status of compare
compare() { local wanted=$1; shift; "$TALLY" compare "$@" >out 2>&1; [ $? = "$wanted" ]; }
has() { grep -qE -- "$1" out; }

saved() { # FILE INSTRUCTIONS MISSES: counts of the simulated PMU
	cat >"$1" <<-END
	{"schema":"tally-stat","version":1,"target":"'p'","command":["p"],"provider":"simulated","runs":1,"interval_end_ns":null,"elapsed_ns":5e8,"events":[
	{"name":"instructions","state":"counted","value":$2,"unit":"","source":"simulated","quality":"exact"},
	{"name":"branch|misses","state":"counted","value":$3,"unit":"","source":"simulated","quality":"model"}]}
	END
}
saved old.json 1000000 500
saved new.json 1010001 450

table() {
	compare 0 old.json new.json && has "^old: old.json, 'p', 1 run, provider simulated$" &&
		has '^instructions  +1,000,000  +1,010,001  \+1.00 %  repeatable$' &&
		has '^branch\|misses  +500  +450  -10.0 %  repeatable$' &&
		has '^elapsed  +0.5000 s  +0.5000 s  +0 %  one run: it may be chance$'
}
check "a table of old, new, change" table

gates() {
	compare 1 old.json new.json --fail-if 'instructions > +1%' && has '^FAILED  instructions > \+1%: \+1.00 %$' &&
		compare 0 --fail-if 'instructions > +1.001%' old.json new.json && has '^passed  instructions > \+1.001%' &&
		compare 1 old.json --fail-if 'instructions > +1.001%' --fail-if 'instructions > 1010000' new.json &&
		compare 0 old.json new.json --fail-if 'branch|misses > +0%'
}
check "the exit status is 1 if a condition holds" gates

not_judged() {
	compare 2 old.json new.json --fail-if 'cycles > +1%' && has "'cycles > \+1%' can't be judged: new.json has no figure" &&
		has '^instructions ' && compare 2 old.json new.json --fail-if 'instructions' && has '^hint: such as' &&
		compare 2 old.json nothing && has 'nothing. is neither a file nor a command' && compare 2 old.json compare.sh.txt && echo x >text && compare 2 old.json text && has '^hint: save counts with' &&
		compare 2 old.json && compare 2 a b c && compare 2 -j --markdown a b
}
check "the exit status is 2, never 0, if a condition can't be judged" not_judged

unlike() {
	sed 's/"provider":"simulated"/"provider":"simulated","machine":"one"/' old.json >one.json &&
		sed 's/"provider":"simulated"/"provider":"simulated","machine":"two"/; s/]}$/],"notes":["in f alone"]}/' new.json >two.json &&
		compare 0 one.json two.json && has '^note: the simulated CPUs differ' && has '^note: two.json: in f alone$' &&
		sed 's/"runs":1/"runs":1,"exit_status":134/' new.json >dead.json &&
		compare 2 old.json dead.json --fail-if 'instructions > +1%' && has '^NO ANSWER  instructions > \+1%: can.t be judged' &&
		has 'the command of dead.json was ended by signal 6' && compare 0 old.json dead.json &&
		sed 's/"quality"/"scaled":true,"quality"/' new.json >scaled.json && compare 0 old.json scaled.json &&
		has '^instructions .* one run: it may be chance$'
}
check "a note says why two results can't be compared" unlike

json() {
	compare 1 -j old.json new.json --fail-if 'instructions > +1%' && python3 - out <<-'END'
	import json, sys
	d = json.load(open(sys.argv[1]))
	assert d["schema"] == "tally-compare" and d["failed"] and d["conditions"][0]["result"] == "failed"
	row = d["events"][0]
	assert (row["old"], row["new"], row["significance"], row["repeatable"]) == (1000000, 1010001, "real", True)
	assert abs(row["relative"] - 0.010001) < 1e-9 and row["p"] is None
	END
}
check "JSON has the same" json

markdown() {
	compare 1 --markdown -o comment.md old.json new.json --fail-if 'instructions > +1%' && mv comment.md out &&
		has '^- \*\*failed\*\* `instructions > \+1%: \+1.00 %`$' &&
		has '^\| `instructions` \| 1,000,000 \| 1,010,001 \| \*\*\+1.00 %\*\* \| repeatable \|$' &&
		has '^\| `branch\\\|misses` \| 500 \| 450 '
}
check "names can't break a Markdown table" markdown

markdown_unknown() {
	compare 2 --markdown old.json new.json --fail-if 'instructions > +1%' --fail-if 'cycles > 1%' &&
		has '^- \*\*failed\*\* `instr' && has "^- \*\*no answer\*\* .cycles > 1%: can't be judged"
}
check "Markdown shows a condition without an answer" markdown_unknown

real_runs() {
	"$TALLY" stat -r 4 -j -o few.json -e task-clock,page-faults true && "$TALLY" stat -r 4 -j -o many.json \
		-e task-clock,page-faults sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; ls >/dev/null; ls >/dev/null' &&
		compare 1 few.json many.json --fail-if 'page-faults > +20%' && has '^note: the commands differ: true; sh -c' &&
		has '^FAILED  page-faults' && compare 0 few.json few.json --fail-if 'page-faults > +0%' &&
		cat few.json | compare 0 - few.json && has '^page-faults(:u)? .* 0 %'
}
check "real runs, compared with their spread" real_runs

if command -v perf >/dev/null && perf stat -j true >/dev/null 2>&1; then
	from_perf() {
		perf stat -r 4 -j -o perf.json -e task-clock,page-faults true && compare 0 perf.json few.json &&
			has '^page-faults(:u)?  +[0-9]+'
	}
	check "counts saved by perf are read too" from_perf
else
	number=$((number + 1))
	echo "ok $number - perf's saved counts are read too # SKIP perf does not write JSON here"
fi

# --- commands ----------------------------------------------------------------------------------------------------
in_turns() {
	compare 0 -r 3 --warmup 0 -e page-faults true 'ls /' && has "^old: 'true', 3 runs$" && has "^new: 'ls /', 3 runs$" &&
		has '^page-faults(:u)? .* \+[0-9.]+ %' && has '^elapsed ' && has '^note: the commands ran in turns, in random order \(--seed [0-9]+\)$'
}
check "two commands run in turns" in_turns
order() {
	for word in a b; do printf '#!/bin/sh\necho %s >>order\n' $word >$word.sh && chmod +x $word.sh; done
	rm -f order
	compare 0 -r 6 --warmup 2 --seed 5 -e page-faults ./a.sh ./b.sh && [ "$(grep -c a order)" = 8 ] && [ "$(grep -c b order)" = 8 ] &&
		paste - - <order | tee pairs | grep -q 'a.b' && grep -q 'b.a' pairs && ! grep -qE 'a.a|b.b' pairs && mv order first &&
		compare 0 -r 6 --warmup 2 --seed 5 -e page-faults ./a.sh ./b.sh && cmp first order
}
check "… in an order that is random within a turn, and repeats with its seed" order
shell() { compare 0 -r 2 -e page-faults -j 'true | true' 'X=1 true' && has '"command":"/bin/sh -c true \| true"' && has '"command":"/bin/sh -c X=1 true"'; }
check "the shell's characters need the shell" shell
failing() {
	compare 2 -r 2 true 'sh -c "exit 3"' && has 'failed with exit status 3' && has -- '--ignore-failure' &&
		compare 0 -r 2 --ignore-failure true 'sh -c "exit 3"' && compare 2 -r 2 'kill -9 $$' true && has 'ended by signal 9' &&
		compare 2 no-such-program true && has 'neither a file nor a command' && compare 2 . true && has 'is a directory'
}
check "a command that fails is an error" failing
prepared() {
	rm -f before
	compare 0 -r 3 --warmup 1 --prepare 'echo x >>before' -e page-faults true true && [ "$(wc -l <before)" = 8 ] &&
		compare 2 -r 1 --prepare 'exit 4' true true && has 'status 4'
}
check "--prepare runs before each run" prepared
printing() {
	compare 0 -r 2 --warmup 0 'echo loud' 'echo loud' && ! has '^loud' && compare 0 -r 2 --warmup 0 --show-output 'echo loud' true && [ "$(grep -c '^loud' out)" = 2 ]
}
check "what the commands print is dropped, or shown" printing
kept() {
	compare 0 -r 6 -e page-faults --save-old kept.json --save-new other.json true 'ls /' && cp out live && compare 0 kept.json other.json &&
		diff <(grep ^page-faults live) <(grep ^page-faults out) && compare 0 -r 3 -e page-faults kept.json 'ls /' && has "^old: kept.json, 'true', 6 runs$" &&
		compare 2 --save-old x kept.json true && has 'saved result already' && compare 2 -r 3 kept.json other.json && has "options for runs don't apply"
}
check "runs can be kept, and compared again" kept
values() {
	compare 0 -r 6 -e page-faults -j true 'ls /' && python3 - <<-'END'
	import json
	rows = {row["name"].split(":")[0]: row for row in json.load(open("out"))["events"]}
	row = rows["page-faults"]
	for side in "old", "new":
	    runs = row[side + "_runs"]
	    assert runs["count"] == 6 == len(runs["values"]), runs
	    assert abs(sum(runs["values"]) / 6 - row[side]) < 1e-6
	END
}
check "JSON has each run" values
cat >times.json <<'END'
{"schema":"tally-stat","version":1,"runs":1,"elapsed_ns":1.0e8,"events":[]}
{"schema":"tally-stat","version":1,"runs":1,"elapsed_ns":1.1e8,"events":[]}
{"schema":"tally-stat","version":1,"runs":1,"elapsed_ns":9.0e9,"events":[]}
{"schema":"tally-stat","version":1,"runs":1,"elapsed_ns":1.2e8,"events":[]}
{"schema":"tally-stat","version":1,"runs":1,"elapsed_ns":1.0e8,"events":[]}
{"schema":"tally-stat","version":1,"runs":1,"elapsed_ns":1.1e8,"events":[]}
END
outlier() { compare 0 times.json times.json && has '^elapsed +0.1000 s … 9.0000 s +0.1000 s … 9.0000 s$' && has '^note: old: run 3 is an outlier: it took 9 s, the median is 0.11 s$' && has '^elapsed .* ± [0-9]+ %'; }
check "a run that took much longer is named" outlier
if command -v script >/dev/null; then
	plot() {
		COLUMNS=80 LC_ALL=C.UTF-8 script -qec "\"$TALLY\" compare times.json times.json" /dev/null </dev/null >out 2>&1 &&
			has '^elapsed of each run' && has '^old █.*  0.1 … 9 s' && LC_ALL=C script -qec "\"$TALLY\" compare times.json times.json" /dev/null </dev/null >out 2>&1 && has '^new #.* 0.1 to 9 s'
	}
	check "a terminal shows the runs' distribution" plot
fi
told_apart() {
	cp old.json runnable.json && chmod +x runnable.json && compare 0 runnable.json new.json && has '^old: runnable.json' &&
		printf '#!/bin/sh\nexit 0\n' >script && compare 2 ./script true && has 'script is a script, but it is not executable' &&
		has "^hint: make it executable, or name its interpreter: 'sh ./script'" &&
		compare 0 -r 2 -e page-faults 'sh ./script' true && compare 2 ' ' true && has 'a command is empty'
}
check "results, scripts and commands are told apart" told_apart
row() { # NAME MEAN: ten runs with a sigma of 1
	echo "{\"name\":\"$1\",\"state\":\"counted\",\"value\":$2,\"sigma\":1,\"unit\":\"\",\"source\":\"kernel\"}"
}
series() { # FILE MEAN-OF-a NAME…: the others are 100
	{ echo '{"schema":"tally-stat","version":1,"provider":"kernel","runs":10,"elapsed_ns":null,"events":['
	  row a "$2"; for name in "${@:3}"; do echo ,; row "$name" 100; done; echo ']}'; } >"$1"
}
one_of_many() {
	series few.json 100 && series few2.json 101.05 && compare 0 few.json few2.json && has '^a .*%$' &&
		series wide.json 100 b c d e f g h i && series wide2.json 101.05 b c d e f g h i &&
		compare 0 wide.json wide2.json && has '^a .* \+1.05 % .*, one of several events: may be chance$' &&
		compare 1 wide.json wide2.json --fail-if 'a > +1%' &&
		compare 0 --markdown wide.json wide2.json && has '^\| `a` .*\| \+1.05 % \|' &&
		compare 0 -j wide.json wide2.json && python3 - out <<-'END'
	import json, sys
	rows = json.load(open(sys.argv[1]))["events"]
	assert rows[0]["p"] < 0.05 < rows[0]["adjusted_p"] and abs(rows[0]["adjusted_p"] / rows[0]["p"] - 9) < 1e-6
	END
}
check "a change that one of many events may show by chance is marked" one_of_many
interrupted() {
	timeout --preserve-status -s INT 2 "$TALLY" compare -r 1000 -e page-faults 'sleep 0.01' 'sleep 0.02' >out 2>&1
	[ $? = 130 ] && has '^elapsed ' && has 'until the interruption'
}
check "Ctrl-C shows the turns so far" interrupted

echo "1..$number"
