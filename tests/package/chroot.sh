#!/bin/bash
# The packages in a clean Debian: apt installs them, and they work.  Then runs docs/tutorial.md as a
# new user would, and opens a recording made there in another system without the programs.  TAP;
# needs root, debootstrap and a mirror.  build/package keeps the clean system for the next run; `rm
# -r build/package` removes it.
set -u
source=$(cd "$(dirname "$0")/../.." && pwd)
number=0 failed=0
ok() { number=$((number + 1)); echo "ok $number - $1"; }
not_ok() { number=$((number + 1)); failed=1; echo "not ok $number - $1"; sed 's/^/# /' "$work/out" | tail -30; }
# check NAME: reports the status of the last command
check() { if [ $? = 0 ]; then ok "$1"; else not_ok "$1"; fi; }
skip_all() { echo "1..0 # SKIP $1"; exit 0; }

[ "$(id -u)" = 0 ] || skip_all "only root makes a clean system"
command -v debootstrap >/dev/null || skip_all "there is no debootstrap"
command -v unshare >/dev/null || skip_all "there is no unshare"
# Mounts belong to this test, and end with it.
if [ -z "${TALLY_PACKAGE_TEST-}" ]; then
	unshare --mount true 2>/dev/null || skip_all "nothing can be mounted here"
	TALLY_PACKAGE_TEST=1 exec unshare --mount --propagation private "$0"
fi
packages=("$source"/build/deb/tally_*.deb "$source"/build/deb/tally-as-perf_*.deb "$source"/build/deb/libtally0_*.deb "$source"/build/deb/libtally-dev_*.deb)
[ -e "${packages[0]}" ] || skip_all "there are no packages: make deb"

# The mirror from which this machine gets its packages.
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
	sed -n 's|^URIs: *\([^ ]*/debian\)/* *$|\1|p; s|^deb \(\[[^]]*\] \)\?\([^ ]*/debian\)/* .*|\2|p' | head -1)
[ "$mirror" ] || skip_all "this machine has its packages from no Debian mirror"

base=$source/build/package/$suite.tar.gz
mkdir -p "${base%/*}"
work=$(mktemp -d -p "${base%/*}") || exit 1
trap 'umount -R "$work/here" "$work/there" 2>/dev/null; rm -rf --one-file-system "$work"' EXIT
if [ ! -e "$base" ]; then
	echo "# a clean $suite from $mirror"
	timeout 600 debootstrap --variant=minbase "$suite" "$work/base" "$mirror" >"$work/out" 2>&1 ||
		skip_all "debootstrap failed: $(tail -1 "$work/out")"
	rm -f "$work"/base/var/cache/apt/archives/*.deb
	tar -C "$work/base" -cf - . | gzip -1 >"$base.new" && mv "$base.new" "$base" || exit 1
	rm -rf "$work/base"
fi

# clean NAME: makes $work/NAME a machine of its own, on this kernel
clean() {
	# A mount of its own, which unshare(1) needs for a root.
	mkdir "$work/$1" && mount --bind "$work/$1" "$work/$1" && tar -C "$work/$1" -xpf "$base" || exit 1
	mount -t proc proc "$work/$1/proc"
	mount -t sysfs sys "$work/$1/sys"
	mount -t tracefs tracing "$work/$1/sys/kernel/tracing" 2>/dev/null
	mount --rbind /dev "$work/$1/dev"
	cp /etc/resolv.conf "$work/$1/etc/" 2>/dev/null
	cp /etc/hosts "$work/$1/etc/" 2>/dev/null
	mkdir "$work/$1/packages" && cp "${packages[@]}" "$work/$1/packages"
	# Installs what minbase leaves out: the test checks manual pages.
	rm -f "$work/$1"/etc/dpkg/dpkg.cfg.d/*
}
# within NAME COMMAND: runs it there with a shell, as root after a login; ./out gets the output
within() {
	chroot "$work/$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		timeout 300 sh -c "$2" >"$work/out" 2>&1 </dev/null
}
has() { grep -qF -- "$1" "$work/out"; }

clean here
within here 'apt-get -q update' || skip_all "the mirror can't be reached: $(tail -1 "$work/out")"
within here 'apt-get -qy install --no-install-recommends /packages/tally_*.deb'
check "apt installs the command, and what it needs"
within here 'tally --version' && grep -qx 'tally [0-9.]*' "$work/out"
check "tally --version"
within here 'tally doctor' && has 'What works'
check "tally doctor"
within here 'tally stat true' && has 'task-clock'
check "tally stat true"
within here 'tally record -q -o /tmp/t.data gzip -9c /usr/bin/perl >/dev/null && tally report -i /tmp/t.data' && has 'gzip'
check "record and report, of a program of the system's"
within here 'tally stat --provider simulated -e instructions true' && has '(exact, user)'
check "the simulated PMU"
within here 'tally stat --provider process true' && has '(process)'
check "the preloaded object"
within here 'command -v gcc || command -v perf'
[ $? != 0 ]
check "and all that without a compiler, or perf"

within here 'apt-get -qy install --no-install-recommends /packages/*.deb man-db bash-completion gcc libc6-dev pkg-config'
check "apt installs the libraries"
within here 'man tally-stat | col -b 2>/dev/null || man tally-stat' && has 'TALLY-STAT(1)' && has '--repeat'
check "man tally-stat"
within here '. /etc/profile && perf --version && perf stat -e task-clock true' && has '(tally' && has 'Performance counter stats'
check "tally-as-perf: a login's perf is tally"
within here 'for page in $(tally help | sed -n "s/^  \([a-z-]*\)  .*/\1/p"); do man -w tally-$page || exit 1; done'
check "each command has its page"
within here 'bash -ic ". /usr/share/bash-completion/bash_completion; _completion_loader tally; complete -p tally"' && has 'tally'
check "bash completes it"
within here 'test -s /usr/share/zsh/vendor-completions/_tally &&
	test -s /usr/share/fish/vendor_completions.d/tally.fish'
