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
#include "abi/abi.h"
#include "base/buffer.h"
#include "base/error.h"
#include "naming/naming.h"
#include "naming/naming_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* Tells whether the recorded kernel may be the running one when a recording has neither its
 * build-id nor its release.  Old recorders, and recorders that were killed, leave such recordings.
 * The records of the kernel's maps help: modules lie below /lib/modules/RELEASE, and KASLR moves a
 * kernel only by whole steps.  So a symbol at another offset within a step belongs to another
 * build. */

/* The address range of the x86-64 kernel (arch/x86/include/asm/page_64_types.h), and
 * CONFIG_PHYSICAL_ALIGN. */
static const uint64_t X86_64_START = 0xffffffff80000000, X86_64_END = 0xffffffffc0000000,
		      X86_64_STEP = 2 << 20;
enum { STEP_MIN = 4096 /* other architectures */ };

static const char kernel_prefix[] = "[kernel.kallsyms]";
static const char running_kallsyms[] = "/proc/kallsyms";

uint64_t tally_kernel_running_address(const char *symbol)
{
	FILE *file = fopen(running_kallsyms, "re");
	char line[512], name[256];
	unsigned long long at, found = 0;
	while (file && !found && fgets(line, sizeof(line), file))
		if (sscanf(line, "%llx %*c %255s", &at, name) == 2 && !strcmp(name, symbol))
			found = at;
	if (file)
		fclose(file);
	return found;
}

/* Copies the release from "/lib/modules/RELEASE/…".  Returns false for any other path. */
static bool take_release(const char *path, char release[TALLY_KERNEL_RELEASE_BYTES])
{
	static const char modules[] = "/lib/modules/";
	if (!strncmp(path, "/usr/", 5))
		path += 4;
	if (strncmp(path, modules, sizeof(modules) - 1) != 0)
		return false;
	path += sizeof(modules) - 1;
	size_t length = strcspn(path, "/");
	if (!length || !path[length] || length >= TALLY_KERNEL_RELEASE_BYTES)
		return false;
	memcpy(release, path, length);
	release[length] = '\0';
	return true;
}

bool tally_kernel_may_be_at(uint64_t recorded, uint64_t now, enum tally_arch arch)
{
	bool is_x86_64 = arch == TALLY_ARCH_X86_64;
	if (is_x86_64 && (recorded < X86_64_START || recorded >= X86_64_END))
		return false;
	if (!now)
		return true; /* kallsyms hides it */
	if (is_x86_64)
		return (recorded - now) % X86_64_STEP == 0;
	return (recorded - now) % STEP_MIN == 0;
}

static bool is_kernels(const struct tally_record *record)
{
	return (record->header.misc & TALLY_MISC_CPUMODE_MASK) == TALLY_MISC_KERNEL &&
	       record->mmap.pid == UINT32_MAX;
}

bool tally_kernel_module_is_anothers(const struct tally_record *record,
				     char release[TALLY_KERNEL_RELEASE_BYTES])
{
	struct utsname here;
	return is_kernels(record) && take_release(record->mmap.filename, release) &&
	       uname(&here) == 0 && strcmp(release, here.release) != 0;
}

const char *tally_kernel_map_symbol(const struct tally_record *record)
{
	const char *name = record->mmap.filename, *symbol = name + sizeof(kernel_prefix) - 1;
	if (!is_kernels(record) || strncmp(name, kernel_prefix, sizeof(kernel_prefix) - 1) != 0)
		return NULL;
	if (!strcmp(symbol, "_text") || !strcmp(symbol, "_stext"))
		return symbol;
	return NULL;
}

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
	bool is_start = !strcmp(reference, "_stext");
	*key = (struct tally_cache_key){ .kind = "kallsyms",
					 .version = KALLSYMS_VERSION,
					 .part = is_start };
	return names->tables.cache && (!strcmp(reference, "_text") || is_start) &&
	       tally_kernel_build_id(names, &key->id);
}

static bool read_kept(struct tally_names *names, struct tally_name_table *table)
{
	const char *symbol;
	const struct tally_mapping *reference = tally_kernel_reference(names, &symbol);
	struct tally_cache_key key;
	if (!reference || !make_key(names, symbol, &key) ||
	    !tally_cache_get(names->tables.cache, &key, &table->blob))
		return false;
	if (!tally_symbols_unpack(table->blob.bytes, table->blob.size, reference->file_offset,
				  &table->symbols))
		return true;
	tally_cache_blob_release(&table->blob);
	return false;
}

/* A recording only claims a kernel's build-id, and so does the name of a copy of kallsyms.  The
 * cache gets the running kernel's symbols alone, and knows them by the kernel's own build-id. */
