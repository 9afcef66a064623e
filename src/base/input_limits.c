/* The table of limits, then TALLY_LIMITS, then refusals.  TALLY_LIMITS is parsed again at each
 * query, so only the names of refused inputs are state of the process. */
#include "base/input_limits.h"

#include "base/environment.h"
#include "base/extremes.h"
#include "base/number_text.h"
#include "base/strings.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

const struct tally_input_row tally_input_rows[TALLY_INPUTS] = {
	[TALLY_INPUT_RECORDING] = {
		.name = "recording", .bytes = GIB(4),
		.what = "a recording that is read into memory: through a pipe, or another user's",
	},
	[TALLY_INPUT_COMPRESSED] = {
		.name = "compressed", .bytes = GIB(1024), .free_bytes = MIB(4), .ratio = 8192,
		.what = "compressed records, unpacked (copies of stacks may differ in a few bytes)",
	},
	[TALLY_INPUT_HELD] = {
		.name = "held", .bytes = GIB(4),
		.what = "unpacked records that are held until all earlier ones are read",
	},
	[TALLY_INPUT_UNPACKED] = {
		.name = "unpacked", .bytes = GIB(4),
		.what = "a recording or text that was compressed as a whole (gzip, xz, zstd)",
	},
	[TALLY_INPUT_TEXT] = {
		.name = "text", .bytes = GIB(4),
		.what = "text of stacks: folded, or of perf script",
	},
	[TALLY_INPUT_SECTION] = {
		.name = "section", .bytes = GIB(1), .free_bytes = MIB(64), .ratio = 64,
		.what = "the names, stacks and code that a recording carries, unpacked",
	},
	[TALLY_INPUT_TABLES] = {
		.name = "tables", .bytes = GIB(2), .free_bytes = MIB(64), .ratio = 64,
		.what = "memory for a table that is made of them",
	},
	[TALLY_INPUT_OBJECT] = {
		.name = "object", .bytes = GIB(4),
		.what = "a program, library or debug file that is copied: another user's",
	},
	[TALLY_INPUT_OBJECT_SECTIONS] = {
		.name = "object-sections", .bytes = GIB(4), .free_bytes = MIB(64), .ratio = 64,
		.what = "compressed sections of one object, unpacked",
	},
	[TALLY_INPUT_DWARF] = {
		.name = "dwarf", .bytes = GIB(1024), .free_bytes = MIB(1), .ratio = 16,
		.what = "debug information that is read for lines, as often as it is read",
	},
	[TALLY_INPUT_MINIDEBUGINFO] = {
		.name = "minidebuginfo", .bytes = MIB(256),
		.what = "an object's .gnu_debugdata, unpacked",
	},
	[TALLY_INPUT_MODULE] = {
		.name = "module", .bytes = GIB(1),
		.what = "a kernel module, unpacked",
	},
	[TALLY_INPUT_PERF_MAP] = {
		.name = "perf-map", .bytes = MIB(256),
		.what = "the perf maps of a process and of those that it was forked from",
	},
	[TALLY_INPUT_PERF_MAPS] = {
		.name = "perf-maps", .bytes = GIB(4),
		.what = "all perf maps that a command reads",
	},
	[TALLY_INPUT_JIT_DUMP] = {
		.name = "jit-dump", .bytes = GIB(1),
		.what = "the dump of a JIT (jit-PID.dump), without holes",
	},
	[TALLY_INPUT_JIT_DUMPS] = {
		.name = "jit-dumps", .bytes = GIB(2),
		.what = "all dumps of JITs that a command reads",
	},
	[TALLY_INPUT_DEBUGINFOD] = {
		.name = "debuginfod", .bytes = GIB(2),
		.what = "a file from a debuginfod server",
	},
	[TALLY_INPUT_DEBUGINFOD_ALL] = {
		.name = "debuginfod-all", .bytes = GIB(8),
		.what = "all files that a command fetches from debuginfod servers",
	},
	[TALLY_INPUT_SOURCE] = {
		.name = "source", .bytes = MIB(32),
		.what = "a source file",
	},
	[TALLY_INPUT_DEMANGLED] = {
		.name = "demangled", .bytes = KIB(256), .is_fixed = true,
		.what = "a function's readable name; a longer one is shown as it is in the object",
	},
};

/* ---- TALLY_LIMITS -------------------------------------------------------- */

/* A limit of the variable. */
struct setting {
	const char *name, *size; /* not terminated */
	size_t name_length, size_length;
};

/* Gets the next setting of the list at *at.  Returns false at its end. */
static bool next_setting(const char **at, struct setting *setting)
{
	if (!*at || !**at)
		return false;
	size_t length = strcspn(*at, ",");
	const char *equals = memchr(*at, '=', length);
	setting->name = *at;
	setting->name_length = length;
	setting->size = *at + length;
	if (equals) {
		setting->name_length = (size_t)(equals - *at);
		setting->size = equals + 1;
	}
	setting->size_length = (size_t)(*at + length - setting->size);
	*at += length + (length < strlen(*at));
	return true;
}

