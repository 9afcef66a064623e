/* Records about tasks and the machine, other than samples.
 *
 * Each goes to the events that ask for its kind, in two contexts: the current task's and this
 * CPU's.  An event must be enabled, but need not be ACTIVE.  An event bound to a CPU gets records
 * of that CPU only; one of a cgroup, only while the CPU runs the cgroup.  EXIT and switches go to
 * the context of the task that they concern.
 *
 * The walk runs with interrupts off on the contexts' CPU, the only one that changes them.  It
 * counts as a hit, so that neither ring nor event is freed meanwhile. */
#include "engine/sample_record.h"

#define PATH_LIMIT 4096u /* PATH_MAX: from there on the kernel writes "//toolong" instead */
#define SYMBOL_LIMIT 512u
#define PROTECTION_EXECUTE 4u
#define TRAILER_MAX 48u

/* The pieces of a record.  Written in this order: the header, `body`, `text` with its NUL and
 * zeroes up to a whole word, the trailer. */
struct record {
	uint32_t type;
	uint16_t misc;
	const void *body;
	size_t body_size;
	const char *text; /* NULL: none */
	size_t text_size;
};

/* --- writing one ---------------------------------------------------------- */

struct hit_guard {
	struct engine_cpu *cpu;
	enum tally_engine_level level;
	bool nested;
};

/* Unlike engine_hit_enter(), this may run within a hit: when the hit throttles the event. */
static void guard_enter(struct tally_engine *engine, struct hit_guard *guard)
{
	guard->cpu = engine_this_cpu(engine);
	guard->level = engine->host.level(engine->host.host);
	guard->nested = engine_hit_under_way(guard->cpu, (int)guard->level);
	guard->cpu->hits |= 1u << guard->level;
	__atomic_signal_fence(__ATOMIC_ACQUIRE);
}

static void guard_leave(struct hit_guard *guard)
{
	__atomic_signal_fence(__ATOMIC_RELEASE);
	if (!guard->nested)
		guard->cpu->hits &= ~(1u << guard->level);
}

static void set_text(struct record *record, const char *text, size_t limit)
{
	record->text = text;
	record->text_size = 0;
	while (text[record->text_size]) {
		if (++record->text_size < limit)
			continue;
		record->text = "//toolong";
		record->text_size = sizeof("//toolong") - 1;
		return;
	}
}

static void put_trailer(struct engine_output *output, struct engine_event *event)
{
	uint8_t trailer[TRAILER_MAX];
	engine_output_copy(output, trailer, engine_sample_id(event, trailer));
}

static int begin(struct engine_output *output, struct engine_event *event, uint32_t type,
		 uint16_t misc, size_t content)
{
	size_t size = sizeof(struct tally_record_header) + content + event->id_header_size;
	if (size > ENGINE_RECORD_MAX)
		return -ENGINE_E2BIG;
	const struct tally_record_header header = { .type = type,
						    .misc = misc,
						    .size = (uint16_t)size };
	int error = engine_output_begin(output, event, (uint32_t)size);
	if (!error)
		engine_output_copy(output, &header, sizeof(header));
	return error;
}

static void write_record(struct engine_event *event, const struct record *record)
{
	struct engine_output output;
	size_t text_size = record->text ? record->text_size : 0;
	size_t used = record->body_size + (record->text ? text_size + 1 : 0);
	size_t content = (used + 7) & ~(size_t)7;

	if (begin(&output, event, record->type, record->misc, content))
		return;
	engine_output_copy(&output, record->body, record->body_size);
	if (record->text)
		engine_output_copy(&output, record->text, record->text_size);
	engine_output_skip(&output, content - record->body_size - text_size);
	put_trailer(&output, event);
	engine_output_end(&output);
}

/* --- finding who asked ---------------------------------------------------- */

/* Writes the record described by `what` if the event's attr asks for it. */
typedef void record_writer(struct engine_event *event, const void *what);

