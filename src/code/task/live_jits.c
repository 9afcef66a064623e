/* A process may write anything into its dump, and as much as it likes.
 *
 * A pass reads a bounded number of bytes of a dump; the rest waits for the next pass.  A dump whose
 * places and rules take too much memory is dropped, and its code is unwound as without a dump.
 * Rules are compiled for functions that are met.  When there are too many, all are freed.
 *
 * The unwinder remembers none of these answers (is_brief): samples come CPU by CPU, not in order of
 * time, and a place holds from its time on.
 */
#include "task/jit.h"

#include "base/buffer.h"
#include "base/map.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	DUMPS_MAX = 64,
	HEIRS_MAX = 1024,
	WINDOW_BYTES = 256 << 10,
	PASS_BYTES = 16 << 20,   /* of one dump in a pass */
	RECORD_BYTES = 16 << 20, /* a larger one is left out */
	ALL_BYTES = 128 << 20,   /* of all dumps together */
	FRAME_BYTES = 64 << 10,  /* of a function's rules */
	TABLE_BYTES = 512,
	TABLES_BYTES = 4 << 20, /* of a dump's compiled rules, before they are compiled */
	CODES = 1024,
};

struct live_jit {
	uint32_t
		pid; /* 0: it has ended or runs another program, and forked children have the code */
	int fd;
	uint64_t inode, device, number; /* `number` differs from those of all earlier dumps */
	uint64_t at;                    /* how many bytes were read */
	uint64_t wanted;                /* a smaller file has nothing new to read */
	uint64_t pass;
	struct tally_jit_growth *growth;
	struct tally_map tables; /* number of a function → its struct tally_unwind_table */
	size_t tables_bytes;
};

/* A forked child, which has the code that its parent's dump described until then. */
struct live_heir {
	uint32_t pid;
	uint64_t dump; /* its number */
	uint64_t until_ns;
};

/* Some bytes of a function's code, as the dump has them. */
struct live_code {
	uint64_t dump, function, offset; /* dump 0: none */
	uint8_t bytes[8];
	size_t size;
};

struct tally_live_jits {
	struct {
		struct live_jit *items;
		size_t count, capacity;
	} items;
	struct {
		struct live_heir *items;
		size_t count, capacity;
	} heirs;
	uint64_t pass, numbers;
	struct tally_buffer window;
	struct live_code *codes; /* made on first use */
};

struct tally_live_jits *tally_live_jits_new(void)
{
	struct tally_live_jits *jits = calloc(1, sizeof(*jits));
	if (jits)
		jits->pass = 1;
	return jits;
}

static void free_tables(struct live_jit *jit)
{
	for (size_t i = 0; i < jit->tables.capacity; i++)
		if (jit->tables.slots[i].used)
			tally_unwind_table_free(
				(struct tally_unwind_table *)(uintptr_t)jit->tables.slots[i].value);
	tally_map_release(&jit->tables);
	jit->tables = (struct tally_map){ 0 };
	jit->tables_bytes = 0;
}

static void release(struct live_jit *jit)
{
	free_tables(jit);
	tally_jit_growth_free(jit->growth);
	close(jit->fd);
}

void tally_live_jits_free(struct tally_live_jits *jits)
{
	if (!jits)
		return;
	for (size_t i = 0; i < jits->items.count; i++)
		release(&jits->items.items[i]);
	tally_vector_release(&jits->items);
	tally_vector_release(&jits->heirs);
	tally_buffer_release(&jits->window);
	free(jits->codes);
	free(jits);
}

/* ---- which dumps there are ----------------------------------------------- */

static void drop(struct tally_live_jits *jits, size_t at)
{
	uint64_t number = jits->items.items[at].number;
	for (size_t i = jits->heirs.count; i-- > 0;)
		if (jits->heirs.items[i].dump == number)
			jits->heirs.items[i] = jits->heirs.items[--jits->heirs.count];
	release(&jits->items.items[at]);
	jits->items.items[at] = jits->items.items[--jits->items.count];
}

static bool has_heirs(const struct tally_live_jits *jits, const struct live_jit *jit)
{
	for (size_t i = 0; i < jits->heirs.count; i++)
		if (jits->heirs.items[i].dump == jit->number)
			return true;
	return false;
}

/* Returns the time up to which the dump describes the process's code; 0: it doesn't. */
static uint64_t until(const struct tally_live_jits *jits, const struct live_jit *jit, uint32_t pid)
{
	if (pid && jit->pid == pid)
		return UINT64_MAX;
	for (size_t i = 0; i < jits->heirs.count; i++)
		if (jits->heirs.items[i].pid == pid && jits->heirs.items[i].dump == jit->number)
			return jits->heirs.items[i].until_ns;
	return 0;
}

static void forget(struct tally_live_jits *jits, uint32_t pid)
{
	for (size_t i = jits->heirs.count; i-- > 0;)
		if (jits->heirs.items[i].pid == pid)
			jits->heirs.items[i] = jits->heirs.items[--jits->heirs.count];
	for (size_t i = jits->items.count; i-- > 0;) {
		struct live_jit *jit = &jits->items.items[i];
		if (jit->pid == pid)
			jit->pid = 0;
		if (!jit->pid && !has_heirs(jits, jit))
			drop(jits, i);
	}
}

