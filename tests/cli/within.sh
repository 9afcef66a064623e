# Shared by tests of limits: how much memory a command takes.
# shellcheck shell=bash

# MIB COMMAND…: runs it; its output is in `out` and `err`, its status in $status.  Fails if it takes
# more memory.  AddressSanitizer keeps freed memory, and so takes more.
within() {
	python3 - "$@" <<'PY'
import resource, subprocess, sys
with open("out", "wb") as out, open("err", "wb") as err:
    status = subprocess.run(sys.argv[2:], stdout=out, stderr=err, stdin=subprocess.DEVNULL, timeout=300).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
open("status", "w").write(str(status))
allowed = int(sys.argv[1]) * (4 if b"__asan_report_load" in open(sys.argv[2], "rb").read() else 1)
if used > allowed:
    with open("err", "a") as err:
        err.write(f"it took {used} MiB instead of {allowed}\n")
    sys.exit(1)
PY
	local fits=$?
	# shellcheck disable=SC2034 # used by tests
	status=$(cat status)
	return $fits
}
# The command failed by an error, and not by a signal.
failed() { [ "$status" = 1 ]; }
says() { grep -qF -- "$1" err; }