static void write_to_context(struct engine_context *context, const struct engine_cpu *cpu,
			     record_writer *writer, const void *what)
{
	ENGINE_LIST_EACH(event, &context->events, struct engine_event, context_link) {
		if (event->state < ENGINE_EVENT_INACTIVE || event->cgroup_away)
			continue;
		if (event->cpu < 0 || event->cpu == (int)cpu->number)
			writer(event, what);
	}
}

static void write_to_all(struct tally_engine *engine, struct tally_engine_task *task,
			 record_writer *writer, const void *what)
{
	uintptr_t state = engine->host.irq_save(engine->host.host);
	struct hit_guard guard;

	guard_enter(engine, &guard);
	write_to_context(&guard.cpu->context, guard.cpu, writer, what);
	if (task && task->context)
		write_to_context(task->context, guard.cpu, writer, what);
	guard_leave(&guard);
	engine->host.irq_restore(engine->host.host, state);
}

void engine_sideband_account(struct engine_event *event, int more)
{
	struct tally_engine *engine = event->engine;
	const struct {
		unsigned *count;
		uint64_t flags;
	} kinds[] = {
		{ &engine->wanted.mmap, TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2 | TALLY_ATTR_MMAP_DATA },
		{ &engine->wanted.comm, TALLY_ATTR_COMM },
		{ &engine->wanted.task, TALLY_ATTR_TASK | TALLY_ATTR_COMM | TALLY_ATTR_MMAP |
						TALLY_ATTR_MMAP2 | TALLY_ATTR_MMAP_DATA },
		{ &engine->wanted.switches, TALLY_ATTR_CONTEXT_SWITCH },
		{ &engine->wanted.namespaces, TALLY_ATTR_NAMESPACES },
		{ &engine->wanted.ksymbol, TALLY_ATTR_KSYMBOL },
		{ &engine->wanted.cgroup, TALLY_ATTR_CGROUP },
		{ &engine->wanted.text_poke, TALLY_ATTR_TEXT_POKE },
	};

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (engine_event_flag(event, kinds[i].flags))
			__atomic_fetch_add(kinds[i].count, (unsigned)more, __ATOMIC_RELAXED);
}

/* --- tasks ---------------------------------------------------------------- */

struct task_record {
	uint32_t type;
	const struct tally_engine_task *task;
	uint32_t parent_pid, parent_tid;
};

static void write_task(struct engine_event *event, const void *what)
{
	const struct task_record *about = what;
	const uint64_t asks = TALLY_ATTR_TASK | TALLY_ATTR_COMM | TALLY_ATTR_MMAP |
			      TALLY_ATTR_MMAP2 | TALLY_ATTR_MMAP_DATA;
	if (!engine_event_flag(event, asks))
		return;
	const struct {
		uint32_t pid, parent_pid, tid, parent_tid;
		uint64_t time;
	} body = {
		.pid = (uint32_t)about->task->identity.pid,
		.tid = (uint32_t)about->task->identity.tid,
		.parent_pid = about->parent_pid,
		.parent_tid = about->parent_tid,
		.time = engine_event_clock(event),
	};
	write_record(
		event,
		&(struct record){ .type = about->type, .body = &body, .body_size = sizeof(body) });
}

void engine_output_fork(const struct tally_engine_task *child, struct tally_engine_task *parent)
{
	const struct task_record about = {
		.type = TALLY_RECORD_FORK,
		.task = child,
		.parent_pid = (uint32_t)parent->identity.pid,
		.parent_tid = (uint32_t)parent->identity.tid,
	};
	if (child->engine->wanted.task)
		write_to_all(child->engine, parent, write_task, &about);
}

/* An EXIT record has the parent's pid also as ptid, as in the kernel. */
void engine_output_exit(struct tally_engine_task *task)
{
	const struct task_record about = {
		.type = TALLY_RECORD_EXIT,
		.task = task,
		.parent_pid = (uint32_t)task->identity.parent_pid,
		.parent_tid = (uint32_t)task->identity.parent_pid,
	};
	if (task->engine->wanted.task)
		write_to_all(task->engine, task, write_task, &about);
}

struct comm_record {
	const struct tally_engine_task *task;
	bool exec;
};

