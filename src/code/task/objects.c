/* One entry for each mapped file, by its number; the object is opened on first use.  In order:
 * files opened while recording, files of a finished recording, files that the recorder or
 * debuginfod provides, unwind rules, and limits on memory. */
#include "task/task.h"

#include "base/vector.h"
#include "symbol/symbol.h"
#include "task/jit.h"
#include "unwind/unwind.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

const void *tally_vdso_image(size_t *size)
{
	const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
	if (!image)
		return NULL;
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
	/* The section headers are at the image's end. */
	*size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
	return image;
}

static bool is_build(const struct tally_build_id *id, const struct tally_build_id *wanted)
{
	return !wanted->size || tally_build_id_equal(id, wanted);
}

/* ---- while recording ----------------------------------------------------- */

/* True if the file is small and new.  A build may write it anew in place, and what we map would
 * change with it. */
static bool is_worth_a_copy(const struct tally_objects *objects, const struct stat *file)
{
	const time_t new_s = 24 * 60 * 60;
	const size_t most = 8 << 20, all = 64 << 20;
	return file->st_mtim.tv_sec > time(NULL) - new_s && (size_t)file->st_size <= most &&
	       objects->copied_bytes + (size_t)file->st_size <= all;
}

/* Opens a file that was found while recording, and releases `found`. */
static void open_found(struct tally_objects *objects, struct tally_object_entry *entry,
		       struct tally_live_file *found)
{
	struct stat status;
	bool copies = !fstat(found->fd, &status) && is_worth_a_copy(objects, &status);
	int rc;
	if (copies)
		rc = tally_object_copy_descriptor(found->fd, found->path, &entry->object, NULL);
	else
		rc = tally_object_open_descriptor(found->fd, found->path, &entry->object, NULL);
	if (rc < 0)
		entry->object = NULL;
	if (rc == -ENOMEM)
		entry->lack = rc;
	if (entry->object && copies) {
		entry->copied_bytes = (size_t)status.st_size;
		objects->copied_bytes += entry->copied_bytes;
	}
	entry->root = found->root;
	found->root = NULL;
	tally_live_file_release(found);
}

/* The events need most of the descriptors that a process may have. */
enum { HELD_MAX = 128 };

/* `may_wait`: a file that would have to be read as a whole is only held. */
static void open_live(struct tally_objects *objects, const struct tally_tasks *tasks,
		      struct tally_object_entry *entry, const struct tally_mapped_file *file,
		      const char *path, bool may_wait)
{
	struct tally_live_file found;
	if (!tally_live_find(tasks, file, path, &found))
		return;
	if (!may_wait || tally_object_is_mappable(found.fd, found.path)) {
		open_found(objects, entry, &found);
	} else if (objects->held_count < HELD_MAX) {
		entry->held = found;
		entry->state = TALLY_OBJECT_HELD;
		objects->held_count++;
	} else {
		entry->state = TALLY_OBJECT_UNTRIED;
		tally_live_file_release(&found);
	}
}

/* ---- recorded ------------------------------------------------------------ */

static bool is_of_arch(const struct tally_object *object, enum tally_arch arch)
{
	unsigned machine = tally_object_machine(object);
	switch (arch) {
	case TALLY_ARCH_X86_64:
	case TALLY_ARCH_I386: return machine == EM_X86_64 || machine == EM_386;
	case TALLY_ARCH_ARM64:
	case TALLY_ARCH_ARM: return machine == EM_AARCH64 || machine == EM_ARM;
	case TALLY_ARCH_RISCV: return machine == EM_RISCV;
	case TALLY_ARCH_POWERPC: return machine == EM_PPC64 || machine == EM_PPC;
	case TALLY_ARCH_S390: return machine == EM_S390;
	case TALLY_ARCH_UNKNOWN: break;
	}
	return true;
}

static void drop_other_arch(const struct tally_objects *objects, struct tally_object_entry *entry)
{
	if (!entry->object || is_of_arch(entry->object, objects->arch))
		return;
	tally_object_unref(entry->object);
	entry->object = NULL;
}

