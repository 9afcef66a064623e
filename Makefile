# A thin front over Meson: the two commands that anyone must know are `make demo` and `make check`.

PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: all tests uninstall install-perf-link demo check check-slow soak soak-record soak-process soak-interface mutants conformance bench bench-large bench-recorder bench-engine install deb check-package fuzz fuzz-views clean fuzz-mutants
all: build/build.ninja
	@ninja -C build

build/build.ninja:
	@scripts/packages build
	meson setup build --prefix="$(PREFIX)" -Dtests=disabled

# All that the tests need, too.
tests: build/build.ninja
	@scripts/packages test
	@meson configure build -Dtests=enabled
	@ninja -C build

# Installs what is missing, builds, profiles the bundled example.
demo: all
	@scripts/demo

# Installs what the tests need, builds, runs every test.
check:
	@scripts/check

# What takes a minute or more: a million samples recorded, a hundred thousand stacks unwound.
check-slow: tests
	meson test -C build --suite slow --print-errorlogs

# One fault at a time in the engine: its tests must catch each.
mutants:
	@scripts/mutants

# One fault at a time in a parser: its fuzzer must find each within FUZZ_SECONDS (here 120).
fuzz-mutants:
	@scripts/fuzz-mutants

# A million random calls on the kernel and on the engine, or a part of them: from round SOAK_SEED on, 200 calls each.
SOAK_CALLS ?= 1000000
SOAK_SEED ?= 1
soak: tests
	@build/tests/conformance/differential --soak --seed $(SOAK_SEED) --rounds $$(($(SOAK_CALLS) / 200)) </dev/null

# An hour's recording under a storm of 1,500 programs a second, a fifth of which were never seen before: its memory must stay what
# it is.
SOAK_SECONDS ?= 3600
SOAK_RATE ?= 1500
SOAK_NEW ?= 1
soak-record: tests
	@TALLY=$(CURDIR)/build/tally EXEC_STORM=$(CURDIR)/build/tests/cli/exec_storm SOAK_RATE=$(SOAK_RATE) SOAK_NEW=$(SOAK_NEW) \
		tests/cli/record_soak.sh $(SOAK_SECONDS) $(SOAK_OPTIONS)

# An hour of threads, processes and signals under the process provider.  SEED is the first round's.
SEED ?= 1
soak-process: tests
	@TALLY=$(CURDIR)/build/tally TORTURE=$(CURDIR)/build/tests/cli/process_torture \
		TORTURE_LIBRARY=$(CURDIR)/build/tests/cli/libtorture_library.so \
		OBJECTS=$(CURDIR)/build/src/engine/hosts/process \
		tests/cli/process_torture.sh $(SOAK_SECONDS) $(SEED)

# Random calls on the kernel's perf_event_open(2) and on that of the preloaded object: about an hour.
INTERFACE_CALLS ?= 200000
soak-interface: tests
	@build/tests/conformance/differential --soak --seed $(SOAK_SEED) --rounds $$(($(INTERFACE_CALLS) / 200)) \
		--under build/tests/cli/refuse_perf EPERM build/tally run -- </dev/null

# Each clause of docs/spec.md on the running kernel, in a guest machine with a PMU and in the simulated one.
conformance: tests
	@scripts/packages guest || echo "conformance: without a guest machine"
	@scripts/conformance

# Against perf, and the simulated PMU against Valgrind's tools, in the same run: tables of docs/performance.md.
bench: tests
	@bench/run
	@bench/simulated

# The same on recordings of 50 MB to 2 GB, and what each goal says: BENCH="--quick", BENCH="--sizes 50 500 --rows script".
BENCH ?=
bench-large: tests
	@bench/large.py $(BENCH)

# Records at 20 kHz and floods of hits, beside perf; BENCH='--as-user nobody' for an ordinary user.
bench-recorder: tests
	@bench/recorder $(BENCH)

# The engine's own costs, beside the kernel's: docs/performance.md, The engine.
bench-engine: tests
	@build/bench/bench_engine 15
	@build/bench/bench_reads 15
	@TALLY_EVENTS=wall build/bench/bench_regions 101
	@build/bench/bench_regions 101

# Asks for no other compiler options than those of the build, so nothing is compiled again for another PREFIX.
install: all
	@scripts/install "$(PREFIX)" "$(DESTDIR)"

# Programs that start perf start tally then, which speaks perf's words (docs/compatibility.md, perf mode).
install-perf-link: install
	@scripts/install-perf-link "$(PREFIX)" "$(DESTDIR)"

# Removes the files of the last `make install`, and the folders that were its own.
uninstall:
	@scripts/uninstall

# Debian packages in build/deb: tally, tally-as-perf, libtally0, libtally-dev, and their debug symbols.
deb:
	@scripts/deb

# Installs them in a clean Debian and works there as someone new would; needs root and a mirror.
check-package: deb
	@scripts/packages chroot || echo "check-package: without a clean Debian: its tests are skipped"
	@tests/package/chroot.sh

# Each fuzzer for FUZZ_SECONDS; the corpora alone are replayed by `make check`.
FUZZ_SECONDS ?= 60
fuzz:
	@scripts/fuzz $(FUZZ_SECONDS)

# Recordings and programs of any bytes through all views, for an hour or FUZZ_SECONDS.
fuzz-views:
	@scripts/fuzz $(if $(filter file,$(origin FUZZ_SECONDS)),3600,$(FUZZ_SECONDS)) views

clean:
	rm -rf build build-sanitized build-threads build-mutants build-fuzz-mutants build-coverage
