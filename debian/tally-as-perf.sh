# Programs that start perf find tally first, which speaks perf's words (tally-perf(1)).
PATH=/usr/libexec/tally-as-perf:$PATH
