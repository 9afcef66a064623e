#!/bin/bash
# A late sample counts for the line that took the time: in each view with lines, with names from files
# or from the recording.  Exact samples stay where they are.  TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export PAGER=cat NO_COLOR= HOME=$scratch LC_ALL=C.UTF-8

case $(uname -m) in x86_64|aarch64) ;; *) skip_all "code of $(uname -m) is not read" ;; esac
have cc && have python3 || skip_all "needs a C compiler and python3"
cat >chain.c <<'C'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define KEEP(x) __asm__ volatile("" : "+r"(x))
static uint32_t *cells;
static inline __attribute__((always_inline)) uint64_t follow(uint64_t at)
{
	uint64_t next = cells[at]; KEEP(next); /* the load */
	return next;
}
__attribute__((noinline)) uint64_t walk(uint64_t rounds)
{
	uint64_t at = 0, sum = 0;
	for (uint64_t i = 0; i < rounds; i++) {
		at = follow(at); KEEP(at); /* the call */
		sum += i;
		KEEP(sum);
		sum ^= 3;
		KEEP(sum);
	}
	return sum + at;
}
int main(int argc, char **argv)
{
	enum { COUNT = 1 << 23 };
	uint64_t seed = 88172645463325252u;
	cells = malloc(COUNT * sizeof(*cells));
	for (uint32_t i = 0; i < COUNT; i++)
		cells[i] = i;
	for (uint64_t i = COUNT - 1; i; i--) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		uint32_t other = (uint32_t)(seed % i), kept = cells[i];
		cells[i] = cells[other];
		cells[other] = kept;
	}
	return walk((uint64_t)atoi(argv[1])) == 1 ? argc : 0;
}
C
cc -O2 -g -o chain chain.c || skip_all "the program can't be compiled"
load=$(grep -n 'the load' chain.c | cut -d: -f1) call=$(grep -n 'the call' chain.c | cut -d: -f1)
timeout 60 "$TALLY" record -q -e cpu-clock:u -F 4000 -o chain.data -- ./chain 2000000 >out 2>err || skip_all "nothing can be recorded here"

cat >lines.py <<'P'
import json, sys
found = json.load(open(sys.argv[1]))["functions"][0]
for line in sorted(found["lines"], key=lambda line: -line["samples"]):
    if line["samples"] or "inlined" in line:
        print(line["line"], round(line["percent"]), round(line.get("inlined", {"percent": 0})["percent"]))
P
lines() { timeout 60 "$TALLY" annotate --json --no-asm "$@" >json 2>err && python3 lines.py json; }

lines -i chain.data walk >out
check "the load's line comes first, and most of the function's own line is inlined" eval 'head -n 1 out | grep -Eq "^$load (9[0-9]|100) 0$" && grep -Eq "^$call [0-9]+ (9[0-9]|100)$" out'
lines --raw-addresses -i chain.data walk >out
check "--raw-addresses shows the lines of the recorded addresses" eval '! head -n 1 out | grep -q "^$load " && grep -q "\"charged\":\"address\"" json'
timeout 60 "$TALLY" annotate -i chain.data walk >out 2>err
check "the head leads from the function's own line to the inlined one" grep -Eq "^ +[0-9.]+% .* chain.c:$call → chain.c:$load  " out
check "the code names the line at which a function is inlined" grep -Eq "chain.c:$call  inlined: follow" out
LC_ALL=C timeout 60 "$TALLY" annotate -i chain.data walk >out 2>err
check "… without UTF-8, too" grep -Eq "chain.c:$call -> chain.c:$load  " out
timeout 60 "$TALLY" annotate -i chain.data --html walk >out 2>err
check "… and on the page, which opens at the function's own line" grep -Eq "chain.c:$call → chain.c:$load</a>" out
check "one source line of the page is the hottest" test "$(grep -c 'class="r hottest"' out)" = 1

# ---- the other views

