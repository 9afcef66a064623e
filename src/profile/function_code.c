#include "profile/function_code.h"

#include "object/kcore.h"
#include "profile/name_functions.h"
#include "profile/name_tables.h"
#include "symbol/jit_dump.h"
#include "symbol/lines.h"
#include "task/jit.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CODE_BYTES_MAX = 4 << 20 };

/* What is known of a place's file: read on first use. */
struct known {
	uint32_t file;
	struct tally_name_table *table;
	struct tally_object_entry *entry;
};

static int know(struct tally_names *names, const struct tally_place *place, bool lines, struct known *out)
{
	*out = (struct known){ .file = tally_names_file(names, place) };
	if (out->file == TALLY_FILE_NONE)
		return -ENOENT;
	if (!tally_name_table_of(names, out->file))
		return -ENOMEM;
	out->table = tally_name_table_of(names, out->file);
	out->entry = tally_name_table_entry(names, out->file);
	if (tally_name_table_read(names, out->table, out->entry, lines) < 0)
		return -ENOMEM;
	if (out->table->is_kernel)
		tally_kernel_names_reach(names, out->table, place->address);
	return 0;
}

__attribute__((format(printf, 2, 3)))
static void because(struct tally_function_code *code, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(code->missing, sizeof(code->missing), format, args);
	va_end(args);
}

bool tally_function_code_address(struct tally_names *names, const struct tally_place *place, uint64_t *address)
{
	struct known known;
	return !know(names, place, false, &known) &&
	       tally_name_table_address(names, known.table, known.entry, place, address);
}

bool tally_function_code_bounds(struct tally_names *names, const struct tally_place *place, uint64_t *start, uint64_t *end)
{
	struct known known;
	uint64_t address;
	if (know(names, place, false, &known) < 0 || !known.entry || known.table->is_kernel ||
	    !tally_name_table_address(names, known.table, known.entry, place, &address))
		return false;
	struct tally_unwind_table *rules = tally_objects_unwind(known.entry);
	return rules && tally_unwind_table_function(rules, address, start, end);
}

const char *tally_function_code_symbol(struct tally_names *names, const struct tally_place *place, uint64_t address,
				       uint64_t *offset)
{
	struct known known;
	if (know(names, place, false, &known) < 0 || !known.table->symbols)
		return NULL;
	const struct tally_symbol *symbol = tally_symbols_find(known.table->symbols, address);
	*offset = symbol ? address - symbol->start : 0;
	return symbol ? symbol->name : NULL;
}

int tally_function_code_lines(struct tally_names *names, const struct tally_place *place, const uint64_t *addresses,
			      size_t count, struct tally_line_answer *answers, struct tally_line_frame *scratch)
{
	struct known known;
	int result = know(names, place, true, &known);
	memset(answers, 0, count * sizeof(*answers));
	if (result < 0)
		return result == -ENOMEM ? result : 0;
	for (size_t i = 0; known.table->dump && i < count; i++) {
		const struct tally_jit_line *line = tally_jit_dump_line(known.table->dump, addresses[i]);
		if (!line)
			continue;
		scratch[i] = (struct tally_line_frame){ .file = line->file, .line = line->line, .column = line->column };
		answers[i] = (struct tally_line_answer){ &scratch[i], 1 };
	}
	if (!known.table->lines)
		return 0;
	uint64_t moved = known.table->is_kernel ? (uint64_t)(names->kernel_shift - names->vmlinux_shift) : 0;
	uint64_t *there = malloc((count + 1) * sizeof(*there));
	for (size_t i = 0; there && i < count; i++)
		there[i] = addresses[i] + moved;
	result = there ? tally_lines_find(known.table->lines, there, count, answers) : -ENOMEM;
	free(there);
	return result;
}

/* ---- whose code it is ---------------------------------------------------------------------------------- */

static void take_object(struct tally_function_code *code, const struct tally_object *object)
{
	const uint16_t one = 1;
	bool is_little_here = *(const uint8_t *)&one;
	struct stat status;
	code->machine = tally_object_machine(object);
	code->is_64bit = tally_object_is_64bit(object);
	code->is_big_endian = is_little_here == tally_object_is_swapped(object);
	if (!stat(tally_object_path(object), &status))
		code->file_time_s = status.st_mtim.tv_sec;
}

static void take_bytes(struct tally_function_code *code, const struct tally_object *object, uint64_t address, uint64_t size)
{
	size_t available = 0;
	code->bytes = tally_object_bytes_at(object, address, &available);
	code->size = !code->bytes ? 0 : available < size ? available : (size_t)size;
	if (!code->size)
		because(code, "%s has no bytes there", tally_object_path(object));
}

static void find_in_file(struct tally_names *names, const struct known *known, struct tally_function_code *code)
{
	const char *path = tally_tasks_path(names->tasks, known->file);
	if (known->entry) {
		take_object(code, known->entry->object);
		take_bytes(code, known->entry->object, code->start, code->end - code->start);
		return;
	}
	const struct tally_object_entry *entry = tally_objects_get(&names->objects, names->tasks, known->file);
	if (entry && entry->state == TALLY_OBJECT_CHANGED) {
		because(code, "%s is another build than the recorded one", path);
		snprintf(code->hint, sizeof(code->hint), "the recorded one is found by its build-id in ~/.debug, or below --symfs DIR");
	} else if (names->tasks->files.items[known->file].pid) {
		because(code, "a JIT made it, and left no dump of its code");
		snprintf(code->hint, sizeof(code->hint), "node --perf-prof and the JVM's jitdump agent leave one (docs: tally record)");
	} else {
		because(code, "%s is not on this machine", path);
		snprintf(code->hint, sizeof(code->hint), "--symfs DIR looks below DIR; ~/.debug is looked into by build-id");
	}
}