static void write_comm(struct engine_event *event, const void *what)
{
	const struct comm_record *about = what;
	if (!engine_event_flag(event, TALLY_ATTR_COMM))
		return;
	const struct tally_engine_identity *identity = &about->task->identity;
	const uint32_t body[2] = { (uint32_t)identity->pid, (uint32_t)identity->tid };
	struct record record = {
		.type = TALLY_RECORD_COMM,
		.misc = about->exec ? TALLY_MISC_COMM_EXEC : 0,
		.body = body,
		.body_size = sizeof(body),
	};
	set_text(&record, identity->comm, sizeof(identity->comm));
	write_record(event, &record);
}

void engine_output_comm(struct tally_engine_task *task, const char *comm, bool exec)
{
	const struct comm_record about = { .task = task, .exec = exec };
	char *own = task->identity.comm;
	unsigned length = 0;

	for (; comm[length] && length < sizeof(task->identity.comm) - 1; length++)
		own[length] = comm[length];
	while (length < sizeof(task->identity.comm))
		own[length++] = '\0';
	if (task->engine->wanted.comm)
		write_to_all(task->engine, task, write_comm, &about);
}

void tally_engine_comm(struct tally_engine_task *task, const char *comm)
{
	engine_output_comm(task, comm, false);
}

void tally_engine_comm_exec(struct tally_engine_task *task, const char *comm)
{
	engine_output_comm(task, comm, true);
}

void engine_output_read(struct engine_event *event, struct tally_engine_task *task)
{
	struct tally_engine *engine = event->engine;
	const uint32_t body[2] = { (uint32_t)task->identity.pid, (uint32_t)task->identity.tid };
	unsigned siblings = event->leader->sibling_count;
	size_t content = sizeof(body) + engine_read_format_size(event->attr.read_format, siblings);
	uintptr_t state = engine->host.irq_save(engine->host.host);
	struct engine_output output;
	struct hit_guard guard;

	guard_enter(engine, &guard);
	if (!begin(&output, event, TALLY_RECORD_READ, 0, content)) {
		engine_output_copy(&output, body, sizeof(body));
		engine_output_read_format(&output, event, siblings);
		put_trailer(&output, event);
		engine_output_end(&output);
	}
	guard_leave(&guard);
	engine->host.irq_restore(engine->host.host, state);
}

/* --- mappings, namespaces ------------------------------------------------- */

struct mmap_record {
	const struct tally_engine_task *task;
	const struct tally_engine_mapping *mapping;
};

static bool asks_for_mapping(const struct engine_event *event, bool executable)
{
	if (executable)
		return engine_event_flag(event, TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2);
	return engine_event_flag(event, TALLY_ATTR_MMAP_DATA);
}

/* MMAP2's words behind the file offset: they identify the file by device and inode, or by
 * build-id. */
struct mmap2_words {
	union {
		struct {
			uint32_t major, minor;
			uint64_t inode, inode_generation;
		};
		struct {
			uint8_t build_id_size, reserved[3], build_id[20];
		};
	};
	uint32_t protection, flags;
};

static void fill_mmap2(struct mmap2_words *words, const struct tally_engine_mapping *mapping,
		       bool by_build_id)
{
	if (by_build_id) {
		words->build_id_size = mapping->build_id_size;
		__builtin_memcpy(words->build_id, mapping->build_id, sizeof(words->build_id));
	} else {
		words->major = mapping->major;
		words->minor = mapping->minor;
		words->inode = mapping->inode;
		words->inode_generation = mapping->inode_generation;
	}
	words->protection = mapping->protection;
	words->flags = mapping->flags;
}

