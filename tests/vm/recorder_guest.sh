# Runs in the guest machine, in busybox's shell, for tests/vm/recorder.  Prints TAP without numbers,
# and makes files for the host.
cd /recorder || exit 1
export HOME=/tmp PATH=/bin LC_ALL=C
exec 2>&1
check() { # WHAT: reports the last status
	if [ "$2" = 0 ]; then echo "ok - $1"; else echo "not ok - $1"; head -40 out | sed 's/^/# /'; fi
}
give() { echo "file $1"; base64 "$1"; echo "file end"; }
cpu1() { echo "$1" >/sys/devices/system/cpu/cpu1/online; }

# Samples take long on an emulated machine.  The kernel would lower the highest rate for all that
# follows, and leave samples out.
echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent

# With two CPUs, QEMU adds one CPU's instructions to the other's counts: comparisons with the truth
# use one CPU.
cpu1 0

# --- a program that counts its own instructions --------------------------------------------------------------------
./user_reads 64

# --- counting: tally itself, on work of a known size ------------------------------------------------------------------
# counted EVENTS WORK: the counts, a line each
counted() { tally stat -x, -e "$1" -- tally doctor --work "$2" 2>&1 | tee -a out | awk -F, '!/^#/ && NF > 2 { print $1 }'; }
echo >out; less=$(counted instructions:u loop:1000) more=$(counted instructions:u loop:1001000)
[ $((more - less)) -ge 2000000 ] && [ $((more - less)) -lt 2000100 ]
check "stat counts a loop's instructions: 2,000,000 more" $?
echo >out; counted instructions:u,instructions:k,instructions calls:20000 >three
awk '{ n[NR] = $1 } END { exit !(n[1] > 20000 && n[2] > 20000 && n[1] + n[2] > n[3] * 0.999 && n[1] + n[2] < n[3] * 1.001) }' three
check "user mode and kernel add up to all" $?
echo >out; counted "$(for i in 1 2 3 4 5 6 7 8; do printf 'instructions:uD,'; done | sed 's/,$//')" loop:1000000 >pinned
[ "$(grep -c '^[0-9]' pinned)" = 6 ] && [ "$(grep -c '^<not counted>' pinned)" = 2 ]
check "of 8 pinned events 6 have counters, and 2 are not counted" $?
echo >out; all=$(counted instructions:u loop:200000000)
counted "$(for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf 'instructions:u,'; done | sed 's/,$//')" loop:200000000 >shared
awk -v all="$all" 'NR == 1 || $1 < least { least = $1 } $1 > most { most = $1 } END { print NR, all, least, most; exit !(NR == 12 && least > all * 0.99 && most < all * 1.01) }' shared >>out
check "12 events on 6 counters: each scaled count is right within 1 %" $?
tally stat -e "$(for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf 'instructions:u,'; done | sed 's/,$//')" -- tally doctor --work loop:200000000 >out 2>&1; grep -q 'of the time, scaled +- [0-9]' out
check "scaled counts have an error" $?
tally list hw >out 2>&1 && grep -q '^ *instructions' out && tally list pmu >>out 2>&1 && grep -q armv8 out
check "list has the hardware's events" $?
tally doctor >out 2>&1 && grep -q 'hardware counters' out && ! grep -q 'no cycles' out
check "doctor finds the hardware counters" $?
tally doctor --self-test >out 2>&1; code=$?; grep -q '✓ instructions are counted\|ok instructions are counted' out && [ $code = 0 ]
check "what doctor says holds (--self-test)" $?
sed 's/^/# /' out

