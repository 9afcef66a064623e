/* The kernel's symbols.
 *
 * Printing /proc/kallsyms takes the kernel 40 ms, most of what a short report takes in all.  So what it says of the kernel
 * itself is kept by build-id, relative to the symbol that recordings tell the address of ("[kernel.kallsyms]_text"): it
 * serves whatever kernel runs by now, wherever it lies, and whoever may read its addresses.  Modules come and go and move,
 * so addresses outside of the kernel still ask kallsyms. */
#include "base/buffer.h"
#include "profile/name_tables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { KALLSYMS_BYTES_MAX = 256 << 20, NOTES_BYTES_MAX = 1 << 16, KALLSYMS_VERSION = 1 };

static bool running_build_id(struct tally_build_id *id)
{
	struct tally_buffer notes = { 0 };
	bool found = !tally_buffer_read_file(&notes, AT_FDCWD, "/sys/kernel/notes", NOTES_BYTES_MAX) &&
		     tally_build_id_from_notes(notes.bytes, notes.length, id);
	tally_buffer_release(&notes);
	return found;
}

static bool running_kernel_is(const struct tally_build_id *recorded)
{
	struct tally_build_id running;
	return !recorded->size || !running_build_id(&running) || tally_build_id_equal(recorded, &running);
}

/* The address of a symbol in kallsyms' text.  Not from the table of symbols, which keeps one for each address: the
 * first byte of the kernel has several. */
static bool find_in_kallsyms(const struct tally_buffer *text, const char *name, uint64_t *address)
{
	size_t length = strlen(name);
	for (const char *line = tally_buffer_string(text), *end; *line; line = end + (*end == '\n')) {
		end = line + strcspn(line, "\n");
		char *type;
		*address = strtoull(line, &type, 16);
		if ((size_t)(end - type) == length + 3 && !memcmp(type + 3, name, length))
			return true;
	}
	return false;
}

/* perf's MMAP of the kernel has the address of the symbol "_text" as its file offset, and the symbol in its name. */
static const struct tally_mapping *find_reference(const struct tally_names *names, const char **symbol)
{
	static const char prefix[] = "[kernel.kallsyms]";
	const struct tally_process *kernel = &names->tasks->kernel;
	for (size_t i = 0; i < kernel->count; i++) {
		const char *path = tally_tasks_path(names->tasks, kernel->mappings[i].file);
		*symbol = path + sizeof(prefix) - 1;
		if (!strncmp(path, prefix, sizeof(prefix) - 1) && **symbol)
			return &kernel->mappings[i];
	}
	return NULL;
}

/* False when nothing is kept of such a kernel. */
static bool make_key(const struct tally_names *names, const char *reference, struct tally_cache_key *key)
{
	*key = (struct tally_cache_key){ .id = names->kernel_build_id, .kind = "kallsyms", .version = KALLSYMS_VERSION,
					 .part = !strcmp(reference, "_stext") };
	return names->cache && (!strcmp(reference, "_text") || !strcmp(reference, "_stext")) &&
	       (key->id.size || (!names->foreign_machine && running_build_id(&key->id)));
}

static bool read_kept(struct tally_names *names, struct tally_name_table *table)
{
	const char *symbol;
	const struct tally_mapping *reference = find_reference(names, &symbol);
	struct tally_cache_key key;
	if (!reference || !make_key(names, symbol, &key) || !tally_cache_get(names->cache, &key, &table->blob))
		return false;
	if (!tally_symbols_unpack(table->blob.bytes, table->blob.size, reference->file_offset, &table->symbols))
		return true;
	tally_cache_blob_release(&table->blob);
	return false;
}

/* Notes by how much KASLR moved the kernel since the recording, and keeps what was read.  Modules move by themselves:
 * theirs stay unnamed then. */
static void see_reference(struct tally_names *names, const struct tally_name_table *table,
			  const struct tally_buffer *kallsyms)
{
	const char *symbol;
	const struct tally_mapping *reference = find_reference(names, &symbol);
	struct tally_cache_key key;
	struct tally_buffer packed = { .maximum = 1 << 30 };
	uint64_t now;
	if (!reference || !find_in_kallsyms(kallsyms, symbol, &now))
		return;
	names->kernel_shift = (int64_t)(reference->file_offset - now);
	if (!table->kept && make_key(names, symbol, &key) && !tally_symbols_pack(table->symbols, now, &packed))
		tally_cache_put(names->cache, &key, "[kernel.kallsyms]", packed.bytes, packed.length);
	tally_buffer_release(&packed);
}

static void read_kallsyms(struct tally_names *names, struct tally_name_table *table)
{
	struct tally_buffer text = { 0 };
	struct tally_symbols *symbols;
	if (names->foreign_machine || !running_kernel_is(&names->kernel_build_id)) {
		names->gaps.kernel_differs = !table->symbols;
	} else if (tally_buffer_read_file(&text, AT_FDCWD, "/proc/kallsyms", KALLSYMS_BYTES_MAX) < 0 ||
		   tally_symbols_from_kallsyms(text.bytes ? text.bytes : "", text.length, &symbols, NULL) < 0) {
		names->gaps.kernel_hidden = !table->symbols;
	} else {
		table->kept = table->symbols;
		table->symbols = symbols;
		see_reference(names, table, &text);
	}
	tally_buffer_release(&text);
}

void tally_kernel_names_read(struct tally_names *names, struct tally_name_table *table)
{
	if (read_kept(names, table))
		table->is_partial = true;
	else
		read_kallsyms(names, table);
}

void tally_kernel_names_reach(struct tally_names *names, struct tally_name_table *table, uint64_t address)
{
	size_t count;
	const struct tally_symbol *list = table->is_partial ? tally_symbols_list(table->symbols, &count) : NULL;
	if (!list || (count && address >= list[0].start && address < list[count - 1].end))
		return;
	table->is_partial = false;
	read_kallsyms(names, table);
}