static bool may_keep(const struct tally_cache_key *key, const char *kallsyms)
{
	struct tally_build_id running;
	return !strcmp(kallsyms, running_kallsyms) && tally_kernel_running_build_id(&running) &&
	       tally_build_id_equal(&key->id, &running);
}

/* Notes how far KASLR moved the kernel since the recording, and caches what was read.  Modules move
 * independently, so theirs stay unnamed in that case. */
static void find_shift(struct tally_names *names, const struct tally_name_table *table,
		       const char *path, const struct tally_buffer *kallsyms)
{
	const char *symbol;
	const struct tally_mapping *reference = tally_kernel_reference(names, &symbol);
	struct tally_cache_key key;
	struct tally_buffer packed = { .maximum = 1 << 30 };
	uint64_t now;
	if (!reference || !find_in_kallsyms(kallsyms, symbol, &now))
		return;
	names->kernel.shift = (int64_t)(reference->file_offset - now);
	if (!table->kept && make_key(names, symbol, &key) && may_keep(&key, path) &&
	    !tally_symbols_pack(table->symbols, now, &packed))
		tally_cache_put(names->tables.cache, &key, "[kernel.kallsyms]", packed.bytes,
				packed.length);
	tally_buffer_release(&packed);
}

/* Returns the file with the recorded kernel's symbols: a copy, or the running kernel's kallsyms.
 * NULL: another kernel runs, and there is no copy. */
static const char *kallsyms_path(const struct tally_names *names, char *path)
{
	if (names->sources.kallsyms)
		return names->sources.kallsyms;
	if (!names->kernel.is_foreign && running_kernel_is(&names->kernel.build_id))
		return running_kallsyms;
	if (!tally_search_kept_path(&names->objects.search, &names->kernel.build_id, "kallsyms",
				    path))
		return NULL;
	return path;
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
		names->kernel.shift = 0;
		find_shift(names, table, path, &text);
	}
	tally_buffer_release(&text);
	return tally_only_enomem(result);
}

/* Returns 1 if vmlinux has the names, 0 if not, or -ENOMEM. */
static int read_vmlinux(struct tally_names *names, struct tally_name_table *table)
{
	size_t count = 0;
	if (names->kernel.vmlinux.object &&
	    tally_name_table_read_object(names, table, &names->kernel.vmlinux) < 0)
		return -ENOMEM;
	if (table->symbols)
		tally_symbols_list(table->symbols, &count);
	if (!count) {
		tally_symbols_free(table->symbols);
		table->symbols = NULL;
		return 0;
	}
	names->kernel.shift = names->kernel.vmlinux_shift;
	table->differs = table->hidden = false;
	return 1;
}

int tally_kernel_names_read(struct tally_names *names, struct tally_name_table *table)
{
	bool is_asked_for = names->sources.vmlinux && !names->sources.kallsyms;
	int result = 0;
	if (is_asked_for)
		result = read_vmlinux(names, table);
	if (result < 0)
		return result;
	if (result > 0 || (!names->sources.kallsyms && read_kept(names, table))) {
		table->is_partial = true;
		return 0;
	}
	result = read_kallsyms(names, table);
	if (result < 0 || table->symbols)
		return tally_error_of(result);
	result = read_vmlinux(names, table);
	table->is_partial = result > 0;
	return tally_error_of(result);
}

void tally_kernel_names_reach(struct tally_names *names, struct tally_name_table *table,
			      uint64_t address)
{
	size_t count;
	const struct tally_symbol *list = NULL;
	if (table->is_partial)
		list = tally_symbols_list(table->symbols, &count);
	address -= (uint64_t)names->kernel.shift;
	if (!list || (count && address >= list[0].start && address < list[count - 1].end))
		return;
	table->is_partial = false;
	read_kallsyms(names, table);
}

/* The kernel's own file, vmlinux.  It has the lines of its functions, and their names if kallsyms
 * doesn't.
 *
 * Each distribution puts it elsewhere; it is large and often absent.  A build-id finds it reliably;
 * without one in the recording, the release in the file's name has to do.  KASLR runs the kernel at
 * another address than it was linked for: recordings have the address of one symbol, and all others
 * are off by the same distance.
 */

enum { NOTES_BYTES_MAX = 1 << 16 };

bool tally_kernel_running_build_id(struct tally_build_id *id)
{
	struct tally_buffer notes = { 0 };
	bool found = !tally_buffer_read_file(&notes, AT_FDCWD, "/sys/kernel/notes",
					     NOTES_BYTES_MAX) &&
		     tally_build_id_from_notes(notes.bytes, notes.length, id);
	tally_buffer_release(&notes);
	return found;
}

