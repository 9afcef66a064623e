#!/bin/bash
# `tally cache` lists and clears what is stored about objects.  TAP; $TALLY is the binary,
# $STORE_BLOB stores a blob.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export XDG_CACHE_HOME=$scratch/caches HOME=$scratch NO_COLOR=
unset TALLY_CACHE_BYTES

cache() { "$TALLY" cache "$@" >out 2>&1; }
has() { grep -q -- "$1" out; }
rows() { [ "$(grep -cE '^ +[0-9.]+ (B|KiB|MiB)  ' out)" = "$1" ]; }

empty() { cache && has "^$scratch/caches/tally: 0 B of at most 512 MiB$" && rows 0; }
check "an empty cache shows its path" empty

listed() {
	"$STORE_BLOB" symbols 0 2000 /usr/bin/one 0x11 && "$STORE_BLOB" lines 1 3000 /usr/bin/one 0x11 &&
		"$STORE_BLOB" lines 2 3000 /usr/bin/one 0x11 && "$STORE_BLOB" symbols 0 200 "$(printf '/lib/\033[31mtwo')" 0x22 &&
		cache --list && rows 3 &&
		has '2.2 KiB      1     now  symbols          1111111111111111111111111111111111111111  /usr/bin/one$' &&
		has '6.3 KiB      2     now  lines            1111111111111111111111111111111111111111  /usr/bin/one$' &&
		has '405 B      1     now  symbols          2222222222222222222222222222222222222222  /lib/?\[31mtwo$' &&
		has '/tally: 8.8 KiB of at most'
}
check "objects and kinds have a row each; names are shown without escapes" listed

aged() {
	touch -d '73 hours ago' caches/tally/1111111111111111111111111111111111111111.symbols.0.*.blob &&
		cache && tail -n 1 out >last && grep -q ' 3 d  symbols  .* /usr/bin/one$' last
}
check "the last row is the one unused for longest" aged

damaged() {
	local blob
	blob=$(echo caches/tally/2222222222222222222222222222222222222222.symbols.0.*.blob)
	cp "$blob" keep && head -c 100 keep >"$blob" &&
		cache && has '100 B .* damaged, or of another version$'
}
check "a damaged blob is shown as damaged" damaged

limited() { TALLY_CACHE_BYTES=1M cache && has 'of at most 1.0 MiB$'; }
check "TALLY_CACHE_BYTES limits the size" limited

cleared() {
	: >caches/tally/notes.txt && : >caches/tally/keep.blob
	cache --clear && has '^removed 4 blobs, 8.' && cache && rows 0 && [ -f caches/tally/notes.txt ] && [ -f caches/tally/keep.blob ]
}
check "--clear removes only the blobs" cleared

both() { "$STORE_BLOB" symbols 0 2000 /usr/bin/one 0x11 && cache --list --clear && rows 1 && has '^removed 1 blob,'; }
check "--list --clear shows what it removes" both

none() {
	TALLY_CACHE_BYTES=0 cache && has '^no cache: ' && (unset HOME XDG_CACHE_HOME && cache) && has '^no cache: ' &&
		XDG_CACHE_HOME=/proc/none cache --clear && has '^no cache: '
}
check "if no cache can exist, a message says so" none

refused() {
	! cache surplus && has "unexpected argument 'surplus'" && ! cache --lists && has 'no option --lists'
}
check "wrong use is refused" refused

echo "1..$number"