/* Returns the kind of input, or TALLY_INPUTS for an unknown name. */
static enum tally_input input_of(const struct setting *setting)
{
	unsigned input = 0;
	while (input < TALLY_INPUTS &&
	       (strlen(tally_input_rows[input].name) != setting->name_length ||
		strncmp(tally_input_rows[input].name, setting->name, setting->name_length) != 0))
		input++;
	return (enum tally_input)input;
}

/* Gets the limit that the variable sets.  Returns false if it sets none for this input. */
static bool limit_of_variable(enum tally_input input, uint64_t *bytes)
{
	const char *at = tally_environment("TALLY_LIMITS");
	struct setting setting;
	bool found = false;
	while (!tally_input_rows[input].is_fixed && next_setting(&at, &setting))
		if (input_of(&setting) == input)
			found |= tally_size_parse(setting.size, setting.size_length, bytes);
	return found;
}

uint64_t tally_input_limit(enum tally_input input)
{
	uint64_t bytes = tally_input_rows[input].bytes;
	limit_of_variable(input, &bytes);
	return bytes;
}

uint64_t tally_input_limit_unpacked(enum tally_input input, uint64_t stored)
{
	const struct tally_input_row *row = &tally_input_rows[input];
	uint64_t bytes, most = row->bytes;
	if (limit_of_variable(input, &bytes))
		return bytes;
	if (row->ratio && stored < most / row->ratio)
		most = row->ratio * stored;
	if (row->ratio && most < row->free_bytes)
		most = row->free_bytes;
	return tally_min_u64(most, row->bytes);
}

static int no_such_limit(const struct setting *setting, struct tally_error *err)
{
	char names[sizeof(err->hint)];
	size_t length = 0;
	for (unsigned i = 0; i < TALLY_INPUTS; i++)
		if (!tally_input_rows[i].is_fixed && length < sizeof(names))
			length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s",
						   length ? ", " : "", tally_input_rows[i].name);
	tally_error_set(err, -EINVAL, "TALLY_LIMITS: there is no limit '%.*s'",
			(int)setting->name_length, setting->name);
	tally_error_hint(err, "the limits are %s", names);
	return -EINVAL;
}

int tally_input_limits_check(struct tally_error *err)
{
	const char *at = tally_environment("TALLY_LIMITS");
	struct setting setting;
	uint64_t bytes;
	while (next_setting(&at, &setting)) {
		enum tally_input input = input_of(&setting);
		if (input == TALLY_INPUTS || tally_input_rows[input].is_fixed)
			return no_such_limit(&setting, err);
		if (tally_size_parse(setting.size, setting.size_length, &bytes))
			continue;
		tally_error_set(err, -EINVAL, "TALLY_LIMITS: '%.*s' is no size for '%s'",
				(int)setting.size_length, setting.size,
				tally_input_rows[input].name);
		tally_error_hint(err, "write a number of bytes, or one with K, M or G: %s=8G",
				 tally_input_rows[input].name);
		return -EINVAL;
	}
	return 0;
}

/* ---- refusing ------------------------------------------------------------ */

const char *tally_input_hint(enum tally_input input, uint64_t limit, char out[TALLY_INPUT_HINT])
{
	uint64_t next = limit >> 30;
	if (limit < GIB(1) / 2)
		next = 1;
	else if (limit < UINT64_MAX / 4)
		next = 2 * limit >> 30;
	snprintf(out, TALLY_INPUT_HINT, "TALLY_LIMITS=%s=%lluG raises the limit",
		 tally_input_rows[input].name, (unsigned long long)next);
	return out;
}

int tally_input_refuse(struct tally_error *err, enum tally_input input, uint64_t limit,
		       const char *format, ...)
{
	char what[512], size[TALLY_SIZE_TEXT], hint[TALLY_INPUT_HINT];
	va_list args;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	tally_error_set(err, -EFBIG, "%s %s", what, tally_size_text(limit, size));
	tally_error_hint(err, "%s", tally_input_hint(input, limit, hint));
	return -EFBIG;
}

/* Names that were refused, by kind of input.  They are the process's: a reader deep below a command
 * has no other way to its end. */
static struct {
	pthread_mutex_t lock;
	struct tally_strings names[TALLY_INPUTS];
} refused = { .lock = PTHREAD_MUTEX_INITIALIZER };

void tally_input_note(enum tally_input input, const char *name)
{
	pthread_mutex_lock(&refused.lock);
	tally_strings_intern(&refused.names[input], name);
	pthread_mutex_unlock(&refused.lock);
}

size_t tally_input_noted(enum tally_input *input, const char **name)
{
	size_t count = 0;
	pthread_mutex_lock(&refused.lock);
	for (; *input < TALLY_INPUTS; *input = (enum tally_input)(*input + 1)) {
		const struct tally_strings *names = &refused.names[*input];
		if (names->count) {
			*name = tally_strings_text(names, 0);
			count = names->count;
			break;
		}
		if (names->failed) {
			*name = "a file";
			count = 1;
			break;
		}
	}
	pthread_mutex_unlock(&refused.lock);
	return count;
}
