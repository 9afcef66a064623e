#!/bin/bash
# Tries each row of docs/security.md on what tally takes from its surroundings: an ordinary user's
# environment chooses libraries, programs and folders; that of a user whose tally has file
# capabilities, and of root under sudo, chooses nothing.  TAP; $TALLY is the binary, $SOURCE the tree.
set -u
. "$(dirname "$0")/tap.sh"
have python3 && have gcc || skip_all "needs python3 and gcc"
[ "$(id -u)" = 0 ] && have setpriv && have unshare || skip_all "needs root, setpriv and unshare"
PATH=$PATH:/usr/sbin:/sbin
have setcap || skip_all "needs setcap"
# LeakSanitizer can't look at a process that gained capabilities.
! grep -q __asan_report_load "$TALLY" || skip_all "runs in the build without sanitizers"
rows() { python3 "$SOURCE/tests/surroundings.py" "$SOURCE" --rows "$1"; }

cd "$scratch" && chmod 755 . || exit 1
cp "$TALLY" plain && cp "$TALLY" capable && cp "$TALLY" inheriting && cp "$TALLY" setuid && chmod 755 plain capable inheriting || exit 1
chmod 4755 setuid
capabilities=cap_perfmon,cap_sys_ptrace,cap_syslog,cap_ipc_lock
setcap $capabilities+ep capable && setcap $capabilities+eip inheriting || skip_all "files can't have capabilities here"
mkdir -m 777 marks && mkdir -m 755 theirs evil bin && mkdir -m 700 roots || exit 1
user=$(setpriv --reuid=$((20000 + $$ % 40000)) --clear-groups id -u)
as_user="setpriv --reuid=$user --regid=65534 --clear-groups --inh-caps=-all"
chown "$user" theirs
$as_user ./capable --version >out 2>err || skip_all "a program with capabilities can't be executed here: $(head -n 1 err)"
$as_user ./capable stat -e task-clock true >out 2>err || skip_all "$(head -n 1 err)"
# Mounted over root's home, so that the test leaves nothing there.
cat >as_root <<'R'
#!/bin/sh
mount -t tmpfs -o mode=700 none "$(getent passwd 0 | cut -d: -f6)" || exit 1
cd "$1" && shift && exec "$@"
R
chmod 755 as_root

cat >evil.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
static void leave(void);
__attribute__((constructor)) static void leave(void)
{
	Dl_info self;
	char mark[4096];
	if (!dladdr((void *)leave, &self))
		return;
	snprintf(mark, sizeof(mark), "%s/%s", MARKS, strrchr(self.dli_fname, '/') + 1);
	open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
}
C
for library in $(rows library); do
	# What tally is linked with can't be replaced without replacing it for tally's own libraries.
	ldd "$TALLY" | grep -q "$library" ||
		{ mkdir -p "evil/$library" && gcc -shared -fPIC -DMARKS="\"$scratch/marks\"" -Wl,-soname,"$library" -o "evil/$library/$library" evil.c; } || exit 1
done
for program in less more sh cat perf addr2line objdump readelf curl xdg-open valgrind; do
	printf '#!/bin/sh\n: >"%s/marks/%s"\n' "$scratch" "$program" >"bin/$program" && chmod 755 "bin/$program"
done
cat >hot.c <<'C'
volatile long x;
__attribute__((noinline)) void hot(void) { for (long i = 0; i < 30000000; i++) x += i; }
int main(void) { hot(); return 0; }
C
gcc -g -O1 -o hot hot.c && strip -o bare hot && ./plain record -q -e cpu-clock -o hot.data ./hot 2>err >out &&
	./plain record -q -e cpu-clock -o bare.data ./bare 2>err >out && chmod 644 hot.data bare.data hot.c || skip_all "$(head -n 1 err)"

