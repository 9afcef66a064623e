/* Finds a function's symbol and bounds, then its bytes: in the kernel's memory or files, in a JIT's
 * dump or in an object, and last in the recording.  If no source has them, `missing` and `hint`
 * tell the user why.  The changes that the kernel made are written over its code. */
#include "naming/naming.h"

#include "abi/abi.h"
#include "base/error.h"
#include "base/extremes.h"
#include "base/text.h"
#include "naming/naming_internal.h"
#include "naming/packed.h"
#include "object/object.h"
#include "symbol/jit_dump.h"
#include "symbol/lines.h"
#include "task/jit.h"

#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Sets `missing`, why there is no code. */
__attribute__((format(printf, 2, 3))) static void code_because(struct tally_function_code *code,
							       const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(code->missing, sizeof(code->missing), format, args);
	va_end(args);
}

/* Sets `code` to at most `size` bytes at an address of the object, with the object's machine. */
static void code_of_object(struct tally_function_code *code, const struct tally_object *object,
			   uint64_t address, uint64_t size)
{
	const uint16_t one = 1;
	bool is_little_here = *(const uint8_t *)&one;
	size_t available = 0;
	code->machine = tally_object_machine(object);
	code->is_64bit = tally_object_is_64bit(object);
	code->is_big_endian = is_little_here == tally_object_is_swapped(object);
	code->object = object;
	code->bytes = tally_object_bytes_at(object, address, &available);
	code->size = (size_t)tally_min_u64(available, size);
	if (!code->bytes)
		code->size = 0;
	if (!code->size)
		code_because(code, "%s has no bytes there", tally_object_path(object));
}

/* The running kernel's memory is the first choice: it holds the code that ran, with its
 * alternatives and tracers patched in.  But only root can read it, many machines don't have it
 * (CONFIG_PROC_KCORE), and the running kernel has to be the recorded one.  The second choice is a
 * file as the compiler left it: vmlinux, or a module's own file. */

/* Sets `above` to the distance of the running kernel's addresses above those of its symbols here.
 * Returns false if another kernel runs. */
static bool running_kernel(const struct tally_names *names, uint64_t *above)
{
	struct tally_build_id running;
	const char *symbol;
	const struct tally_mapping *reference = tally_kernel_reference(names, &symbol);
	if (names->kernel.is_foreign || (names->kernel.build_id.size &&
				       (!tally_kernel_running_build_id(&running) ||
					!tally_build_id_equal(&running, &names->kernel.build_id))))
		return false;
	*above = (uint64_t)names->kernel.shift;
	if (reference) /* after a reboot it may be at another address */
		*above += tally_kernel_running_address(symbol) - reference->file_offset;
	return true;
}

static bool is_loaded(const struct tally_name_table *table, const char *module, uint64_t address)
{
	if (!table->symbols)
		return false;
	const struct tally_symbol *there = tally_symbols_find(table->symbols, address);
	if (!there)
		return false;
	const char *name = tally_symbol_module(table->symbols, there);
	return name && !strcmp(name, module);
}

/* With `module`, reads the code of that module.  It is at its recorded address only if the kernel
 * was not restarted and kallsyms has the module there. */
static int read_memory(const struct tally_names *names, const struct tally_name_table *table,
		       const char *module, struct tally_function_code *code)
{
	size_t size = (size_t)(code->end - code->start);
	uint64_t above;
	if (!running_kernel(names, &above))
		return -ESTALE;
	if (module && (above || names->sources.kallsyms || !is_loaded(table, module, code->start)))
		return -ESTALE;
	code->kept = malloc(size + 1);
	if (!code->kept)
		return -ENOMEM;
	int why = tally_kcore_read("/proc/kcore", code->start + above, code->kept, size);
	code->bytes = code->kept;
	code->size = size;
	if (why < 0)
		code->size = 0;
	return why;
}

static const char *kcore_lack(int why)
{
	switch (why) {
	case -ESTALE:
		return "/proc/kcore is of another kernel";
	case -ENOENT:
		return "this kernel has no /proc/kcore";
	case -EACCES:
	case -EPERM:
		return "only root can read /proc/kcore";
	default:
		return "/proc/kcore doesn't have it";
	}
}