timeout 60 "$TALLY" report --stdio --no-children --sort srcline -i chain.data >out 2>err
check "report --sort srcline" eval 'grep -m 1 "^ *[0-9.]*%" out | grep -q "chain.c:$load$"'
timeout 60 "$TALLY" report --stdio --no-children --raw-addresses --sort srcline -i chain.data >out 2>err
check "… with --raw-addresses" eval '! grep -m 1 "^ *[0-9.]*%" out | grep -q "chain.c:$load$"'
timeout 60 "$TALLY" report --stdio --no-inline -i chain.data >out 2>err
timeout 60 "$TALLY" report --stdio --no-inline --raw-addresses -i chain.data >raw 2>err
check "sums by symbol don't change" cmp out raw
timeout 60 "$TALLY" report --stdio --no-children -i chain.data >out 2>err
check "the inlined function has the samples" eval 'grep -m 1 "^ *[0-9.]*%" out | grep -q "follow"'
timeout 60 "$TALLY" fold -i chain.data >out 2>err
check "… in folded stacks, too" eval 'sort -t" " -k2 -n -r out | head -n 1 | grep -q "walk.*;follow"'
timeout 60 "$TALLY" script -F ip,srcline -i chain.data >out 2>err
check "script shows what was recorded" eval '[ "$(grep -c "chain.c:$load$" out)" -lt "$(wc -l <out)" ] && ! sort out | uniq -c | sort -n | tail -n 1 | grep -q "chain.c:$load$"'

# ---- where the names come from

cp chain.data packed.data
lines -i packed.data walk >here
mkdir away && mv chain chain.c away/
lines -i packed.data walk >out
check "the recording has the lines, without the program" cmp out here
mv away/chain away/chain.c .
timeout 60 "$TALLY" record -q --no-pack -e cpu-clock:u -F 4000 -o bare.data -- ./chain 2000000 >out 2>err
lines -i bare.data walk >out
check "without names in the recording, the file's code tells" eval 'head -n 1 out | grep -q "^$load "'
if have perf && perf record -q -e cpu-clock:u -F 4000 -o perf.data ./chain 2000000 >out 2>err; then
	lines -i perf.data walk >out
	check "perf's recordings" eval 'head -n 1 out | grep -q "^$load "'
	timeout 60 "$TALLY" pack -i perf.data -o perf-packed.data >out 2>err
	lines -i perf.data walk >here
	mv chain chain.c away/
	lines -i perf-packed.data walk >out
	check "… packed, without the program" cmp out here
	mv away/chain away/chain.c .
else
	skip "perf's recordings" "needs perf, which may record"
	skip "… packed, without the program" "needs perf, which may record"
fi
TALLY_LIBLLVM=/nonexistent.so lines -i bare.data walk >out
check "no disassembler is needed" eval 'head -n 1 out | grep -q "^$load "'

# ---- exact samples

same() { # RECORDING FUNCTION: the lines don't depend on --raw-addresses, and no sentence says that they do
	lines -i "$1" "$2" >out && lines --raw-addresses -i "$1" "$2" >raw && cmp out raw &&
		timeout 60 "$TALLY" annotate -i "$1" "$2" >out 2>err && ! grep -q "samples count for\|skid\|:pp" out
}
timeout 60 "$TALLY" record -q -e page-faults -c 1 -o faults.data -- ./chain 10 >out 2>err
check "page faults are at the instruction that faulted" same faults.data main
if timeout 60 "$TALLY" record -q --provider simulated -e instructions:u -c 10007 -o simulated.data -- ./chain 10 >out 2>err; then
	check "the simulated PMU's events" same simulated.data main
else
	skip "the simulated PMU's events" "$(head -n 1 err)"
fi

# ---- where it opens

if have script && have less; then
	cat >pager <<'P'
#!/bin/sh
echo "$LESS" >"$PAGER_LOG"
cat >"$PAGER_LOG.text"
P
	chmod +x pager
	export PAGER_LOG=$scratch/log TALLY_PAGER=$scratch/pager TERM=xterm
	script -qec "stty rows 12 cols 120; exec timeout 60 '$TALLY' annotate -i chain.data walk" /dev/null </dev/null >out 2>err
	top=$(sed -n 's/^FRSX +\([0-9]*\)g$/\1/p' log)
	# NO_COLOR is set but empty, so that the text has colours
	hottest=$(sed 's/\x1b\[[0-9;]*m//g' log.text | grep -nE '^ *[0-9.]+% ± *[0-9.]+ [^c]*[0-9a-f]+  ' | sort -t: -k2 -n -r | head -n 1 | cut -d: -f1)
	on_screen() { [ "${top:-0}" -gt 1 ] && [ "$hottest" -ge "$top" ] && [ "$hottest" -lt $((top + 11)) ]; }
	check "the pager opens at the hottest instruction (line $hottest of $(wc -l <log.text), from ${top:-1})" on_screen
	script -qec "stty rows 200 cols 120; exec timeout 60 '$TALLY' annotate -i chain.data walk" /dev/null </dev/null >out 2>err
	check "… unless everything is on the first screen" grep -qx FRSX log
else
	skip "the pager opens at the hottest instruction" "needs script and less"
	skip "… unless everything is on the first screen" "needs script and less"
fi
done_testing