static void drop_unbelieved(const struct tally_objects *objects, const struct tally_tasks *tasks,
			    struct tally_object_entry *entry, const struct tally_mapped_file *file,
			    bool is_vouched_for)
{
	enum tally_file_identity identity = TALLY_FILE_SAME;
	if (entry->object)
		identity = tally_file_believe(tasks, file, entry->object, &objects->times,
					      is_vouched_for);
	if (identity == TALLY_FILE_SAME)
		return;
	tally_object_unref(entry->object);
	entry->object = NULL;
	entry->difference = identity;
	entry->state = TALLY_OBJECT_CHANGED;
}

static void open_recorded(struct tally_objects *objects, const struct tally_tasks *tasks,
			  struct tally_object_entry *entry, const struct tally_mapped_file *file,
			  const char *path)
{
	struct tally_live_file found;
	int rc = tally_search_open(&objects->search, path, &entry->object);
	if (rc < 0)
		entry->object = NULL;
	if (rc == -ENOMEM)
		entry->lack = rc;
	drop_other_arch(objects, entry); /* the path may lead to this machine's file */
	drop_unbelieved(objects, tasks, entry, file, objects->search.root);
	if (!entry->object)
		entry->object = tally_search_by_build_id(&objects->search, &file->build_id);
	/* Without a build-id this could be another process's file: pids are reused. */
	if (!entry->object && !objects->is_foreign && (file->build_id.size || file->inode) &&
	    tally_live_find(tasks, file, path, &found)) {
		open_found(objects, entry, &found);
		drop_unbelieved(objects, tasks, entry, file, false);
	}
}

/* ---- fetched ------------------------------------------------------------- */

int tally_objects_keep_fetched(struct tally_objects *objects, const struct tally_build_id *id,
			       struct tally_object *object, struct tally_object *debug)
{
	const struct tally_fetched_object fetched = { .id = *id, .object = object, .debug = debug };
	if (tally_vector_push(&objects->fetched, fetched) < 0)
		return -ENOMEM;
	if (object)
		tally_object_ref(object);
	if (debug)
		tally_object_ref(debug);
	return 0;
}

const struct tally_fetched_object *tally_objects_fetched(const struct tally_objects *objects,
							 const struct tally_build_id *id)
{
	for (size_t i = 0; id->size && i < objects->fetched.count; i++)
		if (tally_build_id_equal(&objects->fetched.items[i].id, id))
			return &objects->fetched.items[i];
	return NULL;
}

static const struct tally_fetched_object *fetched_of(const struct tally_objects *objects,
						     const struct tally_mapped_file *file,
						     const char *path)
{
	for (size_t i = 0; i < objects->fetched.count; i++) {
		const struct tally_fetched_object *fetched = &objects->fetched.items[i];
		if (fetched->path && fetched->inode == file->inode &&
		    fetched->major == file->major && fetched->minor == file->minor &&
		    fetched->inode_generation == file->inode_generation &&
		    (!fetched->id.size || is_build(&fetched->id, &file->build_id)) &&
		    !strcmp(fetched->path, path))
			return fetched;
	}
	return tally_objects_fetched(objects, &file->build_id);
}

/* Uses what the recorder opened. */
static void open_fetched(struct tally_objects *objects, struct tally_object_entry *entry,
			 const struct tally_mapped_file *file, const char *path)
{
	const struct tally_fetched_object *fetched = fetched_of(objects, file, path);
	if (!fetched)
		return;
	if (fetched->is_overwritten) {
		entry->state = TALLY_OBJECT_CHANGED;
		entry->difference = TALLY_FILE_WRITTEN_LATER;
		return;
	}
	if (fetched->object)
		entry->object = tally_object_ref(fetched->object);
	else if (fetched->held.path &&
		 tally_object_open_descriptor(fetched->held.fd, fetched->held.path, &entry->object,
					      NULL) < 0)
		entry->object = NULL;
}

static void use_fetched_debug(const struct tally_objects *objects,
			      struct tally_object_entry *entry)
{
	const struct tally_fetched_object *fetched = tally_objects_fetched(
		objects, tally_object_build_id(entry->object));
	if (fetched && fetched->debug) {
		entry->debug = tally_object_ref(fetched->debug);
		entry->debug_tried = true;
	}
}

