#!/bin/bash
# The ABI that libtally promises to programs built with it: its name, its symbols with their
# versions, and the layout of its structures.  TAP; $LIBRARY, $LAYOUT (prints the structures),
# $GOLDEN (the list).  UPDATE=1 writes the list anew.  Lines may be added; changing or removing one
# needs another version of the library.
set -u
if [ ! -e "$GOLDEN" ] && [ -z "${UPDATE-}" ]; then
	echo "1..0 # SKIP no list for this architecture: ${GOLDEN##*/}"
	exit
fi
found=$(mktemp) || exit 1
trap 'rm -f "$found"' EXIT
{
	readelf -d "$LIBRARY" | sed -n 's/.*SONAME.*\[\(.*\)\]/name \1/p'
	nm -D --defined-only "$LIBRARY" | awk '$2 != "A" { print "symbol", $2, $3 }' | LC_ALL=C sort -k3
	"$LAYOUT"
} >"$found"
[ -n "${UPDATE-}" ] && cp "$found" "$GOLDEN"
echo 1..2
grep -q '^symbol T tally_counter_open@@LIBTALLY_0.1$' "$found" || echo -n 'not '
echo "ok 1 - symbols have the library's version"
difference=$(diff "$GOLDEN" "$found") || echo -n 'not '
echo "ok 2 - the library is what was promised"
[ -z "$difference" ] || sed 's/^/# /' <<<"$difference"
