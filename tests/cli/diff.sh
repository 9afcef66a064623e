#!/bin/bash
# `tally diff`: finds differences between two builds of a program, and none between two runs.  TAP;
# $TALLY is the binary.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export NO_COLOR= LC_ALL=C.UTF-8

# STATUS ARGUMENT…: the expected exit status of diff
diff_exits() { local wanted=$1; shift; "$TALLY" diff "$@" >out 2>&1 </dev/null; [ $? = "$wanted" ]; }
has() { grep -qE -- "$1" out; }
lacks() { ! has "$1"; }

# --- text --------------------------------------------------------------------------------------------------

printf 'p;main;alpha 400\np;main;beta 300\np;main;gamma 200\np;main;little 1\n' >old.folded
printf 'p;main;alpha 410\np;main;beta 610\np;main;gamma 195\n' >new.folded

table() {
	diff_exits 0 old.folded new.folded && has '^old: old.folded: 901 samples$' &&
		has '^new: new.folded: 1,215 samples \(\+34.9 %\)$' &&
		has '^33.30 +50.21 +\+16.91 +\+12.[0-9]+ … \+2[01].[0-9]+ +\[unknown\] +beta$' && lacks little
}
check "a table of old, new, change and interval" table

other_events() { # printed before the table, where neither pager nor pipe hides it
	local event
	for event in cycles:u faults; do
		printf 'prog 10/11 [000] 9.1:        100 %s: \n\t    1234 main+0x4 (/opt/prog)\n\n' $event >${event%:u}.script
	done
	"$TALLY" diff cycles.script faults.script >out 2>err </dev/null && grep -q "warning: the events differ, 'cycles:u' and 'faults'" err &&
		lacks 'events differ' && "$TALLY" diff --markdown cycles.script faults.script 2>err >out </dev/null && has '^- the events differ'
}
check "if the two events differ, a warning comes first" other_events

malformed() { (cat cycles.script && echo nonsense) >malformed.script; diff_exits 0 cycles.script malformed.script && has 'warning: malformed.script: skipped 1 of '; }
check "a warning names the file that it is about" malformed

malformed_twice() { # the numbers differ, the kind is one
	(cat malformed.script && echo nonsense) >again.script
	for run in 1 2 3 4 5 6; do cp malformed.script run$run.script; done
	diff_exits 0 --old malformed.script --old again.script --new cycles.script --new run1.script &&
		has 'warning: malformed.script: skipped 1 of .* \(likewise again.script, run1.script\)$' && [ "$(grep -c 'warning: .*skipped' out)" = 1 ] &&
		diff_exits 0 --old run1.script --old run2.script --old run3.script --new run4.script --new run5.script --new run6.script &&
		has 'warning: run1.script: .* \(likewise run2.script, run3.script, run4.script and 2 more\)$' && [ "$(grep -c 'warning: .*skipped' out)" = 1 ]
}
check "one warning of a kind names all files that it is of" malformed_twice

in_objects() { OBJECTS=$2 "$here/make_recording.py" in_objects "$1"; } # FILE OBJECT,OBJECT…
versions() { # digits in a name are no figures: each message is about another object
	in_objects old.data /absent/app-1.0 && in_objects new.data /absent/app-1.1 && diff_exits 0 old.data new.data &&
		has 'warning: old.data: 100% of .* app-1.0 ' && has 'warning: new.data: 100% of .* app-1.1 ' && lacks likewise &&
		in_objects more.data '/absent/app-1.0,[heap]' && diff_exits 0 old.data more.data &&
		has 'warning: old.data: 100% of .* \(likewise more.data\)$'
}
check "… but not of files that lack the names of other objects" versions

newline() { # neither an empty line nor a line of its own
	in_objects line.data "/absent/$(printf 'a\n\ntally diff: warning: b')" &&
		"$TALLY" diff line.data old.data >table 2>out </dev/null &&
		has 'warning: line.data: .*a\?\?tally diff: warning: b' && [ "$(grep -c '^tally diff: warning: ' out)" = 2 ] &&
		grep -qE '^100.00 .* a\?\?tally diff: warning: b +\[a\?\?tally diff: warning: b\]$' table
}
check "a newline in an object's name does not forge a warning or a row" newline

same_file() { diff_exits 0 new.folded new.folded --normalize samples && has '^610 +610 +0 ' && lacks '\+0( |\.00)'; }
check "an unchanged value is 0, without a sign" same_file