static void open_vdso(const struct tally_objects *objects, struct tally_object_entry *entry,
		      const struct tally_mapped_file *file, const char *path)
{
	size_t size;
	const void *image = tally_vdso_image(&size);
	int rc = 0;
	if (image && (file->build_id.size || !objects->is_foreign))
		rc = tally_object_open_memory(path, image, size, &entry->object, NULL);
	if (rc < 0)
		entry->object = NULL;
	if (rc == -ENOMEM)
		entry->lack = rc;
	drop_other_arch(objects, entry);
	if (entry->object && !is_build(tally_object_build_id(entry->object), &file->build_id)) {
		tally_object_unref(entry->object);
		entry->object = tally_search_by_build_id(&objects->search, &file->build_id);
		entry->difference = TALLY_FILE_OTHER_BUILD;
		entry->state = TALLY_OBJECT_CHANGED;
	}
}

/* While recording: copies the vdso of a 32-bit process from its memory. */
static void open_vdso32(const struct tally_objects *objects, struct tally_object_entry *entry,
			const struct tally_mapped_file *file)
{
	enum { BYTES_MAX = 16 << 10 };
	uint8_t image[BYTES_MAX];
	uint64_t size = file->seen.end - file->seen.start;
	if (!objects->made_code)
		return;
	size = tally_made_code_read(objects->made_code, file->seen.pid, file->seen.start, image,
				    size < BYTES_MAX ? size : BYTES_MAX);
	if (!size ||
	    tally_object_open_memory(TALLY_VDSO32, image, size, &entry->object, NULL) < 0)
		entry->object = NULL;
	drop_other_arch(objects, entry);
}

static void open_entry(struct tally_objects *objects, const struct tally_tasks *tasks,
		       struct tally_object_entry *entry, const struct tally_mapped_file *file,
		       const char *path, bool may_wait)
{
	entry->search = &objects->search;
	entry->state = TALLY_OBJECT_NO_FILE;
	if (file->is_kernel || file->pid)
		return;
	entry->state = TALLY_OBJECT_MISSING;
	entry->tried_pid = file->seen.pid;
	entry->tries++;
	open_fetched(objects, entry, file, path);
	if (entry->object || entry->state == TALLY_OBJECT_CHANGED)
		;
	else if (!strcmp(path, "[vdso]"))
		open_vdso(objects, entry, file, path);
	else if (!strcmp(path, TALLY_VDSO32))
		open_vdso32(objects, entry, file);
	else if (path[0] == '/' && objects->is_live)
		open_live(objects, tasks, entry, file, path, may_wait);
	else if (path[0] == '/')
		open_recorded(objects, tasks, entry, file, path);
	if (entry->object)
		use_fetched_debug(objects, entry);
	if (entry->object)
		entry->state = TALLY_OBJECT_OPEN;
}

/* Finds where functions begin, for code without rules.  Most objects never need it. */
struct tally_entry_functions {
	const struct tally_object *object;
	struct tally_symbols *symbols; /* NULL: none, or not tried */
	bool is_tried;
	struct tally_unwind_table *rules; /* the table that uses this */
};

static void close_entry(struct tally_objects *objects, struct tally_object_entry *entry)
{
	objects->copied_bytes -= entry->copied_bytes;
	if (entry->held.path) {
		tally_live_file_release(&entry->held);
		objects->held_count--;
	}
	tally_unwind_table_free(entry->unwind);
	if (entry->functions)
		tally_symbols_free(entry->functions->symbols);
	free(entry->functions);
	tally_object_unref(entry->object);
	tally_object_unref(entry->debug);
	free(entry->root);
	*entry = (struct tally_object_entry){ 0 };
}

static void release_fetched_file(struct tally_fetched_object *fetched)
{
	if (fetched->held.path)
		tally_live_file_release(&fetched->held);
	free(fetched->path);
}

/* True if the file was written since it was opened. */
static bool is_written_anew(const struct tally_object_entry *entry)
{
	const struct tally_object_file *file = NULL;
	if (entry->object)
		file = tally_object_file(entry->object);
	struct stat now;
	if (!file || !file->inode || stat(tally_object_path(entry->object), &now) < 0 ||
	    now.st_ino != file->inode || makedev(file->major, file->minor) != now.st_dev)
		return false;
	return (uint64_t)now.st_size != file->size ||
	       (uint64_t)now.st_mtim.tv_sec * UINT64_C(1000000000) +
			       (uint64_t)now.st_mtim.tv_nsec !=
		       file->written_ns;
}

