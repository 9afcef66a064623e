/* Chooses a table's source when the file is first met: a JIT's dump, perf maps, the symbols in
 * simpleperf's recordings, or the object itself.  The symbols of large objects are cached on disk.
 * The end of the file looks addresses up, and corrects the result by the unwind rules. */
#include "naming/naming_internal.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/extremes.h"
#include "base/input_limits.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/vector.h"
#include "naming/naming.h"
#include "symbol/lines.h"
#include "symbol/symbol.h"
#include "task/jit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- perf maps -----------------------------------------------------------
 *
 * A map may be any text, of any length.  A line of text becomes a larger entry of a table, so lines
 * are limited, too. */

enum { LINE_BYTES_MIN = 32 /* of honest maps, on average */ };

/* For views: true if the map at the path of a process may be that of the recorded process.  A
 * living process must have begun before the recording ended.  Of one that has ended, the recorder
 * has packed all names that its map held, so a map that is there now may belong to a later process
 * of that number.  Without packed names (perf's recordings), the map is used, as perf does. */
static bool may_be_its_map(const struct tally_names *names, uint32_t pid)
{
	uint64_t start_ns = tally_process_start_ns(pid);
	if (names->carried.perf_maps)
		return true; /* it is being recorded */
	if (names->kernel.is_foreign)
		return false;
	uint64_t until_ns = names->objects.times.until_ns;
	if (start_ns)
		return !until_ns || start_ns <= until_ns;
	return !names->carried.section.bytes;
}

/* Reads the map's file, of at most `most` bytes.  Returns 1; 0 if there is none that can be read;
 * -EFBIG if it is larger. */
static int read_where_it_lies(struct tally_names *names, uint32_t pid, size_t most,
			      struct tally_buffer *text)
{
	if (!may_be_its_map(names, pid))
		return 0;
	const struct tally_perf_maps *held = names->carried.perf_maps;
	int fd = tally_perf_map_open(pid, held ? held->began_ns : 0);
	names->gaps.distrusted_maps += fd == -EPERM;
	if (fd < 0)
		return 0;
	int result = tally_buffer_read_descriptor(text, fd, most);
	close(fd);
	if (result == -EFBIG)
		return result;
	return !result;
}

/* Appends the text of a process's perf map: of those held while recording, else of the file where it
 * is now.  Returns 1, 0 if there is none that can be trusted, or -errno. */
static int perf_map_text(struct tally_names *names, uint32_t pid, size_t most,
			 struct tally_buffer *text)
{
	if (names->carried.perf_maps) {
		int found = tally_perf_maps_text(names->carried.perf_maps, pid, text, most);
		if (found)
			return found;
	}
	return read_where_it_lies(names, pid, most, text);
}

/* Appends the texts of a file's process and of the processes that it was copied from by forks, the
 * oldest first: later lines win.  Returns 1, 0 if there are none, or -errno: -EFBIG if they have
 * more than `most` bytes. */
static int perf_map_texts(struct tally_names *names, uint32_t file, size_t most,
			  struct tally_buffer *text)
{
	enum { FORKS_MAX = 16 };
	uint32_t files[FORKS_MAX];
	size_t count = 0;
	int found = 0;
	for (uint32_t at = file + 1; at && count < FORKS_MAX;
	     at = names->tasks->files.items[at - 1].origin)
		files[count++] = at - 1;
	while (count && found >= 0) {
		struct tally_buffer map = { .maximum = text->maximum };
		size_t left = (size_t)tally_saturating_sub_u64(most, text->length);
		int one = perf_map_text(names, names->tasks->files.items[files[--count]].pid, left,
					&map);
		if (one > 0 && !map.failed)
			tally_buffer_append(text, map.bytes, map.length);
		if (one > 0)
			tally_buffer_char(text, '\n'); /* the last line may be incomplete */
		tally_buffer_release(&map);
		if (one < 0)
			found = one;
		else
			found |= one;
	}
	return found;
}