bool tally_kernel_build_id(const struct tally_names *names, struct tally_build_id *id)
{
	*id = names->kernel.build_id;
	if (id->size)
		return true;
	return !names->kernel.is_foreign && tally_kernel_running_build_id(id);
}

const struct tally_mapping *tally_kernel_reference(const struct tally_names *names,
						   const char **symbol)
{
	static const char prefix[] = "[kernel.kallsyms]";
	const struct tally_mappings *kernel = &names->tasks->kernel.mappings;
	const struct tally_mapping *mapping = NULL;
	while ((mapping = tally_mappings_behind(kernel, mapping ? mapping->end : 0))) {
		const char *path = tally_tasks_path(names->tasks, mapping->file);
		if (strncmp(path, prefix, sizeof(prefix) - 1) != 0 || !path[sizeof(prefix) - 1])
			continue;
		*symbol = path + sizeof(prefix) - 1;
		return mapping;
	}
	return NULL;
}

const char *tally_kernel_release(const struct tally_names *names,
				 char release[TALLY_KERNEL_RELEASE_BYTES])
{
	struct utsname here;
	*release = '\0';
	if (names->kernel.release)
		return names->kernel.release;
	if (!names->kernel.is_foreign && !uname(&here))
		snprintf(release, TALLY_KERNEL_RELEASE_BYTES, "%s", here.release);
	return release;
}

static struct tally_object *if_of(struct tally_object *object, const struct tally_build_id *id)
{
	if (object && id->size && !tally_build_id_equal(tally_object_build_id(object), id)) {
		tally_object_unref(object);
		return NULL;
	}
	return object;
}

static struct tally_object *find_by_release(const struct tally_names *names, const char *release,
					    const struct tally_build_id *id)
{
	static const char *const PLACES[][2] = {
		{ "/usr/lib/debug/boot/vmlinux-", "" },
		{ "/usr/lib/debug/lib/modules/", "/vmlinux" },
		{ "/lib/modules/", "/build/vmlinux" },
		{ "/boot/vmlinux-", "" },
		{ "/usr/lib/debug/boot/vmlinux-", ".debug" },
		{ "/lib/modules/", "/vmlinux" },
	};
	struct tally_object *found = NULL;
	bool is_release = *release && !strchr(release, '/');
	for (size_t i = 0; is_release && !found && i < sizeof(PLACES) / sizeof(PLACES[0]); i++) {
		char path[PATH_MAX];
		snprintf(path, sizeof(path), "%s%s%s", PLACES[i][0], release, PLACES[i][1]);
		if (tally_search_open(&names->objects.search, path, &found) < 0)
			found = NULL;
		found = if_of(found, id);
	}
	return found;
}

static struct tally_object *find(struct tally_names *names)
{
	struct tally_build_id id = names->kernel.build_id;
	struct tally_object *found = NULL;
	if (names->sources.vmlinux) {
		if (tally_object_open(AT_FDCWD, names->sources.vmlinux, &found, NULL) < 0)
			return NULL;
		names->gaps.vmlinux_differs = id.size && !tally_build_id_equal(
								 tally_object_build_id(found), &id);
		return found;
	}
	tally_kernel_build_id(names, &id);
	const struct tally_fetched_object *fetched = tally_objects_fetched(&names->objects, &id);
	if (fetched && fetched->debug)
		return tally_object_ref(fetched->debug);
	if (id.size)
		found = tally_search_by_build_id(&names->objects.search, &id);
	if (found)
		return found;
	char release[TALLY_KERNEL_RELEASE_BYTES];
	return find_by_release(names, tally_kernel_release(names, release), &id);
}

void tally_kernel_object_use(struct tally_names *names, struct tally_object *object)
{
	struct tally_object_entry *entry = &names->kernel.vmlinux;
	const char *symbol;
	uint64_t linked;
	const struct tally_mapping *reference = tally_kernel_reference(names, &symbol);
	entry->state = TALLY_OBJECT_MISSING;
	if (object)
		entry->state = TALLY_OBJECT_OPEN;
	entry->search = &names->objects.search;
	entry->object = object;
	if (object && reference &&
	    (tally_symbols_value_in(object, symbol, &linked) ||
	     (tally_objects_debug(entry) && tally_symbols_value_in(entry->debug, symbol, &linked))))
		names->kernel.vmlinux_shift = (int64_t)(reference->file_offset - linked);
}

struct tally_object_entry *tally_kernel_object(struct tally_names *names)
{
	if (names->kernel.vmlinux.state == TALLY_OBJECT_UNTRIED)
		tally_kernel_object_use(names, find(names));
	if (!names->kernel.vmlinux.object)
		return NULL;
	return &names->kernel.vmlinux;
}