by_chance() { # 40 functions, and one of them just outside of its own interval
	for i in $(seq 40); do echo "p;f$i 100"; done >many.old
	sed 's/f7 100/f7 135/' many.old >many.new
	diff_exits 0 many.old many.new && has 'noise .* f7$' && has '^1 row is called noise, although 0 is outside of the interval: of 40 compared rows'
}
check "a note explains a change called noise although its interval excludes 0" by_chance

came() { # a missing function took 0, without a unit
	printf 'prog 10/11 [000] 9.1:    1000000 cpu-clock: \n\t    1234 %s+0x4 (/opt/prog)\n\n' there >there.script
	printf 'prog 10/11 [000] 9.1:    1000000 cpu-clock: \n\t    1234 %s+0x4 (/opt/prog)\n\n' there came >two.script
	diff_exits 0 there.script two.script --normalize time && has '^ *0 +1.00 ms +\+1.00 ms .* came$'
}
check "a time of zero is shown as 0" came

limits() {
	diff_exits 0 old.folded new.folded --percent-limit 0 && has 'noise +\[unknown\] +little' &&
		diff_exits 0 -n 1 old.folded new.folded && has 'beta' && lacks 'alpha' && has 'left out: 2 beyond -n'
}
check "limits leave rows out, and a line says so" limits

below() { # reports changes that are not shown
	diff_exits 0 --percent-limit 60 old.folded new.folded && has '4 below 60 % on both sides \(--percent-limit\), of which 3 changed$'
}
check "the changes below the limit are counted" below

totals() {
	diff_exits 0 old.folded new.folded --children --normalize samples && has '^901 +1215 +\+314 .* main$' &&
		has '^300 +610 +\+310 .* beta$'
}
check "--children compares totals, --normalize numbers of samples" totals

markdown() {
	diff_exits 0 --markdown old.folded new.folded && has '^\| OLD % \| NEW % \| CHANGE \|' &&
		has '^\| 33.30 \| 50.21 \| \*\*\+16.91\*\* \|.*\| `beta` \|$'
}
check "--markdown writes a table for a pull request" markdown

json() {
	diff_exits 0 -j old.folded new.folded && python3 - <<-'END' >>out 2>&1
	import json
	d = json.load(open("out"))
	rows = {r["function"]: r for r in d["rows"]}
	assert d["schema"] == "tally-diff" and d["compared"] == 4 and len(rows) == 4
	assert rows["beta"]["significant"] and rows["beta"]["change"]["p"] < 1e-6
	assert not rows["little"]["significant"] and rows["little"]["presence"] == "removed"
	assert abs(rows["beta"]["change"]["difference"] - (61000 / 1215 - 30000 / 901)) < 1e-9
	END
}
check "-j writes JSON with every row" json

gate() {
	printf 'main;parse 200\nmain;emit 300\nmain;vec<int>::push 500\n' >gate.old
	printf 'main;parse 400\nmain;emit 290\nmain;vec<int>::push 310\n' >gate.new
	diff_exits 1 gate.old gate.new --fail-if 'parse > +2' && has '^FAILED  parse > \+2: 20 became 40$' &&
		diff_exits 0 gate.old --fail-if 'parse > +20' --fail-if 'parse > +100%' gate.new && has '^passed  parse > \+20: 20 became 40$' &&
		diff_exits 1 gate.old gate.new --fail-if 'parse > +99%' && diff_exits 1 gate.old gate.new --fail-if 'parse >= 40' &&
		diff_exits 1 gate.old gate.new --fail-if 'vec<int>::push < -18' && diff_exits 1 gate.old gate.new --fail-if '* > +19' &&
		has '^FAILED  \* > \+19: parse, 20 became 40$' && diff_exits 0 gate.old gate.new --fail-if '* > +21' &&
		diff_exits 1 gate.old gate.new --normalize samples --fail-if 'parse > +199' -n 1 --percent-limit 50 &&
		diff_exits 0 gate.old gate.new --fail-if 'emit < -0.5' && has 'emit < -0.5: 30 became 29, which is within the noise$' &&
		diff_exits 1 gate.old gate.new --fail-if 'emit < -0.5' --past-noise
}
check "--fail-if fails only if a function changed by that much, and not by chance" gate
unjudged() {
	diff_exits 2 gate.old gate.new --fail-if 'nope > +1' && has '^NO ANSWER  nope > \+1$' && has 'neither side has samples of nope' &&
		diff_exits 2 gate.old gate.new --fail-if 'parse' && diff_exits 2 gate.old nothing --fail-if 'parse > +2' &&
		diff_exits 1 -j gate.old gate.new --fail-if 'parse > +2' --fail-if '* > 90' && python3 - <<-'END' >>out 2>&1
		import json
		conditions = json.loads(open('out').readline())['conditions']
		assert conditions == [{'condition': 'parse > +2', 'name': 'parse', 'result': 'failed'},
		                      {'condition': '* > 90', 'name': None, 'result': 'passed'}], conditions
	END
}
check "... and distinguishes conditions that passed from those that can't be judged" unjudged