check "completion for zsh and fish is there"
within here 'cd /tmp && for example in ratio self_count; do
	gcc -Wall -Werror -o $example /usr/share/doc/libtally-dev/examples/$example.c $(pkg-config --cflags --libs tally) || exit 1
	done && { timeout 2 ./self_count | head -2; }' && has '='
check "the examples of the library are built with what is installed, and run"
within here "cd /tmp && gcc -o static /usr/share/doc/libtally-dev/examples/self_count.c -Wl,-Bstatic \
	\$(pkg-config --static --libs tally) -Wl,-Bdynamic -lc 2>&1 || gcc -o static \
	/usr/share/doc/libtally-dev/examples/self_count.c \$(gcc -print-file-name=libtally.a) && { timeout 2 ./static | head -2; }" &&
	has '='
check "the static library serves, too"

# --- the tutorial ------------------------------------------------------------------------------------------------
within here 'apt-get -qy install --no-install-recommends nodejs g++ procps'
check "apt installs what the tutorial profiles"
cat >"$work/shell" <<SHELL
#!/bin/sh
exec chroot "$work/here" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root bash -c 'cd && exec bash'
SHELL
chmod +x "$work/shell"
"$source/tests/package/document.py" "$work/here/usr/share/doc/tally/tutorial.md" "$work/shell" >"$work/out"
check "the tutorial goes as it says"
! grep -q 'SKIP' "$work/out"
check "and nothing of it is left out"

# --- somewhere else ----------------------------------------------------------------------------------------------
clean there
within there 'apt-get -q update && apt-get -qy install --no-install-recommends /packages/tally_*.deb'
check "another clean system"
cp "$work"/here/root/tutorial/*.data "$work/there/root"
for recording in node box shop; do
	# The programs that made it are removed: the answers come from the recording only.
	within there "cd && tally report -g -i $recording.data" && cp "$work/out" "$work/report.there" &&
		within here "cd && cd tutorial && tally report -g -i $recording.data" && cmp "$work/report.there" "$work/out"
	check "$recording.data says the same there"
done
within there 'cd && tally flamegraph -i shop.data -o /tmp/shop.html' && grep -q find_customer "$work/there/tmp/shop.html"
check "a flame graph is drawn there"

within here 'apt-get -qy purge tally libtally0 libtally-dev && ! find /usr /etc -name "*tally*" | grep .'
check "removed, they leave nothing behind"

if command -v lintian >/dev/null; then
	lintian --allow-root --fail-on error "$source"/build/deb/*.deb >"$work/out" 2>&1
	check "lintian finds no errors"
fi
echo "1..$number"
exit $failed
