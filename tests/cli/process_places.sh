#!/bin/bash
# Places where the kernel refuses perf events, tried as a new user would: `stat`, `record` and `report`,
# `flamegraph -- command`.  Each command chooses the process provider by itself and says so, and a program of
# known truth (50, 30, 20 %) comes out within 2 points, with and without frame pointers.  TAP; $TALLY and
# $PROCESS_OBJECT are the build's, $REFUSE_PERF is a seccomp filter, $SPLIT and $SPLIT_BARE are the program.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
PATH=$PATH:/usr/sbin:/sbin

# --- what a user has there: tally as in the build tree, the program, and a folder that can be written --------------
tools=$scratch/tools
mkdir -p "$tools/src/engine/hosts/process" made || exit 1
cp "$TALLY" "$tools/tally" && cp "$PROCESS_OBJECT" "$tools/src/engine/hosts/process/" && cp "$REFUSE_PERF" "$tools/refuse_perf" &&
	cp "$SPLIT" "$tools/split" && cp "$SPLIT_BARE" "$tools/split_bare" && chmod -R a+rX "$scratch" && chmod 777 made || exit 1
# try FOLDER TOOLS: makes all that the checks look at
cat >tools/try <<'END'
cd "$1" || exit 1
export HOME="$1"
tally=$2/tally
"$tally" stat -o counts -- "$2/split" >counts.truth 2>counts.err
"$tally" record -o frames.data -- "$2/split" >frames.truth 2>frames.err
"$tally" report --stdio --percent-limit 0 -i frames.data >frames.report 2>frames.report.err
"$tally" record -o bare.data -- "$2/split_bare" >bare.truth 2>bare.err
"$tally" report --stdio --percent-limit 0 -i bare.data >bare.report 2>bare.report.err
"$tally" flamegraph -o flame.svg -- "$2/split_bare" >flame.truth 2>flame.err
: >tried
END

# --- checks -----------------------------------------------------------------------------------------------------------
told() { grep -q "^tally: the kernel refuses perf events here ($2): $3 with the process provider, inside the program\$" "$1"; }
# near TRUTH SHARES: both have lines "half 50.02"
near() {
	cat "$1" "$2"
	awk 'NR == FNR { if ($1 in truth || $1 ~ /^(half|third|fifth)$/) truth[$1] = $2; next }
		$1 in truth { n++; d = $2 - truth[$1]; if (d < 0) d = -d; if (d > 2) bad = 1 }
		END { exit !(n == 3 && !bad) }' "$1" "$2"
}
counted() {
	cat made/counts.err made/counts >err
	told err "$refusal" counting && awk 'NR == FNR { if ($1 == "milliseconds") truth = $2; next }
		$3 == "task-clock" && /\(process\)/ { gsub(",", "", $1); found = $1 > truth * 0.98 && $1 < truth + 60 }
		END { exit !found }' made/counts.truth made/counts
}
reported() { # FILE: the shares are in its report, and main() is above nearly everything
	cat "made/$1.err" "made/$1.report.err" "made/$1.report" >err 2>/dev/null
	awk '$NF ~ /^(half|third|fifth)$/ { sub("%", "", $1); print $NF, $1 }' "made/$1.report" >shares
	told err "$refusal" sampling && near "made/$1.truth" shares >made/near &&
		awk '$NF == "main" { sub("%", "", $1); found = $1 + 0 > 97 } END { exit !found }' "made/$1.report"
}
drawn() {
	cat made/flame.err >err
	sed -n 's/.*<title>\([a-z]*\) (split_bare): \([0-9.]*\).*/\1 \2/p' made/flame.svg >shares
	told err "$refusal" sampling && near made/flame.truth shares >made/near
}
# On a busy machine a program's share of 0.5 s may once be far off.
all_well() { counted && reported frames && reported bare && drawn; }
# place WHAT COMMAND…: tries there, by `COMMAND… sh tools/try …`, which may be impossible on this machine
place() {
	local what=$1
	shift
	for _ in first again; do
		rm -rf made && mkdir -m 777 made
		"$@" sh "$tools/try" "$scratch/made" "$tools" >said 2>err
		[ ! -e made/tried ] || all_well && break
	done
	looked "$what"
}
looked() {
	if [ ! -e made/tried ]; then
		skip "$1" "$(cat err said | head -n 1)"
		return
	fi
	check "$1: stat" counted
	check "$1: record and report" reported frames
	check "$1: record and report, without frame pointers" reported bare
	check "$1: flamegraph" drawn
}