static int hand_over_entry(struct tally_object_entry *entry, const struct tally_mapped_file *file,
			   const char *path, struct tally_objects *to)
{
	struct tally_fetched_object fetched = {
		.id = file->build_id.size ? file->build_id : *tally_objects_build_id(entry),
		.path = strdup(path),
		.major = file->major,
		.minor = file->minor,
		.inode = file->inode,
		.inode_generation = file->inode_generation,
		.object = entry->object,
		.held = entry->held,
		.is_overwritten = entry->is_ambiguous ||
				  (!entry->copied_bytes && is_written_anew(entry)),
	};
	if (!fetched.path || tally_vector_push(&to->fetched, fetched) < 0) {
		free(fetched.path);
		return -ENOMEM;
	}
	/* Leaves one owner: another thread may use `to`. */
	entry->object = NULL;
	entry->held = (struct tally_live_file){ 0 };
	return 0;
}

int tally_objects_hand_over(struct tally_objects *from, const struct tally_tasks *tasks,
			    struct tally_objects *to)
{
	int result = 0;
	for (uint32_t i = 0; i < from->entries.count; i++) {
		struct tally_object_entry *entry = &from->entries.items[i];
		const char *path = tally_tasks_path(tasks, i);
		if (path[0] == '/' && (entry->object || entry->held.path))
			result = hand_over_entry(entry, &tasks->files.items[i], path, to);
		close_entry(from, entry);
		if (result)
			break;
	}
	from->open.count = 0;
	return result;
}

int tally_objects_share(const struct tally_objects *from, struct tally_objects *to)
{
	for (size_t i = 0; i < from->fetched.count; i++) {
		struct tally_fetched_object shared = from->fetched.items[i];
		const struct tally_live_file *held = &from->fetched.items[i].held;
		bool is_held = held->path != NULL;
		if (shared.path)
			shared.path = strdup(shared.path);
		shared.held = (struct tally_live_file){ 0 };
		if (is_held) {
			shared.held.path = strdup(held->path);
			shared.held.fd = fcntl(held->fd, F_DUPFD_CLOEXEC, 3);
		}
		bool is_whole = !from->fetched.items[i].path == !shared.path &&
				(!is_held || (shared.held.path && shared.held.fd >= 0));
		if (!is_whole || tally_vector_push(&to->fetched, shared) < 0) {
			release_fetched_file(&shared);
			return -ENOMEM;
		}
		if (shared.object)
			tally_object_ref(shared.object);
		if (shared.debug)
			tally_object_ref(shared.debug);
	}
	return 0;
}

/* A file that was written in place has the inode that it had.  Without a build-id, the recording
 * can't tell the old code from the new, so neither gets names.  Stacks need the new code. */
static void look_again(struct tally_objects *objects, const struct tally_tasks *tasks,
		       uint32_t file, struct tally_object_entry *entry)
{
	const struct tally_mapped_file *mapped = &tasks->files.items[file];
	if (mapped->build_id.size || !mapped->inode || !is_written_anew(entry))
		return;
	close_entry(objects, entry);
	open_entry(objects, tasks, entry, mapped, tally_tasks_path(tasks, file), false);
	entry->is_ambiguous = true;
	if (objects->unwind_cache)
		tally_unwind_cache_clear(objects->unwind_cache);
}

/* `may_wait`: the file is not needed now. */
static struct tally_object_entry *get(struct tally_objects *objects,
				      const struct tally_tasks *tasks, uint32_t file, bool may_wait)
{
	enum { TRIES_MAX = 16 };
	static struct tally_object_entry none = { .state = TALLY_OBJECT_NO_FILE };
	if (file >= tasks->files.count)
		return &none;
	while (objects->entries.count <= file)
		if (tally_vector_push(&objects->entries, (struct tally_object_entry){ 0 }) < 0)
			return NULL;
	struct tally_object_entry *entry = &objects->entries.items[file];
	const struct tally_mapped_file *mapped = &tasks->files.items[file];
	bool again = entry->state == TALLY_OBJECT_MISSING && objects->is_live &&
		     entry->tried_pid != mapped->seen.pid && entry->tries < TRIES_MAX;
	entry->used = objects->rounds;
	if (entry->state == TALLY_OBJECT_HELD && !may_wait) {
		objects->held_count--;
		open_found(objects, entry, &entry->held);
		entry->state = entry->object ? TALLY_OBJECT_OPEN : TALLY_OBJECT_MISSING;
	}
	if (entry->state != TALLY_OBJECT_UNTRIED && !again)
		return entry;
	open_entry(objects, tasks, entry, mapped, tally_tasks_path(tasks, file), may_wait);
	if ((entry->object || entry->held.path) && tally_vector_push(&objects->open, file) < 0) {
		close_entry(objects, entry);
		return NULL;
	}
	return entry;
}

