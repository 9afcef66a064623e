/* Starts a command under the simulated PMU, and finds those that can't be started.
 *
 * The program executed is a launcher beside the tool, with the same options in each run.
 * Valgrind's environment variables and option files are ignored, since a count must not depend on
 * them.  Valgrind has messages of its own for programs that it can't run, or runs them unsimulated:
 * so this file reports whatever the program's file can tell. */
#include "provider/host_place.h"
#include "provider/provider_internal.h"

#include "valgrind/vsim_program.h"

#include "base/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the tool ------------------------------------------------------------ */

int tally_simulated_find(char *out, size_t size, struct tally_error *err)
{
	const struct tally_host_place *place = &tally_host_place_simulated;
	if (!place->absent[0] && tally_host_place_find(place, out, size))
		return 0;
	if (place->absent[0]) {
		tally_error_set(err, -ENOENT, "there is no simulated PMU here: %s", place->absent);
		tally_error_hint(err, "install it, and build tally again");
	} else {
		tally_error_set(err, -ENOENT,
				"the simulated PMU's files are neither beside tally nor in %s",
				place->installed);
		tally_error_hint(err, "'meson install' puts them there");
	}
	return -ENOENT;
}

const char *tally_simulated_lack(void)
{
	return tally_host_place_lack(&tally_host_place_simulated);
}

/* ---- the program --------------------------------------------------------- */

static int refuse_rights(const char *path, struct tally_error *err)
{
	tally_error_set(err, -EACCES,
			"'%s' is set-user-ID or set-group-ID: such programs can't be simulated",
			path);
	tally_error_hint(err, "copy it (cp drops these bits) and run the copy");
	return -EACCES;
}

static int refuse_avx512(const char *path, struct tally_error *err)
{
	tally_error_set(
		err, -ENOEXEC,
		"'%s' requires a CPU with AVX-512 (x86-64-v4), which the simulated CPU lacks",
		path);
	tally_error_hint(err, "build it for x86-64-v3 at most, and link it without -z x86-64-v4");
	return -ENOEXEC;
}

static int refuse_machine(const char *path, const char *because, struct tally_error *err)
{
	tally_error_set(err, -ENOEXEC,
			"'%s' is not an x86-64 program, and no others can be simulated%s",
			path, because);
	tally_error_hint(err, "build it for x86-64");
	return -ENOEXEC;
}

/* Returns the first word of "#!/usr/bin/env python3". */
static void interpreter(const unsigned char *bytes, size_t size, char *out)
{
	const char *text = (const char *)bytes + 2;
	size_t length = strnlen(text, size - 2);
	while (length && (*text == ' ' || *text == '\t'))
		text++, length--;
	size_t word = 0;
	while (word < length && !strchr(" \t\n", text[word]))
		word++;
	memcpy(out, text, word);
	out[word] = '\0';
}

static int check_program(const char *path, unsigned depth, struct tally_error *err)
{
	enum { LINE = 256, INTERPRETERS = 5 };
	unsigned char bytes[VSIM_PROGRAM_HEAD] = { 0 };
	char next[LINE];
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == EACCES)
		return tally_error_set(err, -EACCES,
				       "'%s' can't be simulated: no permission to read it", path);
	if (fd < 0)
		return 0; /* Valgrind will report the same error as the kernel */
	ssize_t got = -1;
	if (!fstat(fd, &st))
		got = read(fd, bytes, sizeof(bytes) - 1);
	close(fd);
	if (got < 0)
		return 0;
	if (st.st_mode & (S_ISUID | S_ISGID))
		return refuse_rights(path, err);
	switch (vsim_program_look(bytes, (size_t)got)) {
	case VSIM_PROGRAM_X86_64:
		return 0;
	case VSIM_PROGRAM_AVX512:
		return refuse_avx512(path, err);
	case VSIM_PROGRAM_32_BITS:
		return refuse_machine(path, ": it is a 32-bit program", err);
	case VSIM_PROGRAM_OTHER_MACHINE:
		return refuse_machine(path, "", err);
	case VSIM_PROGRAM_NO_ELF:
		break;
	}
	if (got < 3 || bytes[0] != '#' || bytes[1] != '!' || depth == INTERPRETERS)
		return 0;
	interpreter(bytes, got < LINE ? (size_t)got : LINE - 1, next);
	if (next[0] == '/' && access(next, F_OK) < 0)
		return tally_error_set(err, -ENOENT,
				       "'%s' exists, but its interpreter does not",
				       path);
	return check_program(next, depth + 1, err);
}