static void explain_missing(const struct tally_names *names, const char *module, int why,
			    struct tally_function_code *code)
{
	const char *kcore = kcore_lack(why);
	const char *release = tally_text_or(names->kernel.release, "RELEASE");
	if (module) {
		code_because(
			code,
			"the module's code is unavailable: %s, and the recorded %s.ko is not here",
			kcore, module);
		snprintf(code->hint, sizeof(code->hint),
			 "it is searched by build-id and in /lib/modules/%.64s; --symfs DIR "
			 "searches below DIR",
			 release);
		return;
	}
	code_because(code, "the kernel's code is unavailable: %s, and there is no vmlinux", kcore);
	snprintf(code->hint, sizeof(code->hint),
		 "name it with --vmlinux FILE; Debian's package linux-image-%.64s-dbg and "
		 "Fedora's kernel-debuginfo have it",
		 release);
}

/* Sets the machine that the recorded kernel's code is for. */
static void kernel_code_machine(const struct tally_names *names, struct tally_function_code *code)
{
	static const unsigned MACHINES[] = {
		[TALLY_ARCH_X86_64] = EM_X86_64,
		[TALLY_ARCH_I386] = EM_386,
		[TALLY_ARCH_ARM64] = EM_AARCH64,
		[TALLY_ARCH_ARM] = EM_ARM,
	};
	enum tally_arch arch = names->objects.arch;
	code->machine = EM_NONE;
	if (arch < sizeof(MACHINES) / sizeof(MACHINES[0]))
		code->machine = MACHINES[arch];
	code->is_64bit = arch != TALLY_ARCH_I386 && arch != TALLY_ARCH_ARM;
}

/* Finds the code of a symbol of the kernel's table, or of a module's own.  `symbol` NULL: there is
 * no symbol, and so no code.  Returns 0 or -ENOMEM. */
static int kernel_code_find(struct tally_names *names, struct tally_name_table *table,
			    const struct tally_symbol *symbol, struct tally_function_code *code)
{
	code->shown = (uint64_t)names->kernel.shift;
	kernel_code_machine(names, code);
	if (!symbol) {
		code_because(code, "no kernel symbol gives its bounds");
		snprintf(
			code->hint, sizeof(code->hint),
			"--vmlinux FILE or --kallsyms FILE of the recorded kernel name its "
			"functions");
		return 0;
	}
	const char *module = tally_kernel_module_name(table->modules, symbol);
	if (!module && table->symbols)
		module = tally_symbol_module(table->symbols, symbol);
	int why = read_memory(names, table, module, code);
	if (code->size || why == -ENOMEM)
		return tally_only_enomem(why);
	if (module) {
		const struct tally_object *object = tally_kernel_module_object(names, table,
									       symbol);
		if (object)
			code_of_object(code, object, code->start, code->end - code->start);
	} else {
		const struct tally_object_entry *entry = tally_kernel_object(names);
		uint64_t to_file = (uint64_t)(names->kernel.shift - names->kernel.vmlinux_shift);
		if (entry)
			code_of_object(code, entry->object, code->start + to_file,
				       code->end - code->start);
	}
	if (!code->size && !code->missing[0])
		explain_missing(names, module, why, code);
	return 0;
}

enum { CODE_BYTES_MAX = 4 << 20 /* of a function; the rest of a longer one is not shown */ };

/* A place's file, its table and object; read on first use. */
struct known {
	uint32_t file;
	struct tally_name_table *table;
	struct tally_object_entry *entry;
};

static int find_known(struct tally_names *names, const struct tally_place *place, bool lines,
		struct known *out)
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

bool tally_function_code_address(struct tally_names *names, const struct tally_function_code *code,
				 const struct tally_place *place, uint64_t *address)
{
	struct known known;
	const struct tally_packed_place *packed = NULL;
	if (code->packed)
		packed = tally_names_recorded_place(names, place);
	if (packed) {
		*address = code->start + packed->offset;
		return true;
	}
	return !find_known(names, place, false, &known) &&
	       tally_name_table_address(names, known.table, known.entry, place, address);
}