struct tally_object_entry *tally_objects_get(struct tally_objects *objects,
					     const struct tally_tasks *tasks, uint32_t file)
{
	return get(objects, tasks, file, false);
}

void tally_objects_record(struct tally_objects *objects, const struct tally_tasks *tasks,
			  const struct tally_record *record)
{
	bool is_map = record->header.type == TALLY_RECORD_MMAP ||
		      record->header.type == TALLY_RECORD_MMAP2;
	const struct tally_mapping *mapping = NULL;
	if (is_map)
		mapping = tally_tasks_find(tasks, record->mmap.pid, false, record->mmap.start);
	if (!objects->is_live || !mapping || !mapping->executable)
		return;
	if (tasks->files.items[mapping->file].pid ||
	    tally_tasks_path(tasks, mapping->file)[0] != '/')
		return;
	struct tally_object_entry *entry = get(objects, tasks, mapping->file, true);
	if (entry && entry->state == TALLY_OBJECT_OPEN)
		look_again(objects, tasks, mapping->file, entry);
}

struct tally_object *tally_objects_debug(struct tally_object_entry *entry)
{
	if (!entry->debug_tried && entry->object) {
		struct tally_object_search search = { 0 };
		if (entry->search)
			search = *entry->search;
		if (entry->root)
			search.root = entry->root;
		entry->debug = tally_search_debug(&search, entry->object, &entry->lack);
	}
	entry->debug_tried = true;
	return entry->debug;
}

/* Recognises functions in Go's runtime/asm_amd64.s that run something on the thread's own stack.
 * mcall() leaves a goroutine, for the scheduler; systemstack() and morestack() work for it and
 * return to it.  A goroutine's outermost frame is in goexit(). */
static enum tally_unwind_function_kind kind_of(const char *name)
{
	static const struct {
		const char *name;
		enum tally_unwind_function_kind kind;
	} switches[] = {
		{ "runtime.systemstack", TALLY_UNWIND_STACK_SWITCH },
		{ "runtime.morestack", TALLY_UNWIND_STACK_SWITCH },
		{ "runtime.mcall", TALLY_UNWIND_STACK_START },
		{ "runtime.goexit", TALLY_UNWIND_STACK_START },
	};
	for (size_t i = 0; i < sizeof(switches) / sizeof(*switches); i++) {
		size_t length = strlen(switches[i].name);
		if (!strncmp(name, switches[i].name, length) &&
		    (!name[length] || !strcmp(name + length, ".abi0")))
			return switches[i].kind;
	}
	return TALLY_UNWIND_FUNCTION;
}

/* False for large tables: sorting node's 150,000 symbols takes as long as a ring takes to fill.
 * Go's tables are always read, since otherwise its stack switches look like calls. */
static bool may_read_symbols(const struct tally_object *object)
{
	const size_t most_bytes = 1 << 20;
	struct tally_section section;
	return !tally_object_section(object, ".symtab", &section) || section.size <= most_bytes ||
	       tally_object_go_table(object, &section);
}

bool tally_objects_function_at(struct tally_unwind_table *rules,
			       const struct tally_symbols *symbols, uint64_t address,
			       const struct tally_symbol **symbol, uint64_t *end)
{
	enum { FUNCTION_ALIGNMENT = 16 };
	uint64_t start;
	if (!*symbol)
		return false;
	*end = (*symbol)->end;
	if ((*symbol)->is_sized || !rules ||
	    !tally_unwind_table_extent(rules, (*symbol)->start, &start, end))
		return true;
	const struct tally_symbol *around = NULL;
	if (start < (*symbol)->start && (*symbol)->is_label)
		around = tally_symbols_find(symbols, start);
	if (around && around->start == start)
		*symbol = around;
	else if ((*symbol)->end < *end)
		*end = (*symbol)->end;
	/* The kernel's samples in a function that ends in a system call, such as __restore_rt, have
	 * the address behind it: the first byte of the padding before the next function. */
	if (address == *end && address < (*symbol)->end &&
	    (*symbol)->end - address < FUNCTION_ALIGNMENT)
		*end = address + 1;
	if (address >= *end)
		*symbol = NULL;
	return *symbol;
}

