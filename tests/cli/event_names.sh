#!/bin/bash
# Each view accepts each event's name, over recordings of all kinds.  TAP; $TALLY is the binary.
set -u
. "$(dirname "$0")/tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8 HOME=$scratch
have python3 || skip_all "there is no python3"

for kind in late_names named_as_numbers named_badly simpleperf simpleperf_tracepoints tool_pipe traced_in_samples; do
	"$here/make_recording.py" "$kind" "$kind.data" || exit 1
done
"$here/event_names.py" ./*.data "$SOURCE"/tests/corpus/perfdata/*