/* Without memory, the child's code is unwound as without a dump. */
static void inherit(struct tally_live_jits *jits, const struct tally_record_task *fork)
{
	for (size_t i = 0; i < jits->items.count && jits->heirs.count < HEIRS_MAX; i++) {
		const struct live_jit *jit = &jits->items.items[i];
		uint64_t limit = until(jits, jit, fork->parent_pid);
		struct live_heir heir = {
			.pid = fork->pid, .dump = jit->number, .until_ns = limit
		};
		if (fork->time < limit)
			heir.until_ns = fork->time;
		if (limit && tally_vector_push(&jits->heirs, heir) < 0)
			return;
	}
}

static bool is_known(const struct tally_live_jits *jits, uint32_t pid, const struct stat *file)
{
	for (size_t i = 0; i < jits->items.count; i++) {
		const struct live_jit *jit = &jits->items.items[i];
		if (jit->pid == pid && jit->inode == file->st_ino && jit->device == file->st_dev)
			return true;
	}
	return false;
}

static void open_dump(struct tally_live_jits *jits, const struct tally_record_mmap *mmap)
{
	struct live_jit jit = { .pid = mmap->pid, .number = ++jits->numbers };
	struct tally_jit_gaps gaps;
	struct stat file = { 0 };
	size_t *gap;
	if (jits->items.count >= DUMPS_MAX)
		return;
	jit.fd = tally_jit_open(mmap, &gaps, &gap);
	if (jit.fd < 0)
		return;
	bool is_new = !fstat(jit.fd, &file) && !is_known(jits, mmap->pid, &file);
	jit.inode = file.st_ino;
	jit.device = file.st_dev;
	jit.growth = is_new ? tally_jit_growth_new() : NULL;
	if (!jit.growth || tally_vector_push(&jits->items, jit) < 0)
		release(&jit);
}

void tally_live_jits_record(struct tally_live_jits *jits, const struct tally_record *record)
{
	const struct tally_record_header *header = &record->header;
	const uint32_t executable = 4; /* PROT_EXEC */
	switch (header->type) {
	case TALLY_RECORD_MMAP2:
		if (record->mmap.protection & executable &&
		    tally_jits_is_dump(record->mmap.filename))
			open_dump(jits, &record->mmap);
		break;
	case TALLY_RECORD_COMM:
		if (header->misc & TALLY_MISC_COMM_EXEC)
			forget(jits, record->comm.pid);
		break;
	case TALLY_RECORD_FORK:
		if (record->task.pid == record->task.parent_pid)
			break;
		forget(jits, record->task.pid);
		inherit(jits, &record->task);
		break;
	}
}

void tally_live_jits_pass(struct tally_live_jits *jits, const struct tally_tasks *tasks)
{
	jits->pass++;
	for (size_t i = jits->heirs.count; i-- > 0;)
		if (i < jits->heirs.count &&
		    !tally_map_get(&tasks->process_index, jits->heirs.items[i].pid))
			forget(jits, jits->heirs.items[i].pid);
	for (size_t i = jits->items.count; i-- > 0;)
		if (i < jits->items.count && jits->items.items[i].pid &&
		    !tally_map_get(&tasks->process_index, jits->items.items[i].pid))
			forget(jits, jits->items.items[i].pid);
}

bool tally_live_jits_has(const struct tally_live_jits *jits, uint32_t pid)
{
	for (size_t i = 0; i < jits->items.count; i++)
		if (until(jits, &jits->items.items[i], pid))
			return true;
	return false;
}

/* ---- reading ------------------------------------------------------------- */

/* A window of the dump that has at least `wanted` bytes, if they are there.  Returns the bytes that
 * it has, or -1. */
static ssize_t read_window(struct tally_live_jits *jits, const struct live_jit *jit, size_t wanted)
{
	size_t size = WINDOW_BYTES;
	if (wanted > WINDOW_BYTES)
		size = wanted;
	tally_buffer_clear(&jits->window);
	char *room = tally_buffer_room(&jits->window, size);
	if (!room)
		return -1;
	return pread(jit->fd, room, size, (off_t)jit->at);
}

/* Reads and parses one window.  Returns false when the dump can't be used any longer. */
static bool read_piece(struct tally_live_jits *jits, struct live_jit *jit, bool *is_more)
{
	uint64_t needed = 0;
	if (jit->wanted > jit->at)
		needed = jit->wanted - jit->at;
	size_t read, wanted;
	*is_more = false;
	if (needed > RECORD_BYTES) {
		tally_jit_growth_skip(jit->growth, (size_t)needed);
		jit->at += needed;
		*is_more = true;
		return true;
	}
	ssize_t size = read_window(jits, jit, (size_t)needed);
	if (size < 0 || tally_jit_growth_read(jit->growth, jits->window.bytes, (size_t)size, &read,
					      &wanted) < 0)
		return false;
	jit->at += read;
	jit->wanted = jit->at + (wanted ? wanted : 1);
	*is_more = read || wanted > (size_t)size;
	return true;
}