/* The part that a compiler split off a function (f.cold) does not begin like a function, and is not
 * reported as one. */
static enum tally_unwind_function_kind find_function(void *context, uint64_t address,
						     uint64_t *start, uint64_t *end)
{
	struct tally_entry_functions *functions = context;
	if (!functions->is_tried && may_read_symbols(functions->object) &&
	    tally_symbols_from_object(functions->object, NULL, &functions->symbols, NULL) < 0)
		functions->symbols = NULL;
	functions->is_tried = true;
	const struct tally_symbol *symbol = NULL;
	if (functions->symbols)
		symbol = tally_symbols_find(functions->symbols, address);
	if (!tally_objects_function_at(functions->rules, functions->symbols, address, &symbol,
				       end) ||
	    strstr(symbol->name, ".cold"))
		return TALLY_UNWIND_NO_FUNCTION;
	*start = symbol->start;
	enum tally_unwind_function_kind kind = kind_of(symbol->name);
	if (kind == TALLY_UNWIND_FUNCTION && !symbol->is_sized)
		return TALLY_UNWIND_LABEL;
	return kind;
}

static void use_functions(struct tally_object_entry *entry)
{
	entry->functions = calloc(1, sizeof(*entry->functions));
	if (!entry->functions)
		return; /* optional */
	entry->functions->object = entry->object;
	entry->functions->rules = entry->unwind;
	tally_unwind_table_use_functions(entry->unwind, find_function, entry->functions);
}

struct tally_unwind_table *tally_objects_unwind(struct tally_object_entry *entry)
{
	if (!entry->unwind_tried && entry->object) {
		/* .eh_frame is enough for nearly all objects; open the debug file only without
		 * it. */
		struct tally_section section;
		bool has = tally_object_section(entry->object, ".eh_frame", &section) &&
			   section.bytes;
		if (tally_unwind_table_new(entry->object, has ? NULL : tally_objects_debug(entry),
					   &entry->unwind, NULL) < 0)
			entry->unwind = NULL;
		if (entry->unwind)
			use_functions(entry);
	}
	entry->unwind_tried = true;
	return entry->unwind;
}

const struct tally_build_id *tally_objects_build_id(const struct tally_object_entry *entry)
{
	if (entry->object)
		return tally_object_build_id(entry->object);
	return &entry->build_id;
}

const struct tally_build_id *tally_objects_file_build_id(struct tally_objects *objects,
							 const struct tally_tasks *tasks,
							 uint32_t file)
{
	struct tally_object_entry *entry = NULL;
	if (file < objects->entries.count)
		entry = &objects->entries.items[file];
	struct tally_object_file unused;
	if (file < tasks->files.count && tasks->files.items[file].build_id.size)
		return &tasks->files.items[file].build_id;
	if (entry && entry->state == TALLY_OBJECT_HELD)
		tally_object_look(entry->held.fd, &unused, &entry->build_id);
	else if (!entry || !entry->build_id.size)
		entry = tally_objects_get(objects, tasks, file);
	if (!entry)
		return NULL;
	return tally_objects_build_id(entry);
}

/* ---- for hours ----------------------------------------------------------- */

static size_t entry_bytes(const struct tally_object_entry *entry)
{
	const size_t libelf_bytes = 8 << 10; /* estimate for its sections */
	return libelf_bytes + (entry->unwind ? tally_unwind_table_bytes(entry->unwind) : 0);
}

static int by_use(const void *a, const void *b, void *context)
{
	const struct tally_object_entry *entries = context;
	const uint32_t *x = a, *y = b;
	uint64_t used_x = entries[*x].used, used_y = entries[*y].used;
	if (used_x != used_y)
		return (used_x > used_y) - (used_x < used_y);
	return (*x > *y) - (*x < *y);
}

static size_t file_bytes(const struct tally_object_entry *entry)
{
	size_t size = 0;
	if (entry->object)
		tally_object_image(entry->object, &size);
	return size;
}

