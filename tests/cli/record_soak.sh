#!/bin/bash
# A long recording under a fork storm.  The recorder's memory must not grow with the tasks and
# programs that come and go; nor must the memory for naming at the end.
# $1: seconds; then options of record (-a: the whole machine, which should run few other programs).
# SOAK_RATE: programs a second (1500).  SOAK_NEW=1: a fifth of them are new ones, so that memory
# grows until its limits are reached.  SOAK_SAMPLES: a file that gets "seconds RssAnon RssFile Pss",
# in KiB, of each reading.
# TAP; $TALLY is the binary, $EXEC_STORM RATE SECONDS PROGRAM… starts programs.
set -u
seconds=$1
shift
samples=${SOAK_SAMPLES:-samples}
case $samples in /*) ;; *) samples=$PWD/$samples ;; esac
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
[ -n "${SOAK_SAMPLES-}" ] || samples=$scratch/samples
new=; [ -z "${SOAK_NEW-}" ] || new=+/usr/bin/id
if ! "$TALLY" record -q -o probe -e cpu-clock true 2>out; then
	echo "1..0 # SKIP cpu-clock can't be sampled: $(head -1 out)"
	exit 0
fi
"$TALLY" record "$@" -F 4000 -e cpu-clock --call-graph dwarf -o soak -- \
	"$EXEC_STORM" "${SOAK_RATE:-1500}" "$seconds" /bin/true /bin/pwd /usr/bin/id /bin/uname $new >out 2>&1 </dev/null &
recorder=$!
look() {
	awk -v at=$SECONDS '/^Pss:/ { pss = $2 } /^Pss_File/ { file = $2 } /RssAnon/ { anon = $2 } /RssFile/ { file = $2 }
	     END { print at, anon, file, pss }' "/proc/$recorder/status" "/proc/$recorder/smaps_rollup" 2>/dev/null
}
step=$((seconds / 10)); [ "$step" -gt 0 ] || step=1; [ "$step" -lt 10 ] || step=10
mkfifo never
: >"$samples"
SECONDS=0
while [ "$((SECONDS + step))" -lt "$seconds" ] && sleep $step; do look >>"$samples"; done
# The same process names the samples when the storm is over: from now on, this finds its peak by
# frequent readings.
naming=0 now=0
while kill -0 $recorder 2>/dev/null; do
	while read -r key value _; do [ "$key" = RssAnon: ] && now=$value; done <"/proc/$recorder/status"
	[ "$now" -gt "$naming" ] && naming=$now
	read -r -t 0.01 <>never
done 2>/dev/null
wait $recorder && grep -q 'samples in' out
[ $? = 0 ] && echo "ok 1 - the recording ends well" || echo "not ok 1 - the recording ends well"
sed 's/^/# /' out
# The slope of the line that fits best, from half of the time on.
awk -v seconds="$seconds" 'NF == 4 { at[++n] = $1; anon[n] = $2; file[n] = $3; pss[n] = $4 }
     function told(name, values,   i, j, m, x, y, xx, xy, sorted, v) {
	for (i = 1; i <= n; i++) {
		for (j = i; j > 1 && sorted[j - 1] > values[i]; j--) sorted[j] = sorted[j - 1]
		sorted[j] = values[i]
		if (at[i] * 2 < seconds) continue
		m++; x += at[i]; y += values[i]; xx += at[i] * at[i]; xy += at[i] * values[i]
	}
	v = m * xx - x * x
	printf "# %s KiB: first %d, median %d, last %d, most %d; %+.1f a minute\n", name, values[1], sorted[int((n + 1) / 2)],
	       values[n], sorted[n], v ? 60 * (m * xy - x * y) / v : 0
     }
     END { if (n) { told("RssAnon", anon); told("RssFile", file); told("Pss", pss) } }' "$samples"
early=$(awk -v seconds="$seconds" '$1 * 2 >= seconds { print $2; exit }' "$samples")
late=$(awk '{ late = $2 } END { print late }' "$samples")
# From half of the time on.  1 MiB allows for a heap's fragments.  New programs reach the limits
# slowly (16,384 files in a minute, at a fifth of 1,500 a second; the list of their build-ids in two
# more).  With -a, other programs add to it.
room=1024; [ -z "$new" ] || room=4096; for option; do [ "$option" = -a ] && room=16384; done
[ -n "$early" ] && [ -n "$late" ] && [ "$late" -le $((early + room)) ]
[ $? = 0 ] && echo "ok 2 - its memory stays what it was" || echo "not ok 2 - its memory stays what it was: $early KiB, then $late KiB"
# All files and places are named, and each new program is one of them; with -a their number is
# unknown.
execs=$(awk '/ execs$/ { print $1 }' out) limit=$((24 * 1024))
[ -z "$new" ] || limit=$((limit + 3 * ${execs:-0} / 5))
echo "# naming, RssAnon KiB: most $naming"
all=no; for option; do [ "$option" = -a ] && all=yes; done
if [ $all = yes ]; then echo "ok 3 - naming takes memory for what is named alone # SKIP the machine's other programs are named, too"
else
	[ "$naming" -gt 0 ] && [ "$naming" -le $((late + limit)) ]
	[ $? = 0 ] && echo "ok 3 - naming takes memory for what is named alone" ||
		echo "not ok 3 - naming takes memory for what is named alone: $naming KiB after $execs programs, $late KiB before"
fi
"$TALLY" report --stdio --sort comm -i soak >names 2>&1
for name in true pwd id uname; do grep -q "[0-9]%.*$name" names || missing=$name; done
if [ -z "${missing-}" ] && ! grep -q '[0-9]%.* :[0-9]' names; then echo "ok 4 - all of the storm's tasks are named"
else echo "not ok 4 - all of the storm's tasks are named"; sed 's/^/# /' names | head -40; fi
echo "1..4"