wrong() {
	diff_exits 2 old.folded && has 'name two recordings' && diff_exits 2 old.folded new.folded old.folded &&
		diff_exits 2 --sort pid old.folded new.folded && diff_exits 1 old.folded nothing.folded && has 'nothing.folded' &&
		diff_exits 2 --normalize more old.folded new.folded && diff_exits 2 -j --markdown old.folded new.folded
}
check "a message says why recordings can't be compared" wrong

escapes() {
	printf 'p;\033[31mbad\tname|`x` 50\n' >bad.folded
	diff_exits 0 old.folded bad.folded && ! grep -q $'\033' out && diff_exits 0 --markdown old.folded bad.folded &&
		! grep -q $'\033' out && has "name\\\\\|'x'"
}
check "names can't control the terminal or the table" escapes

graph() {
	"$TALLY" flamegraph --diff old.folded -o diff.svg new.folded 2>out && "$TALLY" flamegraph --diff old.folded new.folded >again.svg &&
		cmp diff.svg again.svg >out && python3 -c 'import xml.dom.minidom as m; m.parse("diff.svg")' >>out 2>&1 &&
		grep -qE 'beta: 50.21.%, 610 samples, before 33.30.%: \+16.91</title><rect class="d10"' diff.svg &&
		grep -qE 'alpha: .*: -10.65</title><rect class="d1"' diff.svg && grep -qE 'main: .*: [-+]0.00</title><rect class="d5"' diff.svg
}
check "a differential flame graph: grown boxes are red, shrunken ones blue" graph
same_graph() { # the output without a comparison has none of it
	"$TALLY" flamegraph -o plain.svg new.folded 2>out && ! grep -qE 'class="d[0-9]|flame-steps|oldSamples' plain.svg
}
check "other flame graphs have no parts for differences" same_graph

# Writes folded text: random samples of one program, by seed.
drawn() { # SEED SAMPLES
	awk -v seed="$1" -v samples="$2" 'BEGIN { srand(seed); for (; samples; samples--) { at = rand(); sum["f" int(at * at * 200)]++ }
		for (name in sum) print "p;main;" name, sum[name] }'
}
quiet() {
	local quiet=0 i
	for i in $(seq 20); do
		drawn "$i" 2000 >one.folded
		drawn "$((i + 1000))" 1500 >other.folded
		diff_exits 0 one.folded other.folded || return 1
		has '^0 of [0-9]+ functions changed' && quiet=$((quiet + 1))
	done
	echo "$quiet of 20" >>out
	[ "$quiet" -ge 19 ]
}
check "two draws of one program show no change in 19 of 20 comparisons" quiet

# --- recordings --------------------------------------------------------------------------------------------

# Spends microseconds of CPU time, which last the same whatever the core's other thread does.
cat >program.c <<'END'
#include <stdlib.h>
#include <time.h>
volatile unsigned long sink;
__attribute__((noinline)) static long used_ns(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec * 1000000000 + t.tv_nsec; }
#define WORK(name, us) __attribute__((noinline, noclone)) void name(void) \
	{ for (long end = used_ns() + (us) * 1000L; used_ns() < end;) \
		{ unsigned long x = sink; for (long i = 0; i < 2000; i++) x = x * 2862933555777941757UL + 3037000493UL; sink = x; } }
WORK(alpha, 400)
WORK(beta, 300 * TIMES)
WORK(gamma_, 200)
int main(int argc, char **argv)
{
	for (int i = argc > 1 ? atoi(argv[1]) : 0; i--;) { alpha(); beta(); gamma_(); }
	return 0;
}
END
record() { timeout 120 "$TALLY" record -q -e cpu-clock:u -F 999 -o "$1" -- "$2" 2000 >out 2>&1 </dev/null; }
if ! cc -g -O1 -DTIMES=1 -o before program.c 2>out || ! cc -g -O1 -DTIMES=2 -o after program.c 2>out; then
	skip "a function that takes twice as long is found" "there is no C compiler"
elif ! record a1 ./before || ! record b1 ./after || ! record a2 ./before; then
	skip "a function that takes twice as long is found" "nothing can be recorded here"
