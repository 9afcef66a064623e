#!/bin/bash
# Arguments, names of files and texts can't forge lines or control a terminal, in outputs and messages
# of any command.  TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch
have python3 || skip_all "there is no python3"
"$here/hostile_arguments.py"