static bool has_too_many_lines(const struct tally_buffer *text, size_t most)
{
	size_t lines = 0;
	const char *at = tally_buffer_string(text);
	for (const char *end = at + text->length;
	     (at = memchr(at, '\n', (size_t)(end - at))); at++)
		lines++;
	return lines > most / LINE_BYTES_MIN;
}

/* Returns the symbols of the perf maps for memory that belongs to a process.  NULL: there are
 * none.  Counts problems in the names' gaps. */
static struct tally_symbols *perf_map_load(struct tally_names *names, uint32_t file)
{
	const uint64_t one = tally_input_limit(TALLY_INPUT_PERF_MAP),
		       all = tally_input_limit(TALLY_INPUT_PERF_MAPS),
		       left = tally_saturating_sub_u64(all, names->carried.perf_map_bytes);
	const size_t most = (size_t)tally_min_u64(one, left);
	struct tally_buffer text = { .maximum = most + TALLY_BUFFER_READ_ROOM };
	struct tally_symbols *symbols = NULL;
	size_t skipped = 0;
	char path[32];
	int found = perf_map_texts(names, file, most, &text);
	names->carried.perf_map_bytes += text.length;
	const bool is_of_all = found == -EFBIG && left < one;
	if (found == -EFBIG || (found > 0 && has_too_many_lines(&text, (size_t)one))) {
		snprintf(path, sizeof(path), "/tmp/perf-%u.map",
			 names->tasks->files.items[file].pid);
		tally_input_note(is_of_all ? TALLY_INPUT_PERF_MAPS : TALLY_INPUT_PERF_MAP, path);
		found = 0;
	}
	if (found > 0 && !text.failed &&
	    tally_symbols_from_perf_map(tally_text_or(text.bytes, ""), text.length, &skipped,
					&symbols, NULL) < 0)
		symbols = NULL;
	names->gaps.map_lines_skipped += skipped;
	tally_buffer_release(&text);
	return symbols;
}

/* simpleperf stores the symbols of sampled files in the recording, because the files are on a
 * phone.  The addresses are as linked: the file's first executable segment has the address
 * min_vaddr, and the difference to its offset in the file is the shift.  The offset is listed too;
 * recordings from before 2018 lack it, so there the mapping's offset is used. */

static bool find(const struct tally_names *names, const char *path,
		 struct tally_simpleperf_file *out)
{
	size_t at = 0;
	while (tally_simpleperf_next(names->carried.listed.bytes, names->carried.listed.size, &at,
				     out) > 0)
		if (!strcmp(out->path, path))
			return true;
	return false;
}

/* If the recording lists the symbols of a mapped file or of the kernel (TALLY_FILE_KERNEL), fills
 * the table with them.  Files of this machine are not used then.  Returns 0 or -ENOMEM. */
static int listed_names_fill(struct tally_names *names, struct tally_name_table *table,
			     uint32_t file)
{
	struct tally_simpleperf_file listed;
	bool is_kernel = file == TALLY_FILE_KERNEL;
	const char *path = "[kernel.kallsyms]";
	uint64_t offset;
	if (!is_kernel)
		path = tally_tasks_path(names->tasks, file);
	if (!names->carried.listed.bytes || !find(names, path, &listed) || !listed.symbol_count)
		return 0;
	bool is_elf = listed.kind == TALLY_SIMPLEPERF_ELF,
	     is_dex = listed.kind == TALLY_SIMPLEPERF_DEX;
	if (is_kernel && listed.kind != TALLY_SIMPLEPERF_KERNEL)
		return 0;
	if (!is_kernel && !is_elf && !is_dex)
		return 0;
	struct tally_symbols *symbols;
	int result = tally_symbols_from_simpleperf(&listed, &offset, &symbols);
	if (result < 0)
		return tally_only_enomem(result);
	if (is_elf && offset == UINT64_MAX) {
		const struct tally_mapped_file *mapped = &names->tasks->files.items[file];
		if (!mapped->code_end) {
			tally_symbols_free(symbols);
			return 0;
		}
		offset = mapped->code_start;
	}
	table->symbols = symbols;
	table->is_listed = table->is_read = true;
	table->listed_shift = 0;
	if (is_elf)
		table->listed_shift = listed.min_address - offset;
	return 0;
}