/* ---- what the tool needs to start ---------------------------------------- */

/* Otherwise Valgrind would report it with its own messages, when the command has practically
 * started. */
static int check_surroundings(struct tally_error *err)
{
	enum { DESCRIPTORS = 20 }; /* it takes a dozen of the program's descriptors for itself */
	struct rlimit limit;
	const char *folder = tally_environment_of_caller("TMPDIR");
	if (!folder || !*folder)
		folder = "/tmp";
	if (access(folder, W_OK | X_OK) < 0) {
		tally_error_set(
			err, -EACCES,
			"the simulated PMU needs a directory for its files, and %s is not usable: "
			"%s",
			folder, tally_errno_text(-errno));
		tally_error_hint(err, "set TMPDIR to a usable directory");
		return -EACCES;
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max >= DESCRIPTORS)
		return 0;
	tally_error_set(
		err, -EACCES,
		"the simulated PMU needs more file descriptors: the limit is %llu, %d are enough",
		(unsigned long long)limit.rlim_max, DESCRIPTORS);
	tally_error_hint(err, "raise ulimit -n");
	return -EACCES;
}

/* ---- the plan ------------------------------------------------------------ */

static void choose_region(struct vsim_plan *plan, const struct tally_simulated_options *options)
{
	_Static_assert(TALLY_SIMULATED_FUNCTIONS <= (int)VSIM_FUNCTIONS,
		       "as many as are checked for");
	_Static_assert(TALLY_SIMULATED_FUNCTION_NAME < (int)VSIM_FUNCTION_NAME,
		       "as long as is checked for");
	plan->region_only = options->region || options->function_count;
	plan->function_count = options->function_count;
	for (unsigned i = 0; i < options->function_count; i++)
		snprintf(plan->functions[i], sizeof(plan->functions[i]), "%s",
			 options->functions[i]);
}

static int make_plan(struct simulated *simulated, struct tally_error *err)
{
	int result = planned_file_make(&simulated->planned, simulated->options.memory, err);
	if (result < 0)
		return result;
	simulated_plan_of(simulated)->geometry = simulated->geometry;
	choose_region(simulated_plan_of(simulated), &simulated->options);
	return 0;
}

/* ---- the command line ---------------------------------------------------- */

static const char *const fixed[] = {
	"--command-line-only=yes", /* neither VALGRIND_OPTS nor a .valgrindrc */
	"-q",
	"--vgdb=no",
	"--trace-children=yes",
	"--sigill-diagnostics=no",
	"--show-emwarns=no",
	"--default-suppressions=no",
	"--read-inline-info=no", /* it would complain about the output of newer compilers */
	"--read-var-info=no",
	"--max-threads=1000",
	"--",
};

int simulated_command(struct tally_provider *provider, const char *path, char **command,
		      char ***out, struct tally_error *err)
{
	enum { FIXED = sizeof(fixed) / sizeof(fixed[0]) };
	struct simulated *simulated = simulated_of(provider);
	int result = check_program(path, 0, err);
	if (result < 0)
		return result;
	result = check_surroundings(err);
	if (result < 0)
		return result;
	result = make_plan(simulated, err);
	if (result < 0)
		return result;
	size_t count = 0, used = 0;
	while (command[count])
		count++;
	free(simulated->argv);
	free(simulated->words);
	simulated->words = NULL;
	simulated->argv = calloc(2 + FIXED + count + 1, sizeof(*simulated->argv));
	int length = asprintf(&simulated->words, "%s/%s%c--plan=%s", simulated->folder,
			      tally_host_place_simulated.file, 0,
			      simulated->planned.file.path.path);
	if (length < 0)
		simulated->words = NULL;
	if (!simulated->argv || !simulated->words)
		return tally_error_set(err, -ENOMEM, "out of memory");
	char **argv = simulated->argv;
	argv[used++] = simulated->words;
	argv[used++] = simulated->words + strlen(simulated->words) + 1;
	for (size_t i = 0; i < FIXED; i++)
		argv[used++] = (char *)(uintptr_t)fixed[i];
	memcpy(argv + used, command, count * sizeof(*argv));
	*out = argv;
	planned_publish(&simulated->planned);
	return 0;
}
