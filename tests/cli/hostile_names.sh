#!/bin/bash
# Names can't forge lines, control a terminal, turn text around, or break JSON, XML and HTML.  TAP;
# $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch XDG_CACHE_HOME=$scratch
have python3 || skip_all "there is no python3"
"$here/make_recording.py" hostile_names names.data || exit 1
"$here/make_recording.py" named_badly events.data || exit 1
cp names.data "a"$'\nFORGED\e]0;x\a'"b"

# A program, its source file and the lines in it have such names as well.
evil="s"$'\nFORGED\e]0;FORGED\a\xc2\x9b1m\xe2\x80\xaecba\x9b\xff'
{
	echo '#include <time.h>'
	echo "/* trojan "$'\e]0;FORGED\a \xe2\x80\xae\xe2\x81\xa6 \x9b1m \xc2\x9b \xed\xa0\x80 \xe2\x80\xa8FORGED'" </script><script>forged()</script> */"
	echo "unsigned hot(unsigned n) { for (unsigned i = 0; i < 1000; i++) n = n * 5 + i; return n; } /* "$'\xe2\x80\xaecba\e[2J \rFORGED'" */"
	echo 'int main(void) { unsigned n = 1; while (clock() < CLOCKS_PER_SEC / 4) n = hot(n); return n == 7; }'
} >"$evil.c"
recordings=(names.data events.data "a"$'\nFORGED\e]0;x\a'"b")
if have gcc && gcc -g -O1 -fno-inline -o "$evil" "$evil.c" 2>err && "$TALLY" record -q -e cpu-clock -F 999 -o source.data "./$evil" 2>err; then
	recordings+=(source.data)
fi
"$here/hostile_names.py" "${recordings[@]}"