static void find_in_dump(struct tally_names *names, const struct known *known, uint64_t address,
			 struct tally_function_code *code)
{
	const struct tally_jit_dump *dump = known->table->dump;
	const struct tally_jit_function *function = tally_jits_function(names->tasks, known->file, address);
	if (!function || !function->bytes) {
		because(code, "the JIT's dump, %s, is not here any more", tally_tasks_path(names->tasks, known->file));
		return;
	}
	code->start = function->base;
	code->end = function->base + function->size;
	code->bytes = function->bytes;
	code->size = (size_t)function->size;
	code->machine = dump->machine;
	code->is_64bit = dump->machine != EM_386 && dump->machine != EM_ARM;
	for (size_t i = 0; i < dump->places.count; i++)
		if (&dump->functions.items[dump->places.items[i].function] == function)
			code->shown = dump->places.items[i].address - function->base;
}

/* Where the running kernel has a symbol; 0: nowhere, or we may not know. */
static uint64_t running_address(const char *symbol)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	char line[512], name[256];
	unsigned long long at, found = 0;
	while (file && !found && fgets(line, sizeof(line), file))
		if (sscanf(line, "%llx %*c %255s", &at, name) == 2 && !strcmp(name, symbol))
			found = at;
	if (file)
		fclose(file);
	return found;
}

/* By how much the running kernel's addresses are above those of its symbols here; false: it is another kernel. */
static bool running_kernel(const struct tally_names *names, uint64_t *above)
{
	struct tally_build_id running;
	const char *symbol;
	const struct tally_mapping *reference = tally_kernel_reference(names, &symbol);
	if (names->foreign_machine || (names->kernel_build_id.size && (!tally_kernel_running_build_id(&running) ||
				       !tally_build_id_equal(&running, &names->kernel_build_id))))
		return false;
	*above = (uint64_t)names->kernel_shift;
	if (reference) /* it may have been started again, elsewhere */
		*above += running_address(symbol) - reference->file_offset;
	return true;
}

static int find_in_kernel(struct tally_names *names, struct tally_function_code *code)
{
	uint64_t above;
	struct tally_object_entry *entry = tally_kernel_object(names);
	size_t size = (size_t)(code->end - code->start);
	int why = -ENOENT;
	code->shown = (uint64_t)names->kernel_shift;
#if defined(__x86_64__)
	code->machine = EM_X86_64;
#elif defined(__aarch64__)
	code->machine = EM_AARCH64;
#else
	code->machine = EM_NONE;
#endif
	code->is_64bit = true;
	if (running_kernel(names, &above)) {
		code->kept = malloc(size + 1);
		if (!code->kept)
			return -ENOMEM;
		why = tally_kcore_read("/proc/kcore", code->start + above, code->kept, size);
		code->bytes = code->kept;
		code->size = why < 0 ? 0 : size;
	}
	if (!code->size && entry) {
		take_object(code, entry->object);
		take_bytes(code, entry->object, code->start + (uint64_t)(names->kernel_shift - names->vmlinux_shift), size);
	}
	if (!code->size) {
		because(code, "the kernel's code is not to be had: /proc/kcore %s, and there is no vmlinux of it",
			why == -ENOENT ? names->foreign_machine ? "is another kernel's" : "is not there" :
			why == -EACCES || why == -EPERM ? "is root's alone" : "doesn't have it");
		snprintf(code->hint, sizeof(code->hint), "on Debian: apt-get install linux-image-RELEASE-dbg; or --vmlinux FILE");
	}
	return 0;
}

int tally_function_code_find(struct tally_names *names, const struct tally_place *place, uint64_t start, uint64_t end,
			     struct tally_function_code *out)
{
	struct known known;
	uint64_t address = 0;
	*out = (struct tally_function_code){ 0 };
	int result = know(names, place, true, &known);
	if (result == -ENOMEM)
		return result;
	if (result < 0) {
		because(out, place->file == TALLY_FILE_NONE ? "no file is known to have been mapped there" :
			"the kernel made it while it ran (BPF), and keeps no file of it");
		return 0;
	}
	bool is_somewhere = tally_name_table_address(names, known.table, known.entry, place, &address);
	const struct tally_symbol *symbol =
		is_somewhere && known.table->symbols ? tally_symbols_find(known.table->symbols, address) : NULL;
	if (symbol && !end) {
		start = symbol->start;
		end = symbol->end;
	}
	out->start = start;
	out->end = end - start > CODE_BYTES_MAX ? start + CODE_BYTES_MAX : end;
	if (known.table->dump)
		find_in_dump(names, &known, address, out);
	else if (known.table->is_kernel && symbol)
		return find_in_kernel(names, out);
	else if (out->end || !known.entry)
		find_in_file(names, &known, out);
	else
		because(out, "neither a symbol nor unwind rules tell where it begins and ends");
	return 0;
}

void tally_function_code_release(struct tally_function_code *code)
{
	free(code->kept);
	code->kept = NULL;
	code->bytes = NULL;
	code->size = 0;
}