/* The symbols of objects from this size on are cached: node's 150,000 take 25 ms to read and sort,
 * and 3 ms from the cache. */
enum { KEPT_OBJECT_BYTES = 8 << 20, SYMBOLS_VERSION = 4 };

static struct tally_name_table *kernel_table(struct tally_names *names)
{
	struct tally_name_table *table = names->kernel.table;
	if (!table) {
		table = names->kernel.table = calloc(1, sizeof(*table));
		if (!table)
			return NULL;
		*table = (struct tally_name_table){ .is_open = true,
						    .is_kernel = true,
						    .is_read = names->kernel.is_tried,
						    .kind = TALLY_FRAME_KERNEL };
		table->object = tally_strings_intern(&names->strings, "[kernel.kallsyms]");
		names->kernel.is_tried = true;
		if (listed_names_fill(names, table, TALLY_FILE_KERNEL) < 0)
			return NULL;
	}
	return table;
}

/* ---- files --------------------------------------------------------------- */

static enum tally_frame_kind kind_of_path(const char *path)
{
	const char *so = strstr(path, ".so");
	bool is_library = so && (!so[3] || so[3] == '.' || so[3] == '-');
	if (is_library || !strncmp(path, "[vdso", 5) || !strncmp(path, "[vsyscall", 9))
		return TALLY_FRAME_LIBRARY;
	return TALLY_FRAME_PROGRAM;
}

static void note_gap(struct tally_names *names, const struct tally_object_entry *entry,
		     const char *path)
{
	/* the recording's own names lack it as well */
	if (names->carried.names || entry->state != TALLY_OBJECT_CHANGED)
		return;
	char name[PATH_MAX];
	tally_terminal_clean_name(path, name, sizeof(name));
	const char *difference = tally_file_difference(entry->difference);
	if (!names->gaps.changed_files++) {
		tally_terminal_clean_name(path, names->gaps.changed_file,
					  sizeof(names->gaps.changed_file));
		names->gaps.difference = difference;
	}
	tally_buffer_printf(&names->gaps.details, "not the recorded file: %s %s\n", name,
			    difference);
}

static bool is_same_file(const char *path, const struct stat *own)
{
	struct stat other;
	return !stat(path, &other) && own->st_dev == other.st_dev && own->st_ino == other.st_ino;
}

/* Finds a program by a task's name, which the kernel cuts after 15 bytes.  Sets `out` to the path
 * of the only file in the folder whose name begins with `cut` and which is the file of `own`.
 * Returns false if there is none, or several. */
static bool find_cut_name(const char *folder, const char *cut, const struct stat *own, char *out,
			  size_t size)
{
	DIR *files = opendir(folder);
	const struct dirent *entry;
	char path[PATH_MAX];
	size_t found = 0, cut_length = strlen(cut);
	while (files && (entry = readdir(files))) {
		if (strncmp(entry->d_name, cut, cut_length) != 0)
			continue;
		int length = snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (length < 0 || (size_t)length >= sizeof(path) || !is_same_file(path, own))
			continue;
		if (!found++)
			snprintf(out, size, "%s", path);
	}
	if (files)
		closedir(files);
	return found == 1;
}

/* For a program with several names, such as redis or busybox: returns the path that started it, if
 * that is in the file's folder and leads to the same file.  NULL: it is the file's own path, or
 * another file.  A name that is part of the file's own name says less ("cc", "python3"), so it is
 * not used. */
