/* Unwinds stacks that were recorded on arm64 (see arm64/walk.c), on any machine: with and without
 * pointer authentication, from inside signal handlers and their return paths.
 *
 * The program is the oracle: each frame must be in a function that, by its source, may call the one
 * before, up to _start.  The kernel's vdso is not here, as on any other machine.  The programs are
 * found by build-id, where perf keeps them. */
#include "test.h"

#include "object/object.h"
#include "recording/recording.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FRAMES = 128, HIGH_BITS = 48 };

static const char VDSO[] = "[vdso]";
#define ANY "*"

/* Which functions may call which: by the source, and by the compiler's tail calls. */
static const struct {
	const char *callee, *callers[8];
} CALLS[] = {
	{ "leaf", { "large_frame", "with_alloca", "with_doubles", "recurse", "on_alarm", "work" } },
	{ "next_random", { "recurse", "run" } },
	{ "large_frame", { "with_alloca", "each" } },
	{ "with_alloca", { "each" } },
	{ "each", { "recurse", "on_alarm", VDSO } },
	{ "with_doubles", { "work" } },
	{ "recurse", { "recurse", "work" } },
	{ "on_alarm", { VDSO } },
	{ "work", { "run" } },
	{ "run", { "start" } },
	{ "start", { "_start" } },
	{ VDSO, { ANY } },
};

struct counts {
	size_t samples, whole, interrupted, in_trampoline, torn, unmapped, signed_words;
};

static bool may_call(const char *caller, const char *callee)
{
	for (size_t i = 0; i < sizeof(CALLS) / sizeof(*CALLS); i++)
		for (size_t j = 0; !strcmp(CALLS[i].callee, callee) && j < 8 && CALLS[i].callers[j];
		     j++)
			if (!strcmp(CALLS[i].callers[j], caller) ||
			    !strcmp(CALLS[i].callers[j], ANY))
				return true;
	return false;
}

static void path_of(char path[512], const char *program, const char *suffix)
{
	snprintf(path, 512, "%s/tests/unit/arm64/%s%s", getenv("TALLY_SOURCE_ROOT"), program,
		 suffix);
}

/* Writes ~/.debug/.build-id/ab/cdef…/elf, in a home of its own. */
static void keep_program(const char *home, const char *program)
{
	char source[512], hex[2 * TALLY_BUILD_ID_MAX + 1], folder[512], target[600];
	struct tally_object *object;
	path_of(source, program, "");
	assert_int_equal(tally_object_open(AT_FDCWD, source, &object, NULL), 0);
	tally_build_id_format(tally_object_build_id(object), hex);
	tally_object_unref(object);
	snprintf(folder, sizeof(folder), "%s/.debug", home);
	mkdir(folder, 0700);
	snprintf(folder, sizeof(folder), "%s/.debug/.build-id", home);
	mkdir(folder, 0700);
	snprintf(folder, sizeof(folder), "%s/.debug/.build-id/%.2s", home, hex);
	mkdir(folder, 0700);
	snprintf(folder, sizeof(folder), "%s/.debug/.build-id/%.2s/%s", home, hex, hex + 2);
	assert_int_equal(mkdir(folder, 0700), 0);
	snprintf(target, sizeof(target), "%s/elf", folder);
	assert_int_equal(symlink(source, target), 0);
}

/* Finds the function of each user frame.  Returns their number. */
static size_t name_frames(struct tally_recording *recording, const char *functions[FRAMES])
{
	size_t count = 0;
	for (size_t i = 0; i < recording->chain.count; i++) {
		const struct tally_chain_frame *frame = &recording->chain.items[i];
		uint32_t function = tally_names_function(&recording->names, &frame->place, NULL);
		assert_true(function != UINT32_MAX && count < FRAMES);
		const char *object = tally_names_object(&recording->names, function);
		if (!frame->kernel)
			functions[count++] = !strcmp(object, VDSO)
						     ? VDSO
						     : tally_names_text(&recording->names,
									function);
	}
	return count;
}

