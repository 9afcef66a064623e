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
"$here/hostile_names.py" names.data events.data "a"$'\nFORGED\e]0;x\a'"b"
