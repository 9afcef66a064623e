# Shared by shell tests: TAP, and a folder that is removed at the end.  A test sources it:
#     . "$(dirname "$0")/tap.sh"
# shellcheck shell=bash
number=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# With another user's environment (sudo) tally would ignore what tests set.
unset SUDO_UID PKEXEC_UID DOAS_USER
[ -O "${HOME:-/}" ] || export HOME=$scratch

# Runs a command as an unprivileged user whom no other test has: users have budgets, as of memory for
# rings, that all their processes share.
# shellcheck disable=SC2034 # used by tests
nobody="setpriv --reuid=$((20000 + $$ % 40000)) --regid=65534 --clear-groups"

ok() { number=$((number + 1)); echo "ok $number - $1"; }
skip() { number=$((number + 1)); echo "ok $number - $1 # SKIP $2"; }
skip_all() { echo "1..0 # SKIP $1"; exit 0; }
done_testing() { echo "1..$number"; exit 0; }
# An ordinary user's PATH lacks ldconfig.
libraries() { PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null; }
have() { command -v "$1" >/dev/null 2>&1; }
# gccgo's go makes other programs.
have_go() { have go && ! go version | grep -q gccgo; }
# Prints the beginning and the end of a file.
excerpt() {
	local lines
	lines=$(wc -l <"$1")
	if [ "$lines" -le 60 ]; then
		cat "$1"
	else
		head -n 20 "$1"
		echo "[… $((lines - 60)) lines …]"
		tail -n 40 "$1"
	fi | cut -c 1-400 | sed 's/^/# /'
}
# Reports a failure, with the output of the last commands as far as it is in these files.
not_ok() {
	local file
	number=$((number + 1))
	echo "not ok $number - $1"
	for file in out err screen; do
		[ ! -s "$file" ] || { echo "# --- $file:"; excerpt "$file"; }
	done
}
# NAME [COMMAND…]: reports the status of the command, or of the last one.
check() {
	local status=$?
	if [ $# -gt 1 ]; then
		"${@:2}"
		status=$?
	fi
	if [ $status = 0 ]; then ok "$1"; else not_ok "$1"; fi
}