else
	found() { # only its time doubled against the others; if the machine was held, all change alike
		diff_exits 0 --normalize time -j a1 b1 && python3 - <<-'END' >>out 2>&1
		import json
		d = json.load(open("out"))
		rows = {r["function"]: r for r in d["rows"]}
		beta = rows["beta"]
		times = {name: rows[name]["change"]["new"] / rows[name]["change"]["old"] for name in ("alpha", "beta", "gamma_")}
		assert beta["was_object"] == "before" and beta["object"] == "after", beta
		assert all(1.5 < times["beta"] / times[name] < 2.6 for name in ("alpha", "gamma_")), rows
		if all(0.85 < times[name] < 1.2 for name in ("alpha", "gamma_")):
		    others = [rows[name]["change"]["difference"] for name in ("alpha", "gamma_")]
		    assert beta["significant"] and beta["change"]["low"] > 0, beta
		    assert all(abs(other) < beta["change"]["difference"] / 2 for other in others), rows
		END
	}
	check "a function that takes twice as long is found" found
	shares() { # independent of the machine
		diff_exits 0 -j a1 b1 && python3 - <<-'END' >>out 2>&1 &&
		import json
		beta = next(r for r in json.load(open("out"))["rows"] if r["function"] == "beta")
		assert beta["significant"] and 0 < beta["change"]["low"] and 8 < beta["change"]["difference"] < 24, beta
		END
		diff_exits 0 a1 b1 && has '^[0-9.]+ +[0-9.]+ +\+[0-9.]+ .* after \(was before\) +beta$' &&
			[ "$(sed -n '/^OLD/{n;p}' out | awk '{ print $NF }')" = beta ]
	}
	check "the function whose time doubled has the largest change" shares
	runs() { diff_exits 0 --old a1 --old a2 --new b1 && has '^old: a1, a2: ' && has 'a run\)$'; }
	check "several recordings of a side are compared run by run" runs
	nameless() {
		strip -o stripped before && record s1 ./stripped && diff_exits 0 a1 s1 && has 'warning: s1: [0-9]*% of samples lack names' &&
			lacks 'warning: a1: ' && "$TALLY" flamegraph -i s1 --diff a1 -o diff.svg >out 2>&1 && has 'warning: s1: [0-9]*% of'
	}
	if have strip; then check "... and a warning names the recording" nameless; else skip "... and a warning names the recording" "no strip"; fi
	lines() { # a function's samples are the sum of its lines'
		diff_exits 0 --sort srcline a1 b1 && has '^[0-9.]+ +[0-9.]+ +\+[0-9.]+ .* beta program\.c:[0-9]+$' &&
			diff_exits 0 -j --sort sym a1 b1 && mv out functions && diff_exits 0 -j --sort srcline a1 b1 &&
			python3 - <<-'END' >>out 2>&1
			import collections, json
			sums = collections.Counter()
			for row in json.load(open("out"))["rows"]:
			    function, _, line = row["function"].partition(" program.c:")
			    sums[function] += row["old_samples"] + row["new_samples"]
			    assert line or function not in ("alpha", "beta", "gamma_"), row
			for row in json.load(open("functions"))["rows"]:
			    if row["function"] in ("alpha", "beta", "gamma_"):
			        assert sums[row["function"]] == row["old_samples"] + row["new_samples"] > 0, (row, sums)
			END
	}
	check "--sort srcline compares functions' lines" lines
	if ! command -v perf >perf.path; then
		skip "shares and changes are those of perf diff" "there is no perf"
	else
		perf_agrees() {
			# perf matches by object's name, too: the same program under one name
			timeout 60 perf diff -s sym a1 a2 >perf.out 2>&1 </dev/null || { cat perf.out >out; return 1; }
			diff_exits 0 -j a1 a2 && python3 - <<-'END' >>out 2>&1
			import json, re
			rows = {r["function"]: r for r in json.load(open("out"))["rows"]}
			seen = 0
			for line in open("perf.out"):
			    m = re.match(r"\s*([0-9.]+)%\s+([-+][0-9.]+)%\s+\[\.\] (alpha|beta|gamma_)\s*$", line)
			    if m:
			        seen += 1
			        row = rows[m[3]]
			        assert abs(row["old_percent"] - float(m[1])) < 0.011, (line, row)
			        assert abs(row["change"]["difference"] - float(m[2])) < 0.021, (line, row)
			assert seen == 3, open("perf.out").read()
			END
		}
		check "shares and changes are those of perf diff" perf_agrees
	fi
fi

echo "1..$number"