/* Reads what is new, but not too much at once.  Returns false when the dump can't be used any
 * longer. */
static bool catch_up(struct tally_live_jits *jits, struct live_jit *jit)
{
	struct stat file;
	uint64_t from = jit->at;
	bool is_more = true;
	if (fstat(jit->fd, &file) < 0 || (uint64_t)file.st_size < jit->at)
		return false;
	while (is_more && (uint64_t)file.st_size > jit->at &&
	       (uint64_t)file.st_size >= jit->wanted && jit->at - from < PASS_BYTES)
		if (!read_piece(jits, jit, &is_more))
			return false;
	if (jits->window.capacity > WINDOW_BYTES * 2)
		tally_buffer_release(&jits->window);
	return true;
}

static bool is_too_much(const struct tally_live_jits *jits)
{
	size_t bytes = 0;
	for (size_t i = 0; i < jits->items.count; i++)
		bytes += tally_jit_growth_bytes(jits->items.items[i].growth);
	return bytes > ALL_BYTES;
}

/* Returns true if the dump's places have changed, or the dump was dropped. */
static bool look(struct tally_live_jits *jits, size_t at)
{
	struct live_jit *jit = &jits->items.items[at];
	size_t before = tally_jit_growth_places(jit->growth);
	jit->pass = jits->pass;
	if (jit->tables_bytes > TABLES_BYTES)
		free_tables(jit);
	bool is_of_use = catch_up(jits, jit);
	if (is_of_use && tally_jit_growth_places(jit->growth) == before)
		return false;
	if (!is_of_use || is_too_much(jits))
		drop(jits, at);
	return true;
}

void tally_live_jits_look(struct tally_live_jits *jits, struct tally_tasks *tasks, uint32_t pid)
{
	bool is_changed = false;
	for (size_t i = jits->items.count; i-- > 0;) {
		const struct live_jit *jit = &jits->items.items[i];
		if (jit->pass != jits->pass && until(jits, jit, pid))
			is_changed |= look(jits, i);
	}
	if (is_changed)
		tally_tasks_remapped(tasks, pid);
}

/* ---- finding ------------------------------------------------------------- */

/* Returns NULL without rules, with too many in one function, or when the tables take too much
 * memory; look() then frees them. */
static struct tally_unwind_table *table_of(struct live_jit *jit,
					   const struct tally_jit_grown *grown)
{
	bool is_new = false;
	size_t size = grown->function->eh_frame_size;
	if (!size || size > FRAME_BYTES)
		return NULL;
	uint64_t *slot = tally_map_get(&jit->tables, grown->number);
	if (!slot && jit->tables_bytes <= TABLES_BYTES)
		slot = tally_map_put(&jit->tables, grown->number, &is_new);
	if (is_new) {
		*slot = (uintptr_t)tally_jit_table(grown->function, grown->machine);
		jit->tables_bytes += size + TABLE_BYTES;
	}
	if (!slot)
		return NULL;
	return (struct tally_unwind_table *)(uintptr_t)*slot;
}

static void read_code(const struct live_jit *jit, const struct tally_jit_grown *grown,
		      struct live_code *code)
{
	uint64_t left = grown->function->size - grown->offset - 1;
	size_t size = left < sizeof(code->bytes) ? (size_t)left : sizeof(code->bytes);
	*code = (struct live_code){ .dump = jit->number,
				    .function = grown->number,
				    .offset = grown->offset };
	ssize_t got = pread(jit->fd, code->bytes, size,
			    (off_t)(grown->code_at + grown->offset + 1));
	code->size = got > 0 ? (size_t)got : 0;
}

static void put_code(struct tally_live_jits *jits, const struct live_jit *jit,
		     const struct tally_jit_grown *grown, struct tally_live_rules *out)
{
	struct live_code once, *code = &once;
	if (!jits->codes)
		jits->codes = calloc(CODES, sizeof(*jits->codes));
	if (jits->codes)
		code = &jits->codes[tally_hash64(jit->number << 48 ^ (uint64_t)grown->number << 24 ^
						 grown->offset) %
				    CODES];
	if (code == &once || code->dump != jit->number || code->function != grown->number ||
	    code->offset != grown->offset)
		read_code(jit, grown, code);
	memcpy(out->code, code->bytes, sizeof(out->code));
	out->code_size = code->size;
}

bool tally_live_jits_find(struct tally_live_jits *jits, uint32_t pid, uint64_t address,
			  uint64_t time_ns, struct tally_live_rules *out)
{
	for (size_t i = 0; i < jits->items.count; i++) {
		struct live_jit *jit = &jits->items.items[i];
		struct tally_jit_grown grown;
		uint64_t limit = until(jits, jit, pid);
		if (!limit || !tally_jit_growth_find(jit->growth, address,
						     time_ns < limit ? time_ns : limit, &grown))
			continue;
		out->table = table_of(jit, &grown);
		out->address = TALLY_JIT_RULES_AT + grown.offset;
		if (!out->table || !tally_unwind_table_has_rule(out->table, out->address))
			return false;
		put_code(jits, jit, &grown, out);
		return true;
	}
	return false;
}