static const char *started_path(const struct tally_mapped_file *file, const char *path, char *out,
				size_t size)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];
	struct stat own;
	if (!slash || !file->started_as[0] || file->is_started_variously ||
	    strstr(slash + 1, file->started_as) || strchr(file->started_as, '/') ||
	    (size_t)(slash - path) >= sizeof(folder) || stat(path, &own) < 0)
		return NULL;
	memcpy(folder, path, (size_t)(slash - path));
	folder[slash - path] = '\0';
	if (strlen(file->started_as) + 1 == sizeof(file->started_as)) {
		const char *in = *folder ? folder : "/";
		if (!find_cut_name(in, file->started_as, &own, out, size))
			return NULL;
		return out;
	}
	int length = snprintf(out, size, "%s/%s", folder, file->started_as);
	if (length <= 0 || (size_t)length >= size || !is_same_file(out, &own))
		return NULL;
	return out;
}

static int open_table(struct tally_names *names, struct tally_name_table *table, uint32_t file_id)
{
	const struct tally_mapped_file *file = &names->tasks->files.items[file_id];
	const char *path = tally_tasks_path(names->tasks, file_id);
	char started_as[PATH_MAX];
	const struct tally_jit *jit = tally_jits_of_file(names->tasks, file_id);
	table->is_open = true;
	table->kind = kind_of_path(path);
	table->is_memory = file->pid || tally_is_guest_path(path);
	if (jit) {
		table->is_jit = true;
		table->kind = TALLY_FRAME_JIT;
		table->dump = jit->dump;
	} else if (file->pid && strncmp(path, "[stack", 6) && strcmp(path, "[heap]")) {
		table->is_jit = true;
		table->kind = TALLY_FRAME_JIT;
		table->symbols = perf_map_load(names, file_id);
		path = TALLY_JIT_UNNAMED;
		if (table->symbols)
			path = TALLY_JIT_MAP;
	} else if (!file->pid && listed_names_fill(names, table, file_id) < 0) {
		return -ENOMEM;
	} else if (!file->pid && !table->is_listed) {
		struct tally_object_entry *entry = tally_objects_get(&names->objects, names->tasks,
								     file_id);
		if (!entry || entry->lack == -ENOMEM)
			return -ENOMEM;
		if (!entry->object)
			note_gap(names, entry, path);
		const char *started = NULL;
		if (entry->object && !names->options.real_paths)
			started = started_path(file, path, started_as, sizeof(started_as));
		path = tally_text_or(started, path);
	}
	if (!file->pid && tally_jit_object(path)) { /* perf inject wrote a file for each function */
		table->kind = TALLY_FRAME_JIT;
		path = tally_jit_object(path);
	}
	table->object = tally_strings_intern(&names->strings, path);
	return 0;
}

struct tally_name_table *tally_name_table_of(struct tally_names *names, uint32_t file)
{
	if (file == TALLY_FILE_KERNEL)
		return kernel_table(names);
	while (names->tables.count <= file)
		if (tally_vector_push(&names->tables, (struct tally_name_table){ 0 }) < 0)
			return NULL;
	struct tally_name_table *table = &names->tables.items[file];
	if (!table->is_open && open_table(names, table, file) < 0)
		return NULL;
	return table;
}

bool tally_names_has_symbols(struct tally_names *names, uint32_t file)
{
	const struct tally_name_table *table = tally_name_table_of(names, file);
	return table && table->symbols;
}

struct tally_object_entry *tally_name_table_entry(struct tally_names *names, uint32_t file)
{
	const struct tally_kernel_naming *kernel = &names->kernel;
	if (file == TALLY_FILE_KERNEL) {
		if (kernel->table->is_read && kernel->vmlinux.state == TALLY_OBJECT_UNTRIED)
			return NULL;
		return tally_kernel_object(names);
	}
	if (names->tables.items[file].is_jit || names->tables.items[file].is_listed ||
	    names->tasks->files.items[file].pid)
		return NULL;
	struct tally_object_entry *entry = tally_objects_get(&names->objects, names->tasks, file);
	if (!entry || !entry->object)
		return NULL;
	return entry;
}