refusal=EPERM
"$REFUSE_PERF" EPERM "$TALLY" doctor -j >err 2>&1
grep -q '"provider": "process"' err || skip_all "this tally has no process provider: $(grep -A3 '"id": "process"' err | tr -d '\n')"

# --- the kernel's answers ---------------------------------------------------------------------------------------------
place "a filter that answers EPERM" "$REFUSE_PERF" EPERM
refusal=ENOSYS
place "a filter that answers ENOSYS" "$REFUSE_PERF" ENOSYS
refusal=EACCES
place "a kernel that answers EACCES" "$REFUSE_PERF" EACCES
refusal=EPERM

# --- an ordinary user -------------------------------------------------------------------------------------------------
if [ "$(id -u)" != 0 ]; then
	skip "an ordinary user" "the tests run as one"
elif have setpriv; then
	place "an ordinary user" $nobody "$REFUSE_PERF" EPERM
else
	skip "an ordinary user" "needs setpriv"
fi

# --- what is mounted --------------------------------------------------------------------------------------------------
# A namespace of mounts: root's own, or that of a user namespace.
mounts="unshare -m"
[ "$(id -u)" = 0 ] || mounts="unshare -rm"
# shellcheck disable=SC2016
{
	echo 'set -e; mount --make-rprivate /; mount --bind "$1" "$1"; mount -o remount,bind,ro /; touch /tmp/none 2>/dev/null && { echo "/ can still be written" >&2; exit 1; }; shift; exec "$@"' >read_only
	echo 'set -e; mount --make-rprivate /; umount -l /proc 2>/dev/null || mount -t tmpfs -o ro none /proc; shift; exec "$@"' >no_proc
	echo 'set -e; mount --make-rprivate /; mount -t tmpfs -o ro none /dev; shift; exec "$@"' >no_shm
	echo 'set -e; mount --make-rprivate /; mount -t tmpfs -o ro none /dev; umount -l /proc 2>/dev/null || mount -t tmpfs -o ro none /proc; shift; exec "$@"' >neither
}
if have unshare; then
	place "a read-only root" $mounts sh "$PWD/read_only" "$scratch/made" "$REFUSE_PERF" EPERM
	place "no /proc" $mounts sh "$PWD/no_proc" - "$tools/refuse_perf" EPERM
	place "no /dev/shm" $mounts sh "$PWD/no_shm" - "$tools/refuse_perf" EPERM
	place "neither /proc nor /dev/shm" $mounts sh "$PWD/neither" - "$tools/refuse_perf" EPERM
else
	skip "what is mounted" "needs unshare"
fi

# --- a container ------------------------------------------------------------------------------------------------------
# As OCI runtimes make them: all namespaces, a root of its own with nothing but a few programs, and a filter
# that answers EPERM to perf_event_open(2).
container() {
	rm -rf made root && mkdir -p made root/bin root/tools root/made root/proc root/tmp root/old root/dev || return 1
	cp -r tools/. root/tools && cp "$(command -v sh)" "$(command -v mount)" "$(command -v umount)" root/bin || return 1
	for program in root/bin/* root/tools/tally root/tools/split root/tools/refuse_perf root/tools/src/engine/hosts/process/*.so; do
		ldd "$program" 2>/dev/null | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^[ \t]*\(\/[^ ]*\) .*/\1/p'
	done >libraries
	# tally loads these when it needs them
	libraries | sed -n 's/.*lib\(elf\|z\|zstd\)\.so\.1 .*=> //p' >>libraries
	sort -u libraries | while read -r library; do
		mkdir -p "root$(dirname "$library")" && cp -L "$library" "root$library"
	done
	cat >root/enter <<'END'
export PATH=/bin
mount -t proc none /proc || exit 1
umount -l /old || exit 1
exec /tools/refuse_perf EPERM sh /tools/try /made /tools
END
	cat >enter <<'END'
set -e
mount --make-rprivate /
mount --bind root root
mount --bind made root/made
cd root
mount -t tmpfs none dev
mkdir dev/shm
pivot_root . old
cd /
exec /bin/sh /enter
END
	local users=-r
	unshare -r true 2>/dev/null || users=
	unshare $users -m -p -n -i -u --fork sh enter
}
if have unshare && have pivot_root && have ldd; then
	for _ in first again; do
		container >said 2>err
		[ ! -e made/tried ] || all_well && break
	done
	looked "a container"
else
	skip "a container" "needs unshare, pivot_root and ldd"
fi
done_testing