/* Returns how many words of the stack are addresses of code except for their high bits. */
static size_t count_signed(const struct tally_sample *sample)
{
	size_t count = 0;
	for (uint64_t i = 0; i + 8 <= sample->stack_dynamic_size; i += 8) {
		uint64_t word, address;
		memcpy(&word, (const uint8_t *)sample->stack + i, sizeof(word));
		address = word & (((uint64_t)1 << HIGH_BITS) - 1);
		count += address != word && address >= 0x400000 && address < 0x401000;
	}
	return count;
}

static void check_stack(struct tally_recording *recording, struct counts *counts)
{
	const char *functions[FRAMES] = { NULL };
	size_t count = name_frames(recording, functions);
	counts->samples++;
	if (count == 1 && !strcmp(functions[0], "[unknown]")) {
		/* in execve(2): the mappings are the new program's, the registers the old one's */
		counts->unmapped++;
		return;
	}
	assert_true(count > 0);
	bool is_whole = !strcmp(functions[count - 1], "_start");
	if (!is_whole && !strcmp(functions[0], VDSO)) {
		counts->torn++; /* rt_sigreturn(2) had restored some registers, and others not */
		return;
	}
	assert_true(is_whole);
	counts->whole++;
	for (size_t i = 1; i < count; i++) {
		if (!may_call(functions[i], functions[i - 1]))
			fail_msg("%s calls %s", functions[i], functions[i - 1]);
		counts->interrupted += !strcmp(functions[i], VDSO);
	}
	counts->in_trampoline += !strcmp(functions[0], VDSO);
}

static void check_recording(const char *program, bool is_interpreted, struct counts *counts)
{
	char path[512];
	struct tally_error err;
	struct tally_recording *recording;
	struct tally_raw_record raw;
	struct tally_record record;
	int result;
	path_of(path, program, ".perfdata");
	assert_int_equal(tally_recording_open(path, &recording, &err), 0);
	assert_int_equal(recording->names.objects.machine, TALLY_UNWIND_ARM64);
	recording->names.objects.unwind_interpreted = is_interpreted;
	while ((result = tally_recording_next(recording, &raw, &record, &err)) > 0) {
		if (record.header.type != TALLY_RECORD_SAMPLE)
			continue;
		assert_int_equal(tally_recording_chain(recording, &raw, &record), 0);
		if (!record.sample.regs_user.words || !record.sample.stack_dynamic_size)
			continue;
		check_stack(recording, counts);
		counts->signed_words += count_signed(&record.sample);
	}
	assert_int_equal(result, 0);
	assert_int_equal(recording->counts.stacks_cut, 0);
	tally_recording_close(recording);
}

static void each_stack_is_one_that_the_program_has(void **state)
{
	(void)state;
	for (int is_interpreted = 0; is_interpreted < 2; is_interpreted++) {
		struct counts plain = { 0 }, authenticated = { 0 };
		check_recording("walk-plain", is_interpreted, &plain);
		check_recording("walk-pac", is_interpreted, &authenticated);
		assert_in_range(plain.whole, 130, plain.samples);
		assert_in_range(authenticated.whole, 100, authenticated.samples);
		assert_true(plain.interrupted >= 40 && authenticated.interrupted >= 20);
		assert_true(plain.in_trampoline >= 5 && plain.torn <= 1 && authenticated.torn == 0);
		assert_int_equal(plain.signed_words, 0);
		assert_true(authenticated.signed_words > 500);
	}
}

static int make_home(void **state)
{
	char *home = strdup("/tmp/tally-test-arm64.XXXXXX");
	if (!home || !mkdtemp(home) || setenv("HOME", home, 1) < 0)
		return -1;
	keep_program(home, "walk-plain");
	keep_program(home, "walk-pac");
	*state = home;
	return 0;
}

static int remove_home(void **state)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", (char *)*state);
	free(*state);
	return system(command) == 0 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_stack_is_one_that_the_program_has),
	};
	return cmocka_run_group_tests(tests, make_home, remove_home);
}