static bool read_kept_symbols(struct tally_name_table *table, struct tally_disk_cache *cache,
			      const struct tally_cache_key *key)
{
	if (!tally_cache_get(cache, key, &table->blob))
		return false;
	if (!tally_symbols_unpack(table->blob.bytes, table->blob.size, 0, &table->symbols))
		return true;
	tally_cache_blob_release(&table->blob);
	return false;
}

int tally_name_table_read_object(const struct tally_names *names, struct tally_name_table *table,
				 struct tally_object_entry *entry)
{
	struct tally_object *debug = tally_objects_debug(entry);
	struct tally_cache_key key = {
		.id = *tally_object_build_id(entry->object),
		.kind = "symbols",
		.part = debug != NULL,
		.version = SYMBOLS_VERSION,
	};
	size_t size;
	struct tally_buffer packed = { .maximum = 1 << 30 };
	tally_object_image(entry->object, &size);
	bool is_kept = names->tables.cache && size >= KEPT_OBJECT_BYTES;
	tally_cache_key_add(&key, entry->object);
	if (debug)
		tally_cache_key_add(&key, debug);
	if (is_kept && read_kept_symbols(table, names->tables.cache, &key))
		return 0;
	int result = tally_symbols_from_object(entry->object, debug, &table->symbols, NULL);
	if (result < 0)
		table->symbols = NULL;
	else if (is_kept && !tally_symbols_pack(table->symbols, 0, &packed))
		tally_cache_put(names->tables.cache, &key, tally_object_path(entry->object),
				packed.bytes, packed.length);
	tally_buffer_release(&packed);
	if (entry->lack == -ENOMEM)
		return -ENOMEM;
	return tally_only_enomem(result);
}

int tally_name_table_read(struct tally_names *names, struct tally_name_table *table,
			  struct tally_object_entry *entry, bool lines)
{
	int result = 0;
	if (!table->is_read && table->is_kernel)
		result = tally_kernel_names_read(names, table);
	else if (!table->is_read && table->dump)
		result = tally_jit_dump_symbols(table->dump, &table->symbols);
	else if (!table->is_read && entry)
		result = tally_name_table_read_object(names, table, entry);
	if (result < 0)
		return result;
	table->is_read = true;
	if (!lines || table->lines_tried || !entry)
		return 0;
	table->lines_tried = true;
	if (tally_lines_new(entry->object, tally_objects_debug(entry), &table->lines, NULL) < 0)
		return -ENOMEM;
	tally_lines_use_cache(table->lines, names->tables.cache);
	return 0;
}

void tally_name_table_release(struct tally_name_table *table)
{
	if (table->lines)
		tally_lines_keep(table->lines);
	tally_lines_free(table->lines);
	tally_symbols_free(table->symbols);
	tally_symbols_free(table->data);
	tally_symbols_free(table->kept);
	tally_kernel_modules_free(table->modules);
	tally_cache_blob_release(&table->blob);
	tally_map_release(&table->texts);
}

/* ---- looking up ---------------------------------------------------------- */

bool tally_name_table_address(const struct tally_names *names, const struct tally_name_table *table,
			      const struct tally_object_entry *entry,
			      const struct tally_place *place, uint64_t *address)
{
	if (table->is_listed && !table->is_kernel) {
		*address = place->address + table->listed_shift;
		return true;
	}
	*address = place->address;
	if (table->is_kernel) {
		*address -= (uint64_t)names->kernel.shift;
		return true;
	}
	return table->is_jit ||
	       (entry && tally_object_address_of_offset(entry->object, place->address, address));
}

/* Returns the unwind rules of a file; NULL: none. */
static struct tally_unwind_table *rules_of(const struct tally_name_table *table,
					   struct tally_object_entry *entry)
{
	if (!entry || table->is_kernel)
		return NULL;
	return tally_objects_unwind(entry);
}