/* Sets *end (may be NULL) to the end of the symbol's function. */
static const struct tally_symbol *symbol_at(struct tally_names *names, const struct known *known,
					    uint64_t address, uint64_t *end)
{
	const struct tally_symbol *symbol = tally_name_table_symbol(known->table, known->entry,
								    address, end);
	if (!known->table->is_kernel)
		return symbol;
	const struct tally_place place = { .address = address + (uint64_t)names->kernel.shift };
	symbol = tally_kernel_module_symbol(names, known->table, &place, symbol);
	if (symbol && end)
		*end = symbol->end;
	return symbol;
}

/* For JIT code: names whatever its process had mapped at the address at the end. */
static const char *symbol_of_process(struct tally_names *names, uint32_t pid, uint64_t address,
				     uint64_t *offset)
{
	struct tally_place place = tally_place_of(names->tasks, pid, false, address);
	if (place.file == TALLY_FILE_NONE)
		return NULL;
	uint32_t function = tally_names_function(names, &place, offset);
	if (function == UINT32_MAX ||
	    names->functions.items[function].name == TALLY_STRING_NONE)
		return NULL;
	return tally_names_plain_text(names, function);
}

const char *tally_function_code_symbol(struct tally_names *names,
				       const struct tally_function_code *code,
				       const struct tally_place *place, uint64_t address,
				       uint64_t *offset)
{
	struct known known;
	const struct tally_jit *jit = tally_jits_of_file(names->tasks, place->file);
	*offset = 0;
	if (code->packed) {
		const struct tally_packed_code_target *target =
			tally_packed_code_target(names->carried.codes, code->packed, address);
		if (!target)
			return NULL;
		*offset = target->offset;
		return target->name;
	}
	if (jit)
		return symbol_of_process(names, jit->pid, address + code->shown, offset);
	if (find_known(names, place, false, &known) < 0)
		return NULL;
	const struct tally_symbol *symbol = symbol_at(names, &known, address, NULL);
	if (!symbol)
		return NULL;
	*offset = address - symbol->start;
	return symbol->name;
}

static int module_lines(struct tally_names *names, struct tally_name_table *table,
			const struct tally_symbol *symbol, const uint64_t *addresses, size_t count,
			struct tally_line_answer *answers)
{
	const struct tally_symbol **symbols = malloc((count + 1) * sizeof(*symbols));
	if (!symbols)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		symbols[i] = symbol;
	int result = tally_kernel_module_lines(names, table, addresses, symbols, count, answers);
	free(symbols);
	return result;
}

static void packed_lines(const struct tally_names *names, const struct tally_function_code *code,
			 const uint64_t *addresses, size_t count, struct tally_line_answer *answers)
{
	const struct tally_packed_codes *codes = names->carried.codes;
	for (size_t i = 0; i < count; i++) {
		const struct tally_packed_code_row *row = tally_packed_code_row(
			codes, code->packed, addresses[i] - code->start);
		if (row)
			answers[i] = (struct tally_line_answer){ &codes->frames.items[row->first],
								 row->count };
	}
}

int tally_function_code_lines(struct tally_names *names, const struct tally_function_code *code,
			      const struct tally_place *place, const uint64_t *addresses,
			      size_t count, struct tally_line_answer *answers,
			      struct tally_line_frame *scratch)
{
	struct known known;
	memset(answers, 0, count * sizeof(*answers));
	if (code->packed) {
		packed_lines(names, code, addresses, count, answers);
		return 0;
	}
	int result = find_known(names, place, true, &known);
	if (result < 0)
		return tally_only_enomem(result);
	for (size_t i = 0; known.table->dump && i < count; i++) {
		const struct tally_jit_line *line = tally_jit_dump_line(known.table->dump,
									addresses[i]);
		if (!line)
			continue;
		scratch[i] = (struct tally_line_frame){ .file = line->file,
							.line = line->line,
							.column = line->column };
		answers[i] = (struct tally_line_answer){ &scratch[i], 1 };
	}
	if (known.table->is_kernel && count) {
		const struct tally_symbol *symbol = symbol_at(names, &known, addresses[0],
								 NULL);
		if (symbol && tally_kernel_module_object(names, known.table, symbol))
			return module_lines(names, known.table, symbol, addresses, count, answers);
	}
	if (!known.table->lines)
		return 0;
	uint64_t moved = 0;
	if (known.table->is_kernel)
		moved = (uint64_t)(names->kernel.shift - names->kernel.vmlinux_shift);
	uint64_t *there = malloc((count + 1) * sizeof(*there));
	if (!there)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		there[i] = addresses[i] + moved;
	result = tally_lines_find(known.table->lines, there, count, answers);
	free(there);
	return result;
}