# --- too few counters ----------------------------------------------------------------------------------------------
# This CPU has six counters for instructions.  The same event several times has one true count.
many() { list=instructions:u n=$1; while [ $((n -= 1)) -gt 0 ]; do list=$list,instructions:u; done; echo "$list"; }
truth=$(tally stat -x, -e instructions:u ./split 100 2>&1 >/dev/null | awk -F, '$3 == "instructions:u" { print $1 }')
# near EVENTS PART SCALED: so many counts in ./out, this near to the truth; whether any is scaled
near() {
	awk -F, -v truth="$truth" -v events="$1" -v part="$2" -v wanted="$3" '
		$3 == "instructions:u" { n++; far += $1 < truth * (1 - part) || $1 > truth * (1 + part); scaled += $5 < 100 }
		END { exit !(truth > 0 && n == events && !far && (scaled > 0) == wanted) }' out
}
tally stat -x, --no-multiplex -e "$(many 12)" ./split 100 >out 2>&1; near 12 0.0001 0
check "--no-multiplex: none of them is scaled, and each is exact" $?
tally stat --no-multiplex -e "$(many 12)" ./split 100 >out 2>&1; grep -q 'once for each of 3 sets' out
check "… in three runs: one of the 6 counters counts the same event in each" $?
tally stat -e "{$(many 6)}" ./split 1 >out 2>&1; ! grep -q "can't be counted" out && ! grep -q '<not' out
check "a group of 6 fits" $?
tally stat -e "{$(many 7)}" ./split 1 >out 2>&1; grep -q "can't be counted at once: there are counters for 6 of its 7 events; the kernel accepts" out
check "a group of 7, which the kernel opens and never counts, is named before the run" $?
tally stat -x, --split-groups -e "{$(many 7)}" ./split 100 >out 2>&1; near 7 0.01 1
check "--split-groups counts its events in turns" $?

# --- paranoid levels: an ordinary user -----------------------------------------------------------------------------------
# user LEVEL EVENTS WORK: as `counted`, without privileges
user() { echo "$1" >/proc/sys/kernel/perf_event_paranoid; shift; ./as_user tally stat -x, "$@" 2>&1 | tee -a out; }
mkdir -p tmp && chmod 1777 tmp
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
echo >out; all=$(counted instructions calls:20000) own=$(counted instructions:u calls:20000)
# by_user LEVEL NAME COUNT: a user's count of "instructions" has this name, and is this within 1 %
by_user() {
	echo >out
	user "$1" -e instructions -- tally doctor --work calls:20000 | awk -F, -v name="$2" -v count="$3" '
		$3 == name { found = $1 > count * 0.99 && $1 < count * 1.01 } END { exit !found }'
}
by_user 1 instructions "$all"
check "paranoid level 1: a user's instructions include the kernel's" $?
by_user 2 instructions:u "$own"
check "paranoid level 2: they are those in user mode, and the name says so" $?
echo >out; user 2 -e instructions:k -- tally doctor --work calls:10 >/dev/null; grep -q '^<not supported>,,instructions:k,.*refused' out
check "paranoid level 2: the kernel's alone have no figure, and the reason" $?
echo >out; user 1 -a -e cpu-clock --duration 0.1 >/dev/null; ! grep -q '^[0-9]' out && grep -q '^<withheld>,msec,cpu-clock,.*closed to this user' out
check "paranoid level 1: whole CPUs have no figure, and the reason" $?
echo >out; user 0 -a -e cpu-clock --duration 0.1 >/dev/null; grep -q '^[0-9.]*,msec,cpu-clock' out
check "paranoid level 0: whole CPUs are counted" $?
for level in -1 0 1 2; do
	echo "$level" >/proc/sys/kernel/perf_event_paranoid
	TMPDIR=$PWD/tmp ./as_user tally doctor --self-test >out 2>&1
	check "paranoid level $level: what doctor says to a user holds" $?
done
[ -z "$(ls tmp)" ]
check "the self-tests left no files" $?
echo "$paranoid" >/proc/sys/kernel/perf_event_paranoid

# --- stacks -------------------------------------------------------------------------------------------------------
# shares FILE: of the time in work(), half, 30 % and a fifth are below its functions, and each stack
# is complete
shares() {
	tally fold -i "$1" >stacks 2>>out && cat stacks >>out && awk '
		{ n = $NF; sub(/ [0-9]+$/, "") }
		/;main;work/ { all += n }
		/;main;work;half;spin;mix$/ { half += n }
		/;main;work;third;mix$/ { third += n }
		/;main;work;fifth;spin;mix$/ { fifth += n }
		END { if (!all) exit 1
			printf "half %.3f third %.3f fifth %.3f\n", half / all, third / all, fifth / all
			exit !(half / all > 0.45 && half / all < 0.55 && third / all > 0.26 && third / all < 0.34 &&
				fifth / all > 0.16 && fifth / all < 0.24) }' stacks >>out
}
tally record -e cycles:u -c 30011 --call-graph fp -o frames ./split_frames 20 >out 2>&1 && shares frames
check "frame pointers: shares are the program's, leaves have their callers" $?
tally record -e cycles:u -c 30011 --call-graph dwarf -o copies ./split 20 >out 2>&1 && shares copies
check "stack copies, without frame pointers: shares are the program's" $?
tally record -e cycles:u -c 30011 --call-graph fp --overwrite -o flight ./split_frames 10 >out 2>&1; flight=$(ls flight* | head -1); shares "$flight"
check "a flight recorder's samples keep the register that tells a leaf's caller" $?
tally script -F ip,sym,srcline -i copies >out 2>&1; grep -q '^  *recorder_split.c:[0-9]' out
check "source lines" $?
tally annotate --stdio -i frames spin >out 2>&1 && grep -q '%.* recorder_split.c:[0-9]' out
check "annotate shares out the lines" $?
tally flamegraph -i frames -o flame.svg >out 2>&1 && grep -q '>fifth' flame.svg
check "a flame graph" $?
tally report --stdio --call-graph -i frames >frames.txt
give frames; give frames.txt

