#!/bin/bash
# What runtimes need for names: tally says it where names are missing, and the test tries it.  A
# running JVM, a JVM that is started, Python by its version.  (node: jit.sh.)  TAP; $TALLY is the
# binary.
set -u
. "$(dirname "$0")/tap.sh"
running=
trap '[ -z "$running" ] || kill $running 2>/dev/null; [ -z "$running" ] || rm -f /tmp/perf-$running.map; rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export PAGER=cat NO_COLOR= HOME=$scratch XDG_CACHE_HOME=$scratch/cache DEBUGINFOD_URLS=
mkdir cache

record() { timeout 60 "$TALLY" record -e cpu-clock -F 500 -o "$@" >out 2>&1 </dev/null; }
record probe.data -- true || skip_all "tally can't record here: $(head -c 100 out | tr '\n#' '  ')"

cat >Work.java <<'END'
public class Work {
	static double inner(int n) { double s = 0; for (int i = 0; i < 2000; i++) s += Math.sqrt(i * n); return s; }
	public static void main(String[] arguments) {
		double total = 0;
		long end = System.currentTimeMillis() + Long.parseLong(arguments[0]);
		while (System.currentTimeMillis() < end) for (int i = 0; i < 100; i++) total += inner(i);
		System.out.println(total);
	}
}
END
start='java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit'
if have javac && have jcmd && javac Work.java 2>out; then
	record java.data --call-graph dwarf -- java -cp . Work 700
	check "a JVM's code without names: the end of the recording tells how to get them" \
		grep -q "^hint: JIT code of java has no names: start it with $start (JDK 17), or name it while it runs: jcmd PID Compiler.perfmap$" out
	record frames.data --call-graph fp -- java -cp . Work 700
	check "… and to keep frame pointers if stacks are followed only by these" \
		grep -q "start it with $start -XX:+PreserveFramePointer (JDK 17)" out
	# shellcheck disable=SC2086
	record named.data --call-graph dwarf -- $start -cp . Work 1500
	timeout 60 "$TALLY" report --stdio -i named.data >names 2>err
	check "… with that advice, the code has names" eval 'grep -Eq "perf\.map +double Work.inner\(int\)|Work.main" names && ! grep -q hint: out names err'
	rm -f "/tmp/$("$TALLY" script -F ip,sym,dso -i named.data 2>/dev/null | grep -oEm 1 'perf-[0-9]+\.map')"
	java -cp . Work 20000 >/dev/null 2>&1 & running=$!
	sleep 1
	record live.data --call-graph dwarf -p $running -- sleep 0.5
	check "for a running JVM, the advice has its pid" grep -q "no names: jcmd $running Compiler.perfmap names it now; next time start it with" out
	jcmd $running Compiler.perfmap >out 2>&1
	timeout 60 "$TALLY" report --stdio -i live.data >out 2>err
	check "… and following it names the code, also in the earlier recording" eval 'grep -q "Work.inner\|Work.main" out && ! grep -q hint: out err'
	kill $running
	wait $running 2>/dev/null
	rm -f /tmp/perf-$running.map
	running=
else
	skip "a JVM's code has names" "there is no JDK"
fi

cat >work.py <<'END'
import time
def inner(n):
    s = 0
    for i in range(2000): s += i * n
    return s
end = time.process_time() + 0.7
while time.process_time() < end: inner(3)
END
python=$(command -v python3 && python3 -c 'import sys; print(sys.executable)' 2>/dev/null | tail -n 1)
python=${python##*$'\n'}
minor=$([ -z "$python" ] || "$python" -c 'import sys; print(sys.version_info[1])' 2>/dev/null)
record python.data --call-graph dwarf -- "${python:-false}" work.py
timeout 60 "$TALLY" report --stdio -i python.data >out 2>err
if ! grep -q ' _PyEval_EvalFrameDefault$' out; then
	skip "a message says that names of Python functions are missing" "there is no python3 with symbols"
elif [ "$minor" -lt 12 ]; then
	check "a message says that names of Python functions are missing, and which version gives them" \
		grep -q "^hint: [0-9]*% of the samples are in Python code, whose functions are not visible: Python 3.$minor can't name them; from 3.12 on, start it with python3 -X perf$" out
else
	check "a message says that names of Python functions are missing, and how to get them" \
		grep -q "^hint: [0-9]*% of the samples are in Python code, whose functions are not visible: start it with python3 -X perf" out
	record python.data --call-graph dwarf -- "$python" -X perf work.py
	timeout 60 "$TALLY" report --stdio -i python.data >out 2>err
	check "… with that advice, the functions have names" eval 'grep -q "py::inner:" out && ! grep -q hint: out err'
fi

done_testing