/* ---- whose code it is ---------------------------------------------------- */

static void find_in_file(struct tally_names *names, const struct known *known,
			 struct tally_function_code *code)
{
	const char *path = tally_tasks_path(names->tasks, known->file);
	if (known->entry) {
		code_of_object(code, known->entry->object, code->start, code->end - code->start);
		return;
	}
	const struct tally_object_entry *entry = tally_objects_get(&names->objects, names->tasks,
								   known->file);
	if (entry && entry->state == TALLY_OBJECT_CHANGED) {
		code_because(code, "%s is another build than the recorded one", path);
		code->no_lines = "the program here is another build";
		code->is_rebuilt = true;
		snprintf(
			code->hint, sizeof(code->hint),
			"put the recorded one into ~/.debug by build-id, or below --symfs DIR");
	} else if (names->tasks->files.items[known->file].pid) {
		code_because(code, "a JIT made it, and left no dump of its code");
		code->no_lines = "a JIT made it";
		snprintf(
			code->hint, sizeof(code->hint),
			"node --perf-prof and the JVM's jitdump agent write one (see "
			"tally-record(1))");
	} else {
		code_because(code, "%s is not on this machine", path);
		code->no_lines = "the program is not here";
		snprintf(code->hint, sizeof(code->hint),
			 "--symfs DIR searches below DIR; ~/.debug is searched by build-id");
	}
}

static void find_in_dump(struct tally_names *names, const struct known *known, uint64_t address,
			 struct tally_function_code *code)
{
	const struct tally_jit_dump *dump = known->table->dump;
	const struct tally_jit_function *function = tally_jits_function(names->tasks, known->file,
									address);
	code->no_lines = "a JIT made it";
	if (!function || !function->bytes) {
		code_because(code, "the JIT's dump, %s, is gone",
			     tally_tasks_path(names->tasks, known->file));
		return;
	}
	code->start = function->base;
	code->size = (size_t)tally_min_u64(function->size, CODE_BYTES_MAX);
	code->end = function->base + code->size;
	code->bytes = function->bytes;
	code->machine = dump->machine;
	code->is_64bit = dump->machine != EM_386 && dump->machine != EM_ARM;
	for (size_t i = 0; i < dump->places.count; i++)
		if (&dump->functions.items[dump->places.items[i].function] == function)
			code->shown = dump->places.items[i].address - function->base;
}

/* Code that the kernel made itself (BPF): the recording may have all of its bytes. */
static int find_made(struct tally_names *names, const struct tally_place *place,
		     struct tally_function_code *out)
{
	bool is_told = place->file < names->tasks->files.count &&
		       names->tasks->files.items[place->file].is_symbol;
	const struct tally_mapped_file *file = NULL;
	size_t size = 0;
	if (is_told)
		file = &names->tasks->files.items[place->file];
	if (file && file->symbol_size <= CODE_BYTES_MAX)
		size = file->symbol_size;
	if (place->file == TALLY_FILE_NONE) {
		out->no_lines = "it is in no file";
		code_because(out, "no file was mapped there");
	} else {
		out->no_lines = "the kernel made it";
		code_because(out, "the kernel generated it (BPF) and has no file of it");
	}
	const struct tally_text_pokes *pokes = names->kernel.text_pokes;
	if (!size || !pokes ||
	    tally_text_pokes_apply(pokes, file->symbol_start, NULL, size) != size)
		return 0;
	out->kept = malloc(size);
	if (!out->kept)
		return -ENOMEM;
	tally_text_pokes_apply(pokes, file->symbol_start, out->kept, size);
	out->bytes = out->kept;
	out->size = size;
	out->start = file->symbol_start;
	out->end = file->symbol_start + size;
	kernel_code_machine(names, out);
	return 0;
}