# --- paranoid level 3: Debian's kernel refuses an ordinary user's perf events ------------------------------------------------
echo 3 >/proc/sys/kernel/perf_event_paranoid
# inside COMMAND…: tally as a user, which chooses the process provider; keeps what it says
inside() { ./as_user tally "$@" >said 2>&1; code=$?; cat said >>out; return $code; }
told() { grep -q "^tally: the kernel refuses perf events here (EACCES): $1 with the process provider, inside the program" said; }
echo >out; inside stat -e task-clock,page-faults -o tmp/counts ./split 100 && told counting && cat tmp/counts >>out &&
	awk '$3 == "task-clock" && /\(process\)/ { n += $1 > 20 } $2 == "page-faults" && /\(process\)/ { n += $1 > 10 } END { exit n != 2 }' tmp/counts
check "paranoid level 3: stat counts from inside the program" $?
echo >out; inside record -o tmp/inside ./split 400 && told sampling && shares tmp/inside
check "paranoid level 3: record samples from inside; stacks without frame pointers are complete" $?
echo >out; inside flamegraph -o tmp/inside.svg -- ./split_frames 200 && told sampling && grep -q '>fifth' tmp/inside.svg
check "paranoid level 3: a flame graph" $?
TMPDIR=$PWD/tmp ./as_user tally doctor >out 2>&1; grep -q 'process provider' out
check "paranoid level 3: doctor tells the provider" $?
cp tmp/inside . && tally report --stdio --call-graph -i inside >inside.txt
give inside; give inside.txt
echo "$paranoid" >/proc/sys/kernel/perf_event_paranoid

