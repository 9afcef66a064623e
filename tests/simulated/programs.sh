#!/bin/bash
# Large programs under the simulated PMU, with compilers of their own, threads and garbage
# collectors: their output and exit status are the same as without it.  TAP; $TALLY is the binary.
set -u
number=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
# Otherwise the seeds of hashes are random, and so are the counts.
export LC_ALL=C.UTF-8 PYTHONHASHSEED=0 PERL_HASH_SEED=0

ok() { number=$((number + 1)); echo "ok $number - $1"; }
not_ok() { number=$((number + 1)); echo "not ok $number - $1"; tail -n 20 *.err *.log | sed 's/^/# /'; }
skip() { number=$((number + 1)); echo "ok $number - $1 # SKIP $2"; }

# run NAME command…: prints its output, and its status at the end; NAME.log gets tally's own
# messages
run() {
	local name=$1
	shift
	# Without "_", which bash puts at another place of the environment each time: that changes the number of instructions.
	timeout 120 env -u _ "$@" >"$name.out" 2>"$name.err" </dev/null
	echo "status $?" >>"$name.out"
}
same() { cmp -s native.out "$1.out" || { diff native.out "$1.out" >"$1.log"; return 1; }; }
count() { python3 -c 'import json, sys; print(int(json.load(open(sys.argv[1]))["events"][0]["value"]))' "$1" 2>>count.log; }
samples() { sed -n 's|.*[:,] \([0-9,]*\) samples.*|\1|p' record.err | tr -d ,; }

# simulated NAME MINIMUM PROCESSES command…: counts and samples it.  MINIMUM: the least number of
# instructions.  PROCESSES: at most this many samples are missing, compared with the count, for the
# second run has the same number of instructions, give or take a period (Python's two runs differ by a
# thousand); "-" for programs that depend on the clock.
simulated() {
	local name=$1 minimum=$2 processes=$3 period=10007
	shift 3
	rm -f ./*.out ./*.err ./*.log counts data
	run native "$@"
	run stat "$TALLY" stat --provider simulated -e instructions -j -o counts -- "$@" &
	run record "$TALLY" record --provider simulated -e instructions -c $period -o data -- "$@"
	wait
	local counted sampled missing
	counted=$(count counts) sampled=$(samples)
	missing=$((counted / period - sampled))
	echo "$counted instructions, $sampled samples" >sum.log
	if same stat && same record && [ "$counted" -ge "$minimum" ] && [ "$sampled" -ge $((minimum / period)) ] &&
		{ [ "$processes" = - ] || { [ $missing -ge -1 ] && [ $missing -lt "$processes" ]; }; } &&
		"$TALLY" report -i data >report.out 2>report.err && grep -q 'vsim/instructions/' report.out; then
		ok "$name: prints and ends as it does unsimulated, $counted instructions"
	else
		not_ok "$name: prints and ends as it does unsimulated"
	fi
}

python=$(python3 -c 'import sys; print(sys.executable)') # the one in PATH may be a script that looks for it
# Removes the folder in which it runs from its path: it would list the test's own files.
simulated python3 5000000 1 "$python" -S -c 'import sys; del sys.path[0]
import re
print(sorted(re.findall(r"\w+", "survives what it runs")), file=__import__("sys").stdout); raise SystemExit(3)'

if command -v perl >/dev/null; then
	simulated perl 1000000 1 perl -e 'my %h; $h{$_ % 7} += $_ for 1..3000; print map("$_ $h{$_}\n", sort keys %h); exit 3'
else
	skip perl "it is not installed"
fi

printf 'int f(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * i; return s; }\n' >f.c
for compiler in gcc clang; do
	if command -v $compiler >/dev/null; then
		simulated $compiler 10000000 3 $compiler -O1 -S -o - f.c
	else
		skip $compiler "it is not installed"
	fi
done

if command -v node >/dev/null; then
	simulated node 50000000 - node -e 'let s = 0; for (let i = 0; i < 50000; i++) s += i % 7;
		setTimeout(() => { console.log(s); process.exit(3); }, 1)'
else
	skip node "it is not installed"
fi

cat >Sum.java <<'END'
class Sum {
	public static void main(String[] words) throws Exception {
		long[] sum = new long[1];
		Thread thread = new Thread(() -> { for (int i = 0; i < 20000; i++) sum[0] += i * 7 % 13; });
		thread.start();
		thread.join();
		System.gc();
		System.out.println(sum[0]);
		System.exit(3);
	}
}
END
if ! command -v java >/dev/null || ! javac Sum.java 2>javac.log; then
	skip java "java or javac is not installed"
else
	simulated java 20000000 - java -cp . Sum
fi
echo "1..$number"