static int find_unpoked(struct tally_names *names, const struct tally_place *place,
			struct tally_function_code *out)
{
	struct known known;
	uint64_t address = 0, start = 0, end = 0;
	*out = (struct tally_function_code){ 0 };
	int result = find_known(names, place, true, &known);
	if (result == -ENOMEM)
		return result;
	if (result < 0)
		return find_made(names, place, out);
	bool is_somewhere = tally_name_table_address(names, known.table, known.entry, place,
						     &address);
	const struct tally_symbol *symbol = NULL;
	if (is_somewhere)
		symbol = symbol_at(names, &known, address, &end);
	if (symbol) {
		start = symbol->start;
	} else if (!is_somewhere ||
		   !tally_name_table_extent(known.table, known.entry, address, &start, &end)) {
		start = end = 0;
	}
	out->start = start;
	out->end = start + tally_min_u64(end - start, CODE_BYTES_MAX);
	if (known.table->dump)
		find_in_dump(names, &known, address, out);
	else if (known.table->is_kernel)
		return kernel_code_find(names, known.table, symbol, out);
	else if (out->end || !known.entry)
		find_in_file(names, &known, out);
	else
		code_because(out, "neither a symbol nor unwind rules give its bounds");
	return 0;
}

static void find_packed(struct tally_names *names, const struct tally_place *place,
			struct tally_function_code *out)
{
	const struct tally_packed_code *packed = tally_names_recorded_code(names, place);
	if (!packed)
		return;
	bool is_rebuilt = out->is_rebuilt;
	size_t size = (size_t)tally_min_u64(packed->size, CODE_BYTES_MAX);
	const char *no_lines = NULL;
	if (tally_jits_of_file(names->tasks, place->file))
		no_lines = "a JIT made it";
	tally_function_code_release(out);
	*out = (struct tally_function_code){
		.is_rebuilt = is_rebuilt,
		.no_lines = no_lines,
		.start = packed->start,
		.end = packed->start + size,
		.shown = packed->shown,
		.bytes = packed->bytes,
		.size = size,
		.packed = packed,
		.machine = packed->machine,
		.is_64bit = packed->is_64bit,
		.is_big_endian = packed->is_big_endian,
	};
}

/* Writes what the kernel changed into its code, so that it is as it was at the end. */
static int write_pokes(const struct tally_names *names, struct tally_function_code *code)
{
	uint64_t address = code->start + code->shown;
	code->poked = 0;
	if (names->kernel.text_pokes)
		code->poked = tally_text_pokes_apply(names->kernel.text_pokes, address, NULL,
						     code->size);
	if (!code->poked)
		return 0;
	if (code->bytes != code->kept) {
		free(code->kept);
		code->kept = malloc(code->size);
		if (!code->kept)
			return -ENOMEM;
		memcpy(code->kept, code->bytes, code->size);
		code->bytes = code->kept;
	}
	tally_text_pokes_apply(names->kernel.text_pokes, address, code->kept, code->size);
	return 0;
}

int tally_function_code_find_in_files(struct tally_names *names, const struct tally_place *place,
				      struct tally_function_code *out)
{
	int result = find_unpoked(names, place, out);
	if (!result && out->size && tally_names_file(names, place) == TALLY_FILE_KERNEL)
		result = write_pokes(names, out);
	return result;
}

int tally_function_code_find(struct tally_names *names, const struct tally_place *place,
			     struct tally_function_code *out)
{
	struct stat status;
	int result = tally_function_code_find_in_files(names, place, out);
	if (!result && out->object && !stat(tally_object_path(out->object), &status))
		out->file_time_s = status.st_mtim.tv_sec;
	bool is_missing = !result && !out->size;
	if (is_missing)
		find_packed(names, place, out);
	if (is_missing && out->size && tally_names_file(names, place) == TALLY_FILE_KERNEL)
		result = write_pokes(names, out);
	return result;
}

void tally_function_code_release(struct tally_function_code *code)
{
	free(code->kept);
	code->kept = NULL;
	code->bytes = NULL;
	code->size = 0;
}
