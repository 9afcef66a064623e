/* The kernel's symbols.
 *
 * The kernel needs 40 ms to print /proc/kallsyms, most of the time of a short report.  So the
 * kernel's own symbols are cached by build-id, relative to the symbol whose address recordings have
 * ("[kernel.kallsyms]_text").  The cache then works whichever kernel runs, wherever KASLR puts it,
 * and for users who may not read its addresses.  Modules come, go and move, so addresses outside of
 * the kernel still need kallsyms.
 *
 * If another kernel runs, a copy of kallsyms is used (one that the user gives, or one in perf's
 * cache); without a copy, vmlinux.
 */
#include "base/buffer.h"
#include "naming/name_tables.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { KALLSYMS_BYTES_MAX = 256 << 20, KALLSYMS_VERSION = 1 };

static bool running_kernel_is(const struct tally_build_id *recorded)
{
	struct tally_build_id running;
	return !recorded->size || !tally_kernel_running_build_id(&running) ||
	       tally_build_id_equal(recorded, &running);
}

/* Finds the address of a symbol in kallsyms' text.  The table of symbols won't do: it keeps one
 * symbol per address, and the first byte of the kernel has several. */
static bool find_in_kallsyms(const struct tally_buffer *text, const char *name, uint64_t *address)
{
	size_t length = strlen(name);
	for (const char *line = tally_buffer_string(text), *end; *line;
	     line = end + (*end == '\n')) {
		end = line + strcspn(line, "\n");
		char *type;
		*address = strtoull(line, &type, 16);
		if ((size_t)(end - type) == length + 3 && !memcmp(type + 3, name, length))
			return true;
	}
	return false;
}

/* Returns false if the cache can't hold such a kernel. */
static bool make_key(const struct tally_names *names, const char *reference,
		     struct tally_cache_key *key)
{
	*key = (struct tally_cache_key){ .id = names->kernel_build_id,
					 .kind = "kallsyms",
					 .version = KALLSYMS_VERSION,
					 .part = !strcmp(reference, "_stext") };
	return names->cache && (!strcmp(reference, "_text") || !strcmp(reference, "_stext")) &&
	       (key->id.size ||
		(!names->foreign_machine && tally_kernel_running_build_id(&key->id)));
}

static bool read_kept(struct tally_names *names, struct tally_name_table *table)
{
	const char *symbol;
	const struct tally_mapping *reference = tally_kernel_reference(names, &symbol);
	struct tally_cache_key key;
	if (!reference || !make_key(names, symbol, &key) ||
	    !tally_cache_get(names->cache, &key, &table->blob))
		return false;
	if (!tally_symbols_unpack(table->blob.bytes, table->blob.size, reference->file_offset,
				  &table->symbols))
		return true;
	tally_cache_blob_release(&table->blob);
	return false;
}

/* Notes how far KASLR moved the kernel since the recording, and caches what was read.  Modules move
 * independently, so theirs stay unnamed in that case. */
static void see_reference(struct tally_names *names, const struct tally_name_table *table,
			  const struct tally_buffer *kallsyms)
{
	const char *symbol;
	const struct tally_mapping *reference = tally_kernel_reference(names, &symbol);
	struct tally_cache_key key;
	struct tally_buffer packed = { .maximum = 1 << 30 };
	uint64_t now;
	if (!reference || !find_in_kallsyms(kallsyms, symbol, &now))
		return;
	names->kernel_shift = (int64_t)(reference->file_offset - now);
	if (!table->kept && !names->sources.kallsyms && make_key(names, symbol, &key) &&
	    !tally_symbols_pack(table->symbols, now, &packed))
		tally_cache_put(names->cache, &key, "[kernel.kallsyms]", packed.bytes,
				packed.length);
	tally_buffer_release(&packed);
}

/* Returns the file with the recorded kernel's symbols: a copy, or the running kernel's kallsyms.
 * NULL: another kernel runs, and there is no copy. */
static const char *kallsyms_path(const struct tally_names *names, char *path)
{
	if (names->sources.kallsyms)
		return names->sources.kallsyms;
	if (!names->foreign_machine && running_kernel_is(&names->kernel_build_id))
		return "/proc/kallsyms";
	return tally_search_kept_path(&names->objects.search, &names->kernel_build_id, "kallsyms",
				      path)
		       ? path
		       : NULL;
}

static int read_kallsyms(struct tally_names *names, struct tally_name_table *table)
{
	struct tally_buffer text = { 0 };
	struct tally_symbols *symbols;
	char kept[PATH_MAX];
	const char *path = kallsyms_path(names, kept);
	int result = path ? tally_buffer_read_file(&text, AT_FDCWD, path, KALLSYMS_BYTES_MAX) : 0;
	if (path && !result)
		result = tally_symbols_from_kallsyms(text.bytes ? text.bytes : "", text.length,
						     &symbols, NULL);
	if (!path) {
		table->differs = !table->symbols;
	} else if (result < 0) {
		table->hidden = !table->symbols;
	} else {
		table->kept = table->symbols;
		table->symbols = symbols;
		table->is_vmlinux = false;
		names->kernel_shift = 0;
		see_reference(names, table, &text);
	}
	tally_buffer_release(&text);
	return result == -ENOMEM ? result : 0;
}

/* Returns 1 if vmlinux has the names, 0 if not, or -ENOMEM. */
static int read_vmlinux(struct tally_names *names, struct tally_name_table *table)
{
	size_t count = 0;
	if (names->vmlinux.object &&
	    tally_name_table_read_object(names, table, &names->vmlinux) < 0)
		return -ENOMEM;
	if (table->symbols)
		tally_symbols_list(table->symbols, &count);
	if (!count) {
		tally_symbols_free(table->symbols);
		table->symbols = NULL;
		return 0;
	}
	names->kernel_shift = names->vmlinux_shift;
	table->differs = table->hidden = false;
	table->is_vmlinux = true;
	return 1;
}

int tally_kernel_names_read(struct tally_names *names, struct tally_name_table *table)
{
	bool is_asked_for = names->sources.vmlinux && !names->sources.kallsyms;
	int result = is_asked_for ? read_vmlinux(names, table) : 0;
	if (result > 0 || (!result && !names->sources.kallsyms && read_kept(names, table))) {
		table->is_partial = true;
		return 0;
	}
	if (!result)
		result = read_kallsyms(names, table);
	if (!result && !table->symbols) {
		result = read_vmlinux(names, table);
		table->is_partial = result > 0;
	}
	return result < 0 ? result : 0;
}

void tally_kernel_names_reach(struct tally_names *names, struct tally_name_table *table,
			      uint64_t address)
{
	size_t count;
	const struct tally_symbol *list = table->is_partial
						  ? tally_symbols_list(table->symbols, &count)
						  : NULL;
	address -= (uint64_t)names->kernel_shift;
	if (!list || (count && address >= list[0].start && address < list[count - 1].end))
		return;
	table->is_partial = false;
	read_kallsyms(names, table);
}