cat >regions.c <<'C'
#include <stdio.h>
#include <tally/region.h>
int main(void)
{
	size_t events = 0;
	tally_region_begin("work");
	tally_region_end("work");
	while (tally_region_event(events))
		events++;
	printf("events %zu\n", events);
	fflush(stdout);
	return tally_region_report(1, "json") < 0;
}
C
cp "$(dirname "$TALLY")/libtally.so.0" . && ln -s libtally.so.0 libtally.so && chmod 755 libtally.so.0 &&
	gcc -I"$SOURCE/include" -o regions regions.c -L. -ltally -Wl,-rpath,"$scratch" && chmod 755 regions &&
	cp regions regions_capable && setcap $capabilities+ep regions_capable || exit 1

# ---- one command in each position

# MODE [VARIABLE=VALUE…] COMMAND…: runs tally's command as that kind of user.  `plain` is an ordinary
# one, `capable` has a tally with capabilities, `sudo` is root.
run() {
	local mode=$1 variables=()
	shift
	while [[ $1 = *=* ]]; do variables+=("$1"); shift; done
	set -- timeout --foreground 60 "$scratch/$([ "$mode" = sudo ] && echo plain || echo "$mode")" "$@"
	if [ "$mode" = sudo ]; then
		set -- unshare -m ./as_root "$scratch" env -i PATH="$PATH" HOME="$scratch/roots" SUDO_UID=12345 TERM=xterm "${variables[@]}" "$@"
	else
		# shellcheck disable=SC2086
		set -- $as_user env -i PATH="$PATH" HOME="$scratch/theirs" TERM=xterm "${variables[@]}" "$@"
	fi
	[ -z "${in_container:-}" ] || set -- unshare -pf "$@"
	[ -z "${instead_of_less:-}" ] || set -- unshare -m ./replace_less "$instead_of_less" "$@"
	if [ -n "${on_terminal:-}" ]; then
		{ printf 'stty rows 9999 cols 200; '; printf '%q ' "$@"; } >line # everything fits: less ends
		timeout 60 script -qec "bash $scratch/line" /dev/null </dev/null >out 2>err
	else
		"$@" >out 2>err </dev/null
	fi
}
# Without a terminal variable's effect, the marks show what ran.
marked() { [ -n "$(ls marks)" ]; }
clear_marks() { rm -rf marks/* theirs/.[a-z]* roots/.[a-z]*; }

# ---- variables: how to see that one had an effect

try_TALLY_LIBLLVM() { run "$1" TALLY_LIBLLVM="$scratch/evil/libLLVM-14.so.1/libLLVM-14.so.1" annotate --stdio -i hot.data hot; marked; }
try_TALLY_PAGER() { on_terminal=1 run "$1" TALLY_PAGER=": >$scratch/marks/pager; cat" script -i hot.data; marked; }
try_PAGER() { on_terminal=1 run "$1" PAGER=": >$scratch/marks/pager; cat" script -i hot.data; marked; }
try_LESS() { on_terminal=1 run "$1" LESS="-FRX -o$scratch/marks/log" script -i hot.data; marked; }
try_PATH() { on_terminal=1 run "$1" PATH="$scratch/bin:$PATH" script -i hot.data; marked; }
try_PERF_EXEC_PATH() {
	mkdir -p theirs/perf/scripts/python/bin && touch theirs/perf/scripts/python/bin/of_the_caller-report
	run "$1" PERF_EXEC_PATH="$scratch/theirs/perf" perf script -l
	grep -q of_the_caller out
}
try_HOME() { run "$1" HOME="$scratch/theirs" cache; [ -e theirs/.cache ]; }
try_XDG_CACHE_HOME() { mkdir -m 777 theirs/.caches; [ "$1" = sudo ] || chown "$user" theirs/.caches; chmod 755 theirs/.caches; run "$1" XDG_CACHE_HOME="$scratch/theirs/.caches" cache; [ -e theirs/.caches/tally ]; }
try_TALLY_CACHE_BYTES() { run "$1" TALLY_CACHE_BYTES=1k cache; grep -q 'at most 1.0 KiB' out; }
try_TMPDIR() { run "$1" TMPDIR="$scratch/none" flamegraph -o theirs/.graph.svg -- true; grep -q "$scratch/none" err; }
try_DEBUGINFOD_URLS() { run "$1" DEBUGINFOD_URLS=http://127.0.0.1:9 report --stdio --debuginfod -i hot.data; ! grep -q 'no debuginfod server is named' err; }
try_DEBUGINFOD_CACHE_PATH() { run "$1" DEBUGINFOD_CACHE_PATH="$scratch/marks/files" report --stdio --debuginfod=http://127.0.0.1:9 -i bare.data; marked; }
trusts() { (unset SUDO_UID; run sudo "$1" TALLY_LIBLLVM="$scratch/evil/libLLVM-14.so.1/libLLVM-14.so.1" annotate --stdio -i hot.data hot; marked); }
# These only decide whether root trusts its environment.
try_SUDO_UID() { case $1 in plain) trusts SUDO_UID=0 ;; capable) return 1 ;; sudo) trusts SUDO_UID=12345 ;; esac; }
try_PKEXEC_UID() { case $1 in plain) trusts SUDO_UID=0 ;; capable) return 1 ;; sudo) run sudo SUDO_UID=0 PKEXEC_UID=12345 TALLY_LIBLLVM="$scratch/evil/libLLVM-14.so.1/libLLVM-14.so.1" annotate --stdio -i hot.data hot; marked ;; esac; }
try_DOAS_USER() { case $1 in plain) trusts SUDO_UID=0 ;; capable) return 1 ;; sudo) run sudo SUDO_UID=0 DOAS_USER=someone TALLY_LIBLLVM="$scratch/evil/libLLVM-14.so.1/libLLVM-14.so.1" annotate --stdio -i hot.data hot; marked ;; esac; }
# MODE VARIABLE=VALUE…: runs a program with regions, and takes its report.
run_regions() {
	local mode=$1 program=(env "${@:2}" ./regions) before=()
	case $mode in
	plain) before=($as_user) ;;
	capable) before=($as_user) program=(env "${@:2}" ./regions_capable) ;;
	sudo) before=(env SUDO_UID=12345) ;;
	esac
	"${before[@]}" "${program[@]}" >out 2>err
}
try_TALLY_REPORT() { run_regions "$1" TALLY_REPORT=table; grep -q '^work: 1 call' err; }
try_TALLY_EVENTS() { run_regions "$1" TALLY_EVENTS=wall; grep -q '^events 1$' out; }
try_TALLY_OVERHEAD() { run_regions "$1" TALLY_OVERHEAD=subtract; grep -q '"overhead_subtracted": true' out; }
try_XDG_CONFIG_HOME() { mkdir -p theirs/.config/tally && echo 'their_own = 1 # x' >theirs/.config/tally/metrics; chmod -R a+rX theirs/.config; run "$1" XDG_CONFIG_HOME="$scratch/theirs/.config" list metrics; grep -q '^ *their_own ' out; }
try_TALLY_METRICS_DIR() { run "$1" TALLY_METRICS_DIR="$scratch/no-metrics" list metrics; grep -q 'no-metrics' err out; }
# Harmless ones: used by all.
try_TALLY_LIMITS() { run "$1" TALLY_LIMITS=nonsense=1 fold -i hot.data; grep -q 'TALLY_LIMITS' err; }
try_TERM() { on_terminal=1 run "$1" TERM=dumb PAGER=cat annotate -i hot.data hot; ! grep -q $'\x1b' out; }
try_NO_COLOR() { on_terminal=1 run "$1" NO_COLOR=1 annotate --stdio -i hot.data hot; ! grep -q $'\x1b' out; }
try_COLUMNS() { run "$1" COLUMNS=60 report --help; local narrow; narrow=$(wc -L <out); run "$1" COLUMNS=200 report --help; [ "$(wc -L <out)" -gt "$narrow" ]; }
try_LANG() { run "$1" LANG=C.UTF-8 annotate --stdio -i hot.data hot; grep -q '±' out; }
try_LC_ALL() { run "$1" LANG=C LC_ALL=C.UTF-8 annotate --stdio -i hot.data hot; grep -q '±' out; }
try_LC_CTYPE() { run "$1" LANG=C LC_CTYPE=C.UTF-8 annotate --stdio -i hot.data hot; grep -q '±' out; }
try_LC_NUMERIC() { on_terminal=1 run "$1" LANG=C LC_NUMERIC=de_DE.UTF-8 stat -e duration_time sleep 0.01; grep -qE '[0-9],[0-9]{3}' out; }
try_container() { in_container=1 run "$1" container=lxc doctor -j; grep -q '"container": *"lxc"' out; }
try_KUBERNETES_SERVICE_HOST() { in_container=1 run "$1" KUBERNETES_SERVICE_HOST=10.0.0.1 doctor -j; grep -q '"container": *"kubernetes"' out; }

# Libraries and the pager get these from tally; nothing of the environment is used.
set_by_tally="LD_PRELOAD TALLY_PLAN DEBUGINFOD_TIMEOUT DEBUGINFOD_MAXTIME DEBUGINFOD_RETRY_LIMIT LESSSECURE VALGRIND_LAUNCHER VALGRIND_LIB"
harmless="TALLY_LIMITS TERM NO_COLOR COLUMNS LANG LC_ALL LC_CTYPE LC_NUMERIC container KUBERNETES_SERVICE_HOST"

missing() { # VARIABLE: what it needs and this machine lacks
	case $1 in
	*PAGER | PATH | LESS | TERM | NO_COLOR | LC_NUMERIC) have script || echo script ;;&
	LESS) have less || echo less ;;
	TALLY_LIBLLVM | *_UID | DOAS_USER | LANG | LC_ALL | LC_CTYPE) libraries | grep -q libLLVM || echo libLLVM ;;
	DEBUGINFOD_CACHE_PATH) libraries | grep -q 'libdebuginfod\.so\.1' || echo libdebuginfod ;;
	esac
}
attempt() { clear_marks; "try_$1" "$2"; }
for variable in $(rows variable); do
	case " $set_by_tally " in *" $variable "*) continue ;; esac
	if ! declare -F "try_$variable" >/dev/null; then
		not_ok "$variable is tried"
		continue
	fi
	lack=$(missing "$variable")
	if [ -n "$lack" ]; then
		skip "$variable" "needs $lack"
		continue
	fi
	check "$variable has an effect" attempt "$variable" plain
	for mode in capable sudo; do
		case " $harmless " in
		*" $variable "*) check "… also for $mode" attempt "$variable" $mode ;;
		*) check "… and none for $mode" eval "! attempt $variable $mode && ! marked" ;;
		esac
	done
done
check "a tally with capabilities records its user's programs, and writes files" eval \
	'run capable record -q -e cpu-clock -o theirs/.own.data ./hot && run capable flamegraph -o theirs/.own.svg -i theirs/.own.data && grep -q hot theirs/.own.svg'
check "another user's HOME is enough to distrust root's environment" eval \
	'clear_marks; run sudo SUDO_UID=0 HOME="$scratch/theirs" TALLY_LIBLLVM="$scratch/evil/libLLVM-14.so.1/libLLVM-14.so.1" annotate --stdio -i hot.data hot; ! marked'
check "root under sudo has root's cache" eval 'run sudo cache && grep -q "/tally: " out && ! grep -q "$scratch" out'
check "a tally with capabilities has none" eval 'run capable cache; grep -q "no cache" out'
check "… and asks no debuginfod server, since it has no folder" eval \
	'run capable report --stdio --debuginfod=http://127.0.0.1:9 -i bare.data; grep -q "debuginfod servers can.t be asked" err'

# ---- libraries

load() { # LIBRARY MODE: runs what loads the library
	local path=LD_LIBRARY_PATH=$scratch/evil/$1
	clear_marks
	case $1 in
	libLLVM*) run "$2" $path annotate --stdio -i hot.data hot ;;
	libncursesw*) on_terminal=1 run "$2" $path TERM=no-such-terminal report -i hot.data ;; # it ends at once
	libdebuginfod*) run "$2" $path report --stdio --debuginfod=http://127.0.0.1:9 -i bare.data ;;
	libpfm*) run "$2" $path stat -e NO_SUCH_VENDOR:EVENT true ;;
	libjansson*) run "$2" $path compare saved.json saved.json ;;
	libelf* | libzstd*) run "$2" $path report --stdio -i hot.data ;;
	libz.*) # libelf is bound to it before it could leave a mark
		run "$2" $path report --stdio -i hot.data
		if grep -q 'libelf.*: undefined symbol' err; then touch "marks/$1"; fi
		;;
	liblzma*) run "$2" $path record -q -e cpu-clock -o theirs/.packed.data ./packed ;;
	esac
	[ -e "marks/$1" ]
}
./plain stat -j -o saved.json -e task-clock true 2>err
cp bare packed
python3 -c 'import lzma, sys; open("hot.xz", "wb").write(lzma.compress(open("hot", "rb").read()))' &&
	objcopy --add-section .gnu_debugdata=hot.xz packed 2>/dev/null
chmod 644 saved.json; chmod 755 packed
for library in $(rows library); do
	if [ ! -e "evil/$library" ]; then
		skip "$library" "tally's own libraries load it"
	elif load "$library" plain; then
		ok "$library is loaded from LD_LIBRARY_PATH"
		for mode in capable sudo; do
			check "… not for $mode" eval "! load $library $mode && ! marked"
		done
	elif [[ $library = libLLVM* ]]; then
		skip "$library" "another libLLVM is found first"
	else
		not_ok "$library is loaded from LD_LIBRARY_PATH"
	fi
done

# ---- programs

none() { # TALLY [SETPRIV-OPTION…]: its command has no capabilities
	clear_marks
	# shellcheck disable=SC2086
	setpriv --reuid="$user" --regid=65534 --clear-groups "${@:2}" "./$1" stat -e task-clock -- grep '^Cap' /proc/self/status >out 2>err
	[ "$(grep -c '^Cap\(Inh\|Prm\|Eff\|Amb\):.0000000000000000$' out)" = 4 ]
}
check "a command of a tally with capabilities has none" none capable --inh-caps=-all
check "… nor inheritable ones" none inheriting --inh-caps=+perfmon,+sys_ptrace
ambient() { setpriv --reuid="$user" --regid=65534 --clear-groups --inh-caps=+perfmon --ambient-caps=+perfmon ./plain stat -e task-clock -- grep '^CapEff' /proc/self/status >out 2>err; grep -q '^CapEff:.0*4000000000$' out; }
check "… but those that its caller has by itself stay" ambient
cat >replace_less <<'R'
#!/bin/bash
mount --bind "$1" "$(readlink -f "$(command -v less)")" && shift && exec "$@"
R
printf '#!/bin/sh\ngrep "^Cap" /proc/self/status\n' >shows_capabilities
chmod 755 replace_less shows_capabilities
pager_capabilities() { # MODE: prints how many sets of capabilities of the pager are empty
	instead_of_less=./shows_capabilities on_terminal=1 run "$1" script -i hot.data
	tr -d '\r' <out | grep -c '^Cap\(Inh\|Prm\|Eff\|Amb\):.0000000000000000$'
}
if have less && have script; then
	check "the pager of a tally with capabilities has none" eval '[ "$(pager_capabilities capable)" = 4 ]'
	check "… but that of root has root's" eval '[ "$(pager_capabilities sudo)" = 2 ]'
else
	skip "the pager of a tally with capabilities has none" "needs less and script"
fi
check "a set-user-ID tally's command is the caller's" eval \
	'[ "$($as_user ./setuid stat -e task-clock -- id -u 2>err)" = "$user" ]'
given() { [ "$($as_user env LESS=mine TALLY_PAGER=mine "./$1" stat -e task-clock -- sh -c 'echo "$LESS $TALLY_PAGER"' 2>err)" = "mine mine" ]; }
check "a command gets the caller's environment" given capable
check "… and is searched in the caller's PATH" eval \
	'clear_marks; run capable PATH="$scratch/bin:$PATH" stat -e task-clock perf; [ -e marks/perf ]'
done_testing