/* True if the figures are within 1/`part` of the budget. */
static bool is_within(const struct tally_objects_budget *budget, size_t part, size_t bytes,
		      size_t mapped, size_t objects)
{
	return (!budget->bytes || bytes <= budget->bytes / part) &&
	       (!budget->mapped || mapped <= budget->mapped / part) &&
	       (!budget->objects || objects <= budget->objects / part);
}

void tally_objects_trim(struct tally_objects *objects, const struct tally_objects_budget *budget)
{
	size_t bytes = 0, mapped = 0, count = objects->open.count, closed = 0;
	objects->rounds++;
	for (size_t i = 0; i < count; i++) {
		bytes += entry_bytes(&objects->entries.items[objects->open.items[i]]);
		mapped += file_bytes(&objects->entries.items[objects->open.items[i]]);
	}
	if (is_within(budget, 1, bytes, mapped, count))
		return;
	/* Close down to half of the budget, to trim less often: rules still in use must be read
	 * again each time. */
	qsort_r(objects->open.items, count, sizeof(*objects->open.items), by_use,
		objects->entries.items);
	while (closed < count && !is_within(budget, 2, bytes, mapped, count - closed)) {
		struct tally_object_entry *entry =
			&objects->entries.items[objects->open.items[closed++]];
		struct tally_build_id build_id = *tally_objects_build_id(entry);
		bytes -= entry_bytes(entry);
		mapped -= file_bytes(entry);
		close_entry(objects, entry);
		entry->build_id = build_id;
	}
	objects->open.count = count - closed;
	memmove(objects->open.items, objects->open.items + closed,
		objects->open.count * sizeof(*objects->open.items));
	if (objects->unwind_cache)
		tally_unwind_cache_clear(objects->unwind_cache);
}

/* Moves the entries to their files' new numbers. */
static void renumber(struct tally_objects *objects, const uint32_t *numbers)
{
	size_t count = 0, open_count = 0;
	for (size_t i = 0; i < objects->open.count; i++)
		if (numbers[objects->open.items[i]] != TALLY_FILE_NONE)
			objects->open.items[open_count++] = numbers[objects->open.items[i]];
	objects->open.count = open_count;
	for (size_t i = 0; i < objects->entries.count; i++) {
		if (numbers[i] == TALLY_FILE_NONE)
			close_entry(objects, &objects->entries.items[i]);
		else
			objects->entries.items[count++] = objects->entries.items[i];
	}
	objects->entries.count = count;
	if (objects->unwind_cache)
		tally_unwind_cache_clear(objects->unwind_cache);
}

int tally_objects_forget(struct tally_objects *objects, struct tally_tasks *tasks, size_t limit,
			 int (*report)(void *context, const char *path,
				       const struct tally_build_id *id),
			 void *context)
{
	size_t at_least = limit;
	if (objects->files_kept > limit)
		at_least = objects->files_kept;
	if (tasks->files.count <= at_least + limit / 16 || tasks->jits)
		return 0;
	uint32_t *numbers = tally_mapped_files_choose(tasks, limit);
	if (!numbers)
		return -ENOMEM;
	int result = 0;
	for (uint32_t i = 0; report && i < tasks->files.count; i++) {
		if (numbers[i] != TALLY_FILE_NONE)
			continue;
		const struct tally_build_id *id = tally_objects_file_build_id(objects, tasks, i);
		if (id && id->size)
			result = report(context, tally_tasks_path(tasks, i), id);
		if (result)
			goto out;
	}
	result = tally_mapped_files_renumber(tasks, numbers);
	if (result)
		goto out;
	renumber(objects, numbers);
	objects->files_kept = tasks->files.count;
out:
	free(numbers);
	return result;
}

void tally_objects_release(struct tally_objects *objects)
{
	tally_unwind_cache_free(objects->unwind_cache);
	objects->unwind_cache = NULL;
	for (size_t i = 0; i < objects->entries.count; i++)
		close_entry(objects, &objects->entries.items[i]);
	for (size_t i = 0; i < objects->fetched.count; i++) {
		tally_object_unref(objects->fetched.items[i].object);
		tally_object_unref(objects->fetched.items[i].debug);
		release_fetched_file(&objects->fetched.items[i]);
	}
	tally_vector_release(&objects->fetched);
	tally_vector_release(&objects->entries);
	tally_vector_release(&objects->open);
}