# --- modules ------------------------------------------------------------------------------------------------------
if [ -f /modules/md4.ko ] && insmod /modules/af_alg.ko && insmod /modules/algif_hash.ko && insmod /modules/md4.ko; then
	# md4 FILE OPTION…: nearly all samples are in the module
	md4() {
		tally report --stdio -g none "$@" >out 2>/dev/null
		awk '/\[md4\] +md4_transform/ { own = $2 + 0 } END { exit !(own > 80) }' out
	}
	tally record -e cycles -c 30011 --call-graph fp -o module ./md4 60 >out 2>&1 && md4 -i module
	check "a module's functions by kallsyms" $?
	cp out module.txt
	give module; give module.txt
	# Uses the module's file.  /sys/module says that it is this one, and where it is.
	folder=/lib/modules/$(uname -r)
	mkdir -p "$folder/kernel/crypto" && cp /modules/md4.ko "$folder/kernel/crypto" && echo kernel/crypto/md4.ko: >"$folder/modules.dep"
	grep -v '\[md4\]$' /proc/kallsyms >others
	tally record --no-pack -e cycles -c 30011 --call-graph fp -o plain ./md4 60 >out 2>&1 && md4 -i plain
	check "the same recording without names of its own, by kallsyms" $?
	cp out by_kallsyms
	# perf's record for a module: its start, and its size in bytes
	lies="$(awk '$1 == "md4" { printf "%s(0x%x) @ 0]: x ", $6, $2 }' /proc/modules)$folder/kernel/crypto/md4.ko"
	tally script --show-mmap-events -i plain 2>&1 | grep 'PERF_RECORD_MMAP -1' >out; [ "$(grep -c "${lies#0x}$" out)" = 1 ]
	check "it says where the module lies" $?
	md4 -i plain --kallsyms others && cmp out by_kallsyms
	check "by its file, the same, where kallsyms doesn't know it" $?
	sed 's/ md4_transform\(.*\[md4\]\)/ renamed\1/' /proc/kallsyms >renamed
	! md4 -i plain --kallsyms renamed && grep -q ' renamed' out && md4 -m -i plain --kallsyms renamed && cmp out by_kallsyms
	check "by its file, the same, whatever kallsyms calls it" $?
	rmmod md4
	tally record -e cycles -c 30011 --call-graph fp -o brief sh -c 'insmod /modules/md4.ko; sleep 0.2; ./md4 200; rmmod md4' >out 2>&1 && md4 -i brief
	check "a module that is loaded while it is recorded, and gone before the end" $?
	tally script --show-mmap-events -i brief 2>&1 | grep 'PERF_RECORD_MMAP -1.*md4' >out; grep -v ' 0\.0*: ' out
	check "it is recorded as of when it came" $?
	give brief
else
	echo "ok - modules # SKIP there are none of this kernel"
fi

# --- CPUs come and go ---------------------------------------------------------------------------------------------
cat >dance <<'D'
taskset -c 1 ./split 8
echo 0 >/sys/devices/system/cpu/cpu1/online
sleep 0.2
./split 4
echo 1 >/sys/devices/system/cpu/cpu1/online
sleep 0.2
taskset -c 1 ./split 8
D
notes() { grep -q 'CPU 1 went offline' out && grep -q 'CPU 1 came online' out; }
cpu1 1
if ! cpu1 0 || [ "$(cat /sys/devices/system/cpu/online)" != 0 ]; then
	echo "ok - CPUs come and go # SKIP none can be taken away"
	exit
fi
cpu1 1
./user_reads moves
# The time counted on CPU 1 is that of the program there, twice, and of other work: less than all.
tally stat -a -A -x, -e cpu-clock,cycles -o counts sh dance >out 2>&1; cat counts >>out
awk -F, '/^CPU0,.*cpu-clock/ { all = $2 } /^CPU1,.*cpu-clock/ { some = $2 } END { print all, some; exit !(some > 50 && some < all - 150) }' counts >>out
check "stat -A keeps what a CPU counted, and goes on when it is back" $?
timeout 20 tally stat -a -e cycles sh dance >out 2>&1 && notes
check "stat -a tells of it" $?
timeout 20 tally stat -C 1 -I 100 -e cycles sh dance >out 2>&1 && notes
check "stat -C 1 -I goes on without its CPU" $?
timeout 20 tally record -a -e cycles:u -c 30011 --call-graph fp -o both sh dance >out 2>&1 && notes
check "record -a tells of it" $?
tally script -F comm,cpu,time -i both >script
tr -d '[]' <script | awk '$1 == "split" { cpu = $2 + 0; if (cpu != last) runs = runs " " cpu; last = cpu; n[cpu]++ } BEGIN { last = -1 }
	END { print runs, n[0], n[1]; exit !(runs == " 1 0 1" && n[1] > 2 * n[0]) }' >out
check "it has the samples of before, of the other CPU meanwhile, and of behind" $?
timeout 20 tally record -C 1 -e cycles:u -c 30011 -o one sh dance >out 2>&1 && notes && [ "$(tally script -F comm -i one | grep -c split)" -gt 10 ]
check "record -C 1" $?
(sleep 0.5; cpu1 0; sleep 1.5; cpu1 1; sleep 1.5; for i in 1 2 3 4; do taskset -c 1 ./split 4; sleep 0.3; done) >/dev/null 2>&1 &
timeout 20 tally top -a -e cycles:u -c 30011 -d 1 -n 6 --stdio >out 2>&1 && notes && sed '1,/came online/d' out | grep -qE ' split +(spin|mix)'
check "top shows what runs on a CPU that came back" $?
wait
cpu1 0
timeout 20 tally record -a -e cycles:u -c 30011 -o later sh -c 'echo 1 >/sys/devices/system/cpu/cpu1/online; sleep 0.2; taskset -c 1 ./split 8' >out 2>&1 &&
	grep -q 'CPU 1 came online' out && [ "$(tally script -F comm,cpu -i later | grep -c 'split.*001')" -gt 5 ]
check "a CPU that was offline at the start is sampled when it comes" $?