bool tally_name_table_extent(const struct tally_name_table *table, struct tally_object_entry *entry,
			     uint64_t address, uint64_t *start, uint64_t *end)
{
	struct tally_unwind_table *rules = rules_of(table, entry);
	return rules && tally_unwind_table_extent(rules, address, start, end);
}

uint64_t tally_name_table_start(const struct tally_name_table *table,
				struct tally_object_entry *entry, const struct tally_place *place,
				uint64_t address)
{
	uint64_t start, end;
	if (table->is_kernel || table->is_jit || table->is_memory)
		return UINT64_MAX;
	if (!entry || address == UINT64_MAX)
		return place->address;
	if (tally_name_table_extent(table, entry, address, &start, &end))
		return start;
	return address;
}

/* Corrects what the table alone says of an address.  Sets *end to the function's end, unless there
 * is no symbol. */
static const struct tally_symbol *correct(const struct tally_name_table *table,
					  struct tally_object_entry *entry, uint64_t address,
					  const struct tally_symbol *symbol, uint64_t *end)
{
	struct tally_unwind_table *rules = NULL;
	if (symbol && !symbol->is_sized)
		rules = rules_of(table, entry);
	if (!tally_objects_function_at(rules, table->symbols, address, &symbol, end))
		return NULL;
	return symbol;
}

const struct tally_symbol *tally_name_table_symbol(const struct tally_name_table *table,
						   struct tally_object_entry *entry,
						   uint64_t address, uint64_t *end)
{
	const struct tally_symbol *symbol = NULL;
	uint64_t ignored;
	if (table->symbols)
		symbol = tally_symbols_find(table->symbols, address);
	if (!end)
		end = &ignored;
	return correct(table, entry, address, symbol, end);
}

/* `address` is `before` bytes before a return address, so that it lies in the call.  In two cases
 * the function at the return address is the right one instead.  A signal trampoline is only ever
 * returned to: nothing calls from before its start, and no symbol is there.  And the padding before
 * the kernel's functions (__pfx_) makes no calls: an interrupt hit the function's first
 * instruction.
 *
 * But if the unwind rules say that another function ends at the return address, that function ended
 * in a call that doesn't return, and just has no symbol.
 */
const struct tally_symbol *tally_name_table_called(const struct tally_name_table *table,
						   struct tally_object_entry *entry,
						   uint64_t address, uint32_t before,
						   size_t *cursor)
{
	uint64_t start, end;
	const struct tally_symbol *symbol = NULL;
	if (table->symbols)
		symbol = tally_symbols_find_next(table->symbols, address, cursor);
	symbol = correct(table, entry, address, symbol, &end);
	bool is_called = symbol && !(table->is_kernel && !strncmp(symbol->name, "__pfx_", 6));
	if (is_called || !before || !table->symbols)
		return symbol;
	const struct tally_symbol *behind = tally_symbols_find(table->symbols, address + before);
	if (!behind)
		return symbol;
	struct tally_unwind_table *rules = rules_of(table, entry);
	if (rules && tally_unwind_table_function(rules, address, &start, &end) &&
	    end <= address + before)
		return symbol;
	return behind;
}

uint32_t tally_name_table_object(struct tally_names *names, const struct tally_name_table *table,
				 const struct tally_place *place,
				 const struct tally_symbol **symbol)
{
	const char *own = NULL, *module = NULL;
	if (table->modules && *symbol)
		own = tally_kernel_module_name(table->modules, *symbol);
	if (!own && table->is_kernel && *symbol)
		module = tally_symbol_module(table->symbols, *symbol);
	char object[80], recorded[TALLY_MODULE_NAME_BYTES];
	if (module && names->kernel.shift) {
		*symbol = NULL;
		module = NULL;
	}
	if (!*symbol && table->is_kernel &&
	    tally_kernel_module_recorded(names, place->address, recorded))
		module = recorded;
	if (!module && !own)
		return table->object;
	snprintf(object, sizeof(object), "[%s]", tally_text_or(own, module));
	return tally_strings_intern(&names->strings, object);
}