static void write_mapping(struct engine_event *event, const void *what)
{
	const struct mmap_record *about = what;
	const struct tally_engine_mapping *mapping = about->mapping;
	bool executable = mapping->protection & PROTECTION_EXECUTE,
	     with_file = engine_event_flag(event, TALLY_ATTR_MMAP2);

	if (!asks_for_mapping(event, executable))
		return;
	struct {
		uint32_t pid, tid;
		uint64_t address, length, file_offset;
		struct mmap2_words file;
	} body = {
		.pid = (uint32_t)about->task->identity.pid,
		.tid = (uint32_t)about->task->identity.tid,
		.address = mapping->address,
		.length = mapping->length,
		.file_offset = mapping->file_offset,
	};
	bool by_build_id = with_file && mapping->build_id_size &&
			   engine_event_flag(event, TALLY_ATTR_BUILD_ID);
	if (with_file)
		fill_mmap2(&body.file, mapping, by_build_id);
	struct record record = {
		.type = with_file ? TALLY_RECORD_MMAP2 : TALLY_RECORD_MMAP,
		.misc = (uint16_t)(TALLY_MISC_USER | (executable ? 0 : TALLY_MISC_MMAP_DATA) |
				   (by_build_id ? TALLY_MISC_MMAP_BUILD_ID : 0)),
		.body = &body,
		.body_size = sizeof(body) - (with_file ? 0 : sizeof(body.file)),
	};
	set_text(&record, mapping->path, PATH_LIMIT);
	write_record(event, &record);
}

void tally_engine_mmap_record(struct tally_engine_task *task,
			      const struct tally_engine_mapping *mapping)
{
	const struct mmap_record about = { .task = task, .mapping = mapping };
	if (task->engine->wanted.mmap)
		write_to_all(task->engine, task, write_mapping, &about);
}

struct namespaces_record {
	const struct tally_engine_task *task;
	const struct tally_engine_namespace *namespaces;
	unsigned count;
};

static void write_namespaces(struct engine_event *event, const void *what)
{
	enum { MOST = 7 };
	const struct namespaces_record *about = what;
	if (!engine_event_flag(event, TALLY_ATTR_NAMESPACES))
		return;
	unsigned count = about->count > MOST ? MOST : about->count;
	struct {
		uint32_t pid, tid;
		uint64_t count;
		struct tally_engine_namespace namespaces[MOST];
	} body = {
		.pid = (uint32_t)about->task->identity.pid,
		.tid = (uint32_t)about->task->identity.tid,
		.count = count,
	};
	__builtin_memcpy(body.namespaces, about->namespaces, count * sizeof(body.namespaces[0]));
	write_record(event, &(struct record){
				    .type = TALLY_RECORD_NAMESPACES,
				    .body = &body,
				    .body_size = sizeof(body) -
						 (MOST - count) * sizeof(body.namespaces[0]),
			    });
}

void tally_engine_namespaces(struct tally_engine_task *task,
			     const struct tally_engine_namespace *namespaces, unsigned count)
{
	const struct namespaces_record about = { .task = task,
						 .namespaces = namespaces,
						 .count = count };
	const struct tally_engine_host *host = &task->engine->host;
	/* a new task's namespaces are reported to the task that made it */
	if (task->engine->wanted.namespaces)
		write_to_all(task->engine, host->current_task(host->host), write_namespaces,
			     &about);
}

/* --- switches ------------------------------------------------------------- */

struct switch_record {
	/* the task that comes, or that has gone; NULL: idle */
	const struct tally_engine_task *other;
	uint16_t misc;
};

/* A task's event does not learn which other task runs. */
static void write_switch(struct engine_event *event, const void *what)
{
	const struct switch_record *about = what;
	if (!engine_event_flag(event, TALLY_ATTR_CONTEXT_SWITCH))
		return;
	uint32_t body[2] = { 0 };
	if (about->other) {
		body[0] = (uint32_t)about->other->identity.pid;
		body[1] = (uint32_t)about->other->identity.tid;
	}
	struct record record = {
		.type = TALLY_RECORD_SWITCH,
		.misc = about->misc,
		.body = body,
	};
	if (!event->task) {
		record.type = TALLY_RECORD_SWITCH_CPU_WIDE;
		record.body_size = sizeof(body);
	}
	write_record(event, &record);
}

void engine_output_switch(struct tally_engine *engine, struct tally_engine_task *previous,
			  struct tally_engine_task *next, bool out, bool preempted)
{
	struct switch_record about = { .other = previous };
	if (!out) {
		write_to_all(engine, next, write_switch, &about);
		return;
	}
	about.other = next;
	about.misc = TALLY_MISC_SWITCH_OUT;
	if (preempted)
		about.misc |= TALLY_MISC_SWITCH_OUT_PREEMPT;
	write_to_all(engine, previous, write_switch, &about);
}

