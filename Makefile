# A thin front over Meson: the two commands that anyone must know are `make demo` and `make check`.

PREFIX ?= /usr/local
DESTDIR ?=
BUILD ?= build

.PHONY: all demo check bench install fuzz clean
all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja:
	@scripts/packages build
	meson setup $(BUILD) --prefix=$(PREFIX)

# Installs what is missing, builds, profiles the bundled example.
demo: all
	@scripts/demo

# Installs what the tests need, builds, runs every test.
check:
	@scripts/check

# Against perf, in the same run: the table of docs/performance.md.
bench: all
	@bench/run

install: all
	meson configure $(BUILD) --prefix=$(PREFIX)
	DESTDIR=$(DESTDIR) ninja -C $(BUILD) install

# Each fuzzer for FUZZ_SECONDS; the corpora alone are replayed by `make check`.
FUZZ_SECONDS ?= 60
fuzz:
	@scripts/fuzz $(FUZZ_SECONDS)

clean:
	rm -rf build build-sanitized