/* --- the machine ---------------------------------------------------------- */

struct flagged_record {
	uint64_t flag;
	struct record record;
};

static void write_flagged(struct engine_event *event, const void *what)
{
	const struct flagged_record *about = what;
	if (engine_event_flag(event, about->flag))
		write_record(event, &about->record);
}

static void write_flagged_to_all(struct tally_engine *engine, const struct flagged_record *about)
{
	write_to_all(engine, engine_current_task(engine), write_flagged, about);
}

void tally_engine_cgroup_made(struct tally_engine *engine, uint64_t id, const char *path)
{
	struct flagged_record about = {
		.flag = TALLY_ATTR_CGROUP,
		.record = { .type = TALLY_RECORD_CGROUP, .body = &id, .body_size = sizeof(id) },
	};
	set_text(&about.record, path, PATH_LIMIT);
	if (engine->wanted.cgroup)
		write_flagged_to_all(engine, &about);
}

void tally_engine_ksymbol(struct tally_engine *engine, uint64_t address, uint32_t length,
			  uint16_t type, bool unregister, const char *name)
{
	const struct {
		uint64_t address;
		uint32_t length;
		uint16_t type, flags;
	} body = { .address = address, .length = length, .type = type, .flags = unregister };
	struct flagged_record about = {
		.flag = TALLY_ATTR_KSYMBOL,
		.record = { .type = TALLY_RECORD_KSYMBOL,
			    .body = &body,
			    .body_size = sizeof(body) },
	};

	if (!engine->wanted.ksymbol)
		return;
	set_text(&about.record, name, SIZE_MAX);
	if (about.record.text_size >= SYMBOL_LIMIT) /* the kernel shortens names */
		about.record.text_size = SYMBOL_LIMIT - 1;
	write_flagged_to_all(engine, &about);
}

struct text_poke_record {
	uint64_t address;
	const void *old_bytes, *new_bytes;
	uint16_t old_length, new_length;
};

static void write_text_poke(struct engine_event *event, const void *what)
{
	const struct text_poke_record *about = what;
	struct engine_output output;
	const struct {
		uint64_t address;
		uint16_t old_length, new_length;
	} __attribute__((packed)) head = { about->address, about->old_length, about->new_length };
	size_t used = sizeof(head) + about->old_length + about->new_length,
	       content = (used + 7) & ~(size_t)7;

	if (!engine_event_flag(event, TALLY_ATTR_TEXT_POKE) ||
	    begin(&output, event, TALLY_RECORD_TEXT_POKE, TALLY_MISC_KERNEL, content))
		return;
	engine_output_copy(&output, &head, sizeof(head));
	engine_output_copy(&output, about->old_bytes, about->old_length);
	engine_output_copy(&output, about->new_bytes, about->new_length);
	engine_output_skip(&output, content - used);
	put_trailer(&output, event);
	engine_output_end(&output);
}

void tally_engine_text_poke(struct tally_engine *engine, uint64_t address, const void *old_bytes,
			    uint16_t old_length, const void *new_bytes, uint16_t new_length)
{
	const struct text_poke_record about = { address, old_bytes, new_bytes, old_length,
						new_length };
	if (engine->wanted.text_poke)
		write_to_all(engine, engine_current_task(engine), write_text_poke, &about);
}

/* --- throttling ----------------------------------------------------------- */

void engine_output_throttle(struct engine_event *event, bool throttled)
{
	const uint64_t body[3] = { engine_event_clock(event), engine_primary_id(event), event->id };
	const struct record record = {
		.type = throttled ? TALLY_RECORD_THROTTLE : TALLY_RECORD_UNTHROTTLE,
		.body = body,
		.body_size = sizeof(body),
	};
	struct hit_guard guard;

	guard_enter(event->engine, &guard);
	write_record(event, &record);
	guard_leave(&guard);
}
