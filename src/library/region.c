/* Regions: the open regions and the sums of each thread, and figures from them.
 *
 * A thread has a struct region_thread.  It is taken at the thread's first region and given back when
 * the thread ends; its sums stay in it, and the next thread goes on with them.  So nothing has to be
 * merged or freed while a thread ends, and memory grows with the threads that exist at one time.
 *
 * Begin and end find the thread's sums of a name in three steps: a small cache by the name's address,
 * which compares the text, too; a hash table of the thread; and at the first use the process's list of
 * names, which has a lock.  The process's lock is never taken later.
 *
 * A thread that has not begun a region costs nothing, nor does a program without regions: the library
 * has no constructor, and its destructor returns at once. */
#include "base/environment.h"
#include "base/error.h"
#include "base/extremes.h"
#include "base/terminal.h"
#include "base/text.h"
#include "library/library_events.h"
#include "library/region_internal.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CACHE_SLOTS = 64, TABLE_SLOTS = 2 * REGION_NAMES_MAX };
enum { FRAMES_TOUCHED = 16 };
enum { OTHER_REGIONS = REGION_NAMES_MAX - 1 }; /* index of the name for those beyond the limit */

struct cache_slot {
	const char *name; /* the caller's address */
	struct region_sums *sums;
};

/* A region that is open. */
struct frame {
	struct region_sums *sums;
	const char *name;  /* of the sums */
	uint32_t hash;     /* of the caller's name, if the sums are those of the other regions */
	bool is_outermost; /* of its name on this thread */
	bool is_of_parent; /* begun before fork(2): its end is awaited, and has no figures */
	uint64_t pairs;    /* regions that ended inside, at any depth */
	struct region_reading begin;
	uint64_t inside[REGION_EVENTS_MAX]; /* totals of the regions directly inside */
};

struct region_thread {
	struct region_thread *next; /* of the process's list */
	bool is_used;               /* a thread owns it; under the lock */
	volatile bool is_busy;      /* begin or end is running: seen by signal handlers */
	bool is_calibrating;
	bool has_groups;
	struct tally_group *groups[REGION_GROUPS_MAX];
	unsigned depth;   /* number of frames; other threads read it */
	unsigned skipped; /* begins beyond REGION_OPEN_MAX that have not ended */
	struct region_mistakes mistakes;
	struct region_sums *by_name[REGION_NAMES_MAX]; /* published with release */
	struct region_sums *table[TABLE_SLOTS];        /* by the hash of the text */
	struct cache_slot cache[CACHE_SLOTS];
	struct frame frames[REGION_OPEN_MAX];
};

/* State of the process. */
static struct {
	pthread_mutex_t lock;
	bool is_ready; /* plan and settings are made; release */
	bool has_key, has_fork_handlers;
	pthread_key_t key; /* its destructor gives a thread's state back */
	struct region_plan plan;
	bool subtracts;
	char *chosen_events; /* NULL: the usual ones */
	bool chosen_subtracts;
	struct region_thread *threads;
	uint64_t thread_count;
	char *names[REGION_NAMES_MAX];
	unsigned name_count; /* release */
	pid_t pid;
	/* the first end whose region was not open: 0 unset, 1 being set, 2 set */
	unsigned unknown_state;
	char unknown[64];
} process = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* initial-exec: found without a call, so that signal handlers may use it, too */
static __thread struct region_thread *self __attribute__((tls_model("initial-exec")));

static void *map_memory(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	return memory;
}

static size_t sums_size(void)
{
	return sizeof(struct region_sums) +
	       process.plan.event_count * sizeof(uint64_t[TALLY_HISTOGRAM_BUCKETS]);
}

static struct region_sums *sums_new(const char *name, unsigned index)
{
	struct region_sums *sums = map_memory(sums_size());
	if (!sums)
		return NULL;
	sums->name = name;
	sums->index = index;
	return sums;
}

/* ---- the life of a thread's state -------------------------------------------- */

static void count_open_as_left(struct region_thread *thread)
{
	for (unsigned i = 0; i < thread->depth; i++) {
		struct frame *frame = &thread->frames[i];
		if (frame->is_of_parent)
			continue;
		region_put(frame->sums->open, 0);
		region_add(thread->mistakes.left_open, 1);
	}
	region_put(thread->depth, 0);
	thread->skipped = 0;
}

/* Called when a thread ends. */
static void give_back(void *argument)
{
	struct region_thread *thread = argument;
	thread->is_busy = true;
	region_groups_close(&process.plan, thread->groups);
	thread->has_groups = false;
	pthread_mutex_lock(&process.lock);
	count_open_as_left(thread);
	thread->is_used = false;
	pthread_mutex_unlock(&process.lock);
	self = NULL;
}

static void lock_for_fork(void)
{
	pthread_mutex_lock(&process.lock);
}

static void unlock_after_fork(void)
{
	pthread_mutex_unlock(&process.lock);
}

/* Takes all sums away: of the parent, in a new child. */
static void forget_sums(struct region_thread *thread)
{
	for (unsigned i = 0; i < process.name_count; i++) {
		if (thread->by_name[i])
			munmap(thread->by_name[i], sums_size());
		thread->by_name[i] = NULL;
	}
	memset(thread->table, 0, sizeof(thread->table));
	memset(thread->cache, 0, sizeof(thread->cache));
	memset(&thread->mistakes, 0, sizeof(thread->mistakes));
}

/* The child has no figures, and only the thread that forked.  Regions
 * that are open began in the parent. */
static void begin_child(void)
{
	for (struct region_thread *thread = process.threads; thread; thread = thread->next) {
		for (unsigned i = 0; i < thread->depth; i++)
			thread->frames[i].is_of_parent = true;
		if (thread != self) {
			thread->depth = 0;
			thread->skipped = 0;
			thread->is_used = false;
			thread->is_busy = false;
		}
		region_groups_close(&process.plan, thread->groups);
		thread->has_groups = false;
		forget_sums(thread);
	}
	process.thread_count = 0;
	process.unknown_state = 0;
	process.pid = getpid();
	pthread_mutex_unlock(&process.lock);
}

/* Decides events, settings and the report's place.  Holds the lock. */
static void make_ready(void)
{
	const char *events = tally_environment("TALLY_EVENTS");
	const char *overhead = tally_environment("TALLY_OVERHEAD");
	region_plan_make(&process.plan, tally_text_or(events, process.chosen_events));
	process.subtracts = process.chosen_subtracts;
	if (overhead)
		process.subtracts = !strcmp(overhead, "subtract");
	process.pid = getpid();
	region_report_prepare(tally_environment("TALLY_REPORT"));
	process.has_key = !pthread_key_create(&process.key, give_back);
	pthread_atfork(lock_for_fork, unlock_after_fork, begin_child);
}

static struct region_thread *take_state(void)
{
	struct region_thread *thread = process.threads;
	while (thread && thread->is_used)
		thread = thread->next;
	if (thread) {
		thread->is_used = true;
		return thread;
	}
	/* not map_memory(): leak checkers follow pointers to groups through the heap alone */
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	/* so that few regions have page faults of the first use in their figures */
	memset(thread->frames, 1, FRAMES_TOUCHED * sizeof(thread->frames[0]));
	thread->is_used = true;
	thread->next = process.threads;
	process.threads = thread;
	return thread;
}

static void calibrate(struct region_thread *thread);

static void open_groups(struct region_thread *thread)
{
	if (region_groups_open(&process.plan, thread->groups))
		region_add(thread->mistakes.without_events, 1);
	thread->has_groups = true;
	pthread_mutex_lock(&process.lock);
	process.thread_count++;
	pthread_mutex_unlock(&process.lock);
}

/* Returns the calling thread's state, busy.  NULL: out of memory. */
static struct region_thread *start_thread(void)
{
	pthread_mutex_lock(&process.lock);
	bool is_first = !process.is_ready;
	if (is_first)
		make_ready();
	struct region_thread *thread = take_state();
	if (thread)
		thread->is_busy = true;
	if (thread && is_first) {
		region_groups_open(&process.plan, thread->groups);
		thread->has_groups = true;
		process.thread_count++;
		calibrate(thread);
	}
	__atomic_store_n(&process.is_ready, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&process.lock);
	if (thread && process.has_key)
		pthread_setspecific(process.key, thread);
	self = thread;
	return thread;
}

/* ---- names ------------------------------------------------------------------- */

static int search_names(const char *name)
{
	unsigned count = region_names();
	for (unsigned i = 0; i < count; i++)
		if (!strcmp(process.names[i], name))
			return (int)i;
	if (count == REGION_NAMES_MAX)
		return OTHER_REGIONS;
	return -1;
}

/* Returns the index of a name; −1: out of memory.  Takes no lock if the name is known, or if there
 * are too many. */
static int name_index(const char *name)
{
	int index = search_names(name);
	if (index >= 0)
		return index;
	pthread_mutex_lock(&process.lock);
	index = search_names(name);
	unsigned count = process.name_count;
	if (index < 0) {
		if (count == OTHER_REGIONS)
			name = "(other regions)";
		process.names[count] = strdup(name);
		if (process.names[count]) {
			index = (int)count;
			__atomic_store_n(&process.name_count, count + 1, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&process.lock);
	return index;
}

static struct region_sums *first_use(struct region_thread *thread, const char *name,
				     struct region_sums **slot)
{
	int index = name_index(name);
	if (index < 0)
		return NULL;
	struct region_sums *sums = thread->by_name[index];
	if (sums) /* the other regions: they have no slot of their own */
		return sums;
	sums = sums_new(process.names[index], (unsigned)index);
	if (!sums)
		return NULL;
	__atomic_store_n(&thread->by_name[index], sums, __ATOMIC_RELEASE);
	if (!strcmp(sums->name, name))
		*slot = sums;
	return sums;
}

/* FNV-1a */
static uint32_t hash_text(const char *text)
{
	uint32_t hash = 2166136261u;
	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 16777619u;
	return hash;
}

static struct region_sums *find_by_text(struct region_thread *thread, const char *name)
{
	struct region_sums **slot = &thread->table[hash_text(name) % TABLE_SLOTS];
	/* At most half of the slots are taken. */
	while (*slot && strcmp((*slot)->name, name))
		if (++slot == thread->table + TABLE_SLOTS)
			slot = thread->table;
	if (*slot)
		return *slot;
	return first_use(thread, name, slot);
}

static struct cache_slot *cache_slot(struct region_thread *thread, const char *name)
{
	uintptr_t address = (uintptr_t)name;
	return &thread->cache[(address ^ address >> 6) % CACHE_SLOTS];
}

static struct region_sums *find_sums(struct region_thread *thread, const char *name)
{
	struct cache_slot *slot = cache_slot(thread, name);
	if (slot->name == name && !strcmp(slot->sums->name, name))
		return slot->sums;
	struct region_sums *sums = find_by_text(thread, name);
	if (sums)
		*slot = (struct cache_slot){ name, sums };
	return sums;
}

/* ---- measuring ---------------------------------------------------------------- */

/* Adds one call to the sums of an event. */
static void add_call(struct region_sum *sum, uint64_t value, uint64_t *histogram)
{
	unsigned __int128 square = (unsigned __int128)value * value;
	uint64_t low = region_get(sum->square_low) + (uint64_t)square;
	bool carry = low < (uint64_t)square;
	region_put(sum->square_low, low);
	region_add(sum->square_high, (uint64_t)(square >> 64) + carry);
	region_add(sum->measured, 1);
	region_add(sum->total, value);
	if (value > region_get(sum->max))
		region_put(sum->max, value);
	region_add(histogram[tally_histogram_bucket(value)], 1);
}

/* Computes an event's count in a call.  Returns false if it was not counted. */
static bool call_value(const struct region_event *event, unsigned index, const struct frame *frame,
		       const struct region_reading *end, struct region_sum *sum, uint64_t *value,
		       bool *is_scaled)
{
	const struct region_reading *begin = &frame->begin;
	*value = tally_saturating_sub_u64(end->values[index], begin->values[index]);
	*is_scaled = false;
	if (event->group != REGION_IS_CLOCK) {
		unsigned group = (unsigned)event->group;
		if (begin->enabled_ns[group] == REGION_UNREAD ||
		    end->enabled_ns[group] == REGION_UNREAD)
			return false;
		uint64_t enabled = tally_saturating_sub_u64(end->enabled_ns[group],
							    begin->enabled_ns[group]);
		uint64_t running = tally_saturating_sub_u64(end->running_ns[group],
							    begin->running_ns[group]);
		if (frame->is_outermost) {
			region_add(sum->enabled_ns, enabled);
			region_add(sum->running_ns, running);
		}
		if (enabled && !running)
			return false;
		if (running < enabled) {
			*is_scaled = true;
			*value = tally_library_count(*value, enabled, running).value;
		}
	}
	if (process.subtracts)
		*value = tally_saturating_sub_u64(*value,
						  event->empty + frame->pairs * event->pair);
	return true;
}

/* Adds a call that has ended to its region's sums, and to the frame around it. */
static void finish(struct region_thread *thread, struct frame *frame,
		   const struct region_reading *end)
{
	struct region_sums *sums = frame->sums;
	struct frame *around = frame > thread->frames ? frame - 1 : NULL;
	/* Readers that see a sum of this call see an odd sequence as well. */
	region_put(sums->sequence, sums->sequence + 1);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	region_add(sums->calls, 1);
	region_put(sums->open, sums->open - 1);
	if (!frame->is_outermost)
		region_add(sums->recursive, 1);
	for (unsigned i = 0; i < process.plan.event_count; i++) {
		struct region_sum *sum = &sums->events[i];
		bool is_scaled;
		uint64_t value;
		if (!call_value(&process.plan.events[i], i, frame, end, sum, &value, &is_scaled))
			continue;
		if (around)
			around->inside[i] += value;
		region_add(sum->self, tally_saturating_sub_u64(value, frame->inside[i]));
		if (!frame->is_outermost)
			continue;
		region_add(sum->scaled, is_scaled);
		add_call(sum, value, sums->histograms[i]);
	}
	__atomic_store_n(&sums->sequence, sums->sequence + 1, __ATOMIC_RELEASE);
	if (around)
		around->pairs += frame->pairs + 1;
}

/* Opens a region.  The reading comes last. */
static void push(struct region_thread *thread, struct region_sums *sums, const char *name)
{
	struct frame *frame = &thread->frames[thread->depth];
	frame->name = sums->name;
	if (sums->index == OTHER_REGIONS)
		frame->hash = hash_text(name);
	frame->is_outermost = !sums->open;
	frame->is_of_parent = false;
	frame->pairs = 0;
	memset(frame->inside, 0, process.plan.event_count * sizeof(*frame->inside));
	frame->sums = sums;
	region_put(sums->open, sums->open + 1);
	region_put(thread->depth, thread->depth + 1);
	region_read_begin(&process.plan, thread->groups, &frame->begin);
}

/* Closes regions down to a depth, without figures. */
static void drop_to(struct region_thread *thread, unsigned depth)
{
	while (thread->depth > depth) {
		struct frame *frame = &thread->frames[thread->depth - 1];
		region_put(thread->depth, thread->depth - 1);
		if (frame->is_of_parent)
			continue;
		region_put(frame->sums->open, frame->sums->open - 1);
		region_add(thread->mistakes.left_open, 1);
	}
}

static void note_unknown(struct region_thread *thread, const char *name)
{
	unsigned expected = 0;
	region_add(thread->mistakes.unknown_ends, 1);
	if (!__atomic_compare_exchange_n(&process.unknown_state, &expected, 1, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	tally_terminal_clean_name(tally_text_or(name, "(the innermost)"), process.unknown,
				  sizeof(process.unknown));
	__atomic_store_n(&process.unknown_state, 2, __ATOMIC_RELEASE);
}

static bool is_frame_of(const struct frame *frame, const char *name)
{
	if (!frame->is_of_parent && frame->sums->index == OTHER_REGIONS)
		return frame->hash == hash_text(name);
	return !strcmp(frame->name, name);
}

static void end_region(struct region_thread *thread, const char *name,
		       const struct region_reading *end)
{
	unsigned depth = thread->depth;
	while (name && depth && !is_frame_of(&thread->frames[depth - 1], name))
		depth--;
	if (!depth) {
		note_unknown(thread, name);
		return;
	}
	drop_to(thread, depth);
	struct frame *frame = &thread->frames[depth - 1];
	if (!frame->is_of_parent)
		finish(thread, frame, end);
	region_put(thread->depth, depth - 1);
}

/* ---- begin and end ------------------------------------------------------------ */

/* Returns the calling thread's state, busy; NULL if there is none, or if a signal interrupted
 * another call. */
static inline struct region_thread *enter(void)
{
	struct region_thread *thread = self;
	if (!thread)
		return NULL;
	if (thread->is_busy) {
		region_add(thread->mistakes.in_handlers, 1);
		return NULL;
	}
	thread->is_busy = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return thread;
}

static inline void leave(struct region_thread *thread)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread->is_busy = false;
}

static void begin_region(struct region_thread *thread, const char *name)
{
	if (!thread->has_groups)
		open_groups(thread);
	name = tally_text_or(name, "(no name)");
	struct region_sums *sums = find_sums(thread, name);
	if (sums && thread->depth < REGION_OPEN_MAX) {
		push(thread, sums, name);
		return;
	}
	thread->skipped++;
	if (sums)
		region_add(thread->mistakes.too_deep, 1);
	else
		region_add(thread->mistakes.no_memory, 1);
}

void tally_region_begin(const char *name)
{
	int saved = errno;
	struct region_thread *thread = enter();
	if (!thread && !self)
		thread = start_thread();
	if (thread) {
		begin_region(thread, name);
		leave(thread);
	}
	errno = saved;
}

void tally_region_end(const char *name)
{
	int saved = errno;
	struct region_thread *thread = enter();
	if (!thread && !self)
		thread = start_thread();
	if (!thread)
		goto out;
	if (thread->skipped) {
		thread->skipped--;
	} else {
		struct region_reading end;
		region_read_end(&process.plan, thread->groups, &end);
		end_region(thread, name, &end);
	}
	leave(thread);
out:
	errno = saved;
}

/* ---- overhead ------------------------------------------------------------------ */

enum { BATCHES = 9, BATCH = 32 };

static int compare_words(const void *a, const void *b)
{
	return tally_compare_u64(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Measures empty regions: medians of its own figures, and of its cost for the region around it.
 * Runs by the first thread, under the lock, before there are names. */
static void calibrate(struct region_thread *thread)
{
	static const char name[] = "(empty)";
	struct region_sums *sums = sums_new(name, 0);
	if (!sums)
		return;
	bool subtracts = process.subtracts;
	process.subtracts = false;
	uint64_t empty[REGION_EVENTS_MAX][BATCHES], pair[REGION_EVENTS_MAX][BATCHES];
	struct region_reading before, after, end;
	unsigned count = process.plan.event_count;
	*cache_slot(thread, name) = (struct cache_slot){ name, sums };
	for (unsigned batch = 0; batch < BATCHES; batch++) {
		uint64_t totals[REGION_EVENTS_MAX];
		for (unsigned i = 0; i < count; i++)
			totals[i] = sums->events[i].total;
		region_read_begin(&process.plan, thread->groups, &before);
		for (unsigned n = 0; n < BATCH; n++) {
			push(thread, find_sums(thread, name), name);
			region_read_end(&process.plan, thread->groups, &end);
			end_region(thread, name, &end);
		}
		region_read_end(&process.plan, thread->groups, &after);
		for (unsigned i = 0; i < count; i++) {
			empty[i][batch] = (sums->events[i].total - totals[i]) / BATCH;
			pair[i][batch] = tally_saturating_sub_u64(after.values[i],
								  before.values[i]) /
					 BATCH;
		}
	}
	for (unsigned i = 0; i < count; i++) {
		qsort(empty[i], BATCHES, sizeof(uint64_t), compare_words);
		qsort(pair[i], BATCHES, sizeof(uint64_t), compare_words);
		process.plan.events[i].empty = empty[i][BATCHES / 2];
		process.plan.events[i].pair = pair[i][BATCHES / 2];
	}
	memset(thread->cache, 0, sizeof(thread->cache));
	process.subtracts = subtracts;
	munmap(sums, sums_size());
}

/* ---- for reports ---------------------------------------------------------------- */

const struct region_plan *region_plan_get(void)
{
	if (!__atomic_load_n(&process.is_ready, __ATOMIC_ACQUIRE) || !region_names())
		return NULL;
	return &process.plan;
}

unsigned region_names(void)
{
	return __atomic_load_n(&process.name_count, __ATOMIC_ACQUIRE);
}

const char *region_name_at(unsigned index)
{
	return process.names[index];
}

const char *region_first_unknown(void)
{
	if (__atomic_load_n(&process.unknown_state, __ATOMIC_ACQUIRE) == 2)
		return process.unknown;
	return NULL;
}

bool region_subtracts(void)
{
	return process.subtracts;
}

uint64_t region_threads(struct region_mistakes *mistakes)
{
	*mistakes = (struct region_mistakes){ 0 };
	if (process.pid != getpid()) /* of vfork(2) or clone(2): the sums are another process's */
		return 0;
	pthread_mutex_lock(&process.lock);
	uint64_t count = process.thread_count;
	for (struct region_thread *thread = process.threads; thread; thread = thread->next) {
		const struct region_mistakes *own = &thread->mistakes;
		mistakes->unknown_ends += region_get(own->unknown_ends);
		mistakes->left_open += region_get(own->left_open);
		mistakes->too_deep += region_get(own->too_deep);
		mistakes->in_handlers += region_get(own->in_handlers);
		mistakes->no_memory += region_get(own->no_memory);
		mistakes->without_events += region_get(own->without_events);
	}
	pthread_mutex_unlock(&process.lock);
	return count;
}

static void copy_sum(const struct region_sum *from, struct region_sum *to)
{
	to->measured = region_get(from->measured);
	to->scaled = region_get(from->scaled);
	to->total = region_get(from->total);
	to->self = region_get(from->self);
	to->max = region_get(from->max);
	to->square_low = region_get(from->square_low);
	to->square_high = region_get(from->square_high);
	to->enabled_ns = region_get(from->enabled_ns);
	to->running_ns = region_get(from->running_ns);
}

/* Copies sums that their thread may be changing.  If it changes them all the time, a copy may mix two
 * calls. */
static void copy_sums(const struct region_sums *sums, struct region_all *copy)
{
	enum { TRIES = 1000 };
	for (unsigned i = 0; i < TRIES; i++) {
		unsigned sequence = __atomic_load_n(&sums->sequence, __ATOMIC_ACQUIRE);
		copy->calls = region_get(sums->calls);
		copy->recursive = region_get(sums->recursive);
		copy->open = region_get(sums->open);
		for (unsigned n = 0; n < REGION_EVENTS_MAX; n++)
			copy_sum(&sums->events[n], &copy->events[n]);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(sequence & 1) && region_get(sums->sequence) == sequence)
			return;
		sched_yield();
	}
}

static void add_sum(struct region_sum *to, const struct region_sum *from)
{
	to->measured += from->measured;
	to->scaled += from->scaled;
	to->total += from->total;
	to->self += from->self;
	to->max = tally_max_u64(to->max, from->max);
	to->square_low += from->square_low;
	to->square_high += from->square_high + (to->square_low < from->square_low);
	to->enabled_ns += from->enabled_ns;
	to->running_ns += from->running_ns;
}

/* Returns the list.  Threads are never removed from it, and sums never from a thread. */
static struct region_thread *all_threads(void)
{
	pthread_mutex_lock(&process.lock);
	struct region_thread *thread = process.threads;
	pthread_mutex_unlock(&process.lock);
	return thread;
}

void region_sum_up(unsigned index, struct region_all *all)
{
	*all = (struct region_all){ .index = index, .name = process.names[index] };
	for (struct region_thread *thread = all_threads(); thread; thread = thread->next) {
		struct region_all one;
		const struct region_sums *sums = __atomic_load_n(&thread->by_name[index],
								 __ATOMIC_ACQUIRE);
		if (!sums)
			continue;
		copy_sums(sums, &one);
		all->calls += one.calls;
		all->recursive += one.recursive;
		all->open += one.open;
		for (unsigned i = 0; i < REGION_EVENTS_MAX; i++)
			add_sum(&all->events[i], &one.events[i]);
	}
}

/* The sums are exact: digits are lost here only. */
static double sigma_of(const struct region_sum *sum)
{
	if (sum->measured < 2)
		return 0;
	long double squares = (long double)sum->square_high * 0x1p64L +
			      (long double)sum->square_low;
	long double total = (long double)sum->total;
	long double rest = squares - total * total / (long double)sum->measured;
	if (rest <= 0)
		return 0;
	return sqrt((double)(rest / (long double)(sum->measured - 1)));
}

/* Adds the histograms of one event over all threads. */
static void add_histograms(unsigned index, unsigned event, uint64_t counts[TALLY_HISTOGRAM_BUCKETS])
{
	for (struct region_thread *thread = all_threads(); thread; thread = thread->next) {
		const struct region_sums *sums = __atomic_load_n(&thread->by_name[index],
								 __ATOMIC_ACQUIRE);
		for (unsigned i = 0; sums && i < TALLY_HISTOGRAM_BUCKETS; i++)
			counts[i] += region_get(sums->histograms[event][i]);
	}
}

void region_figures(const struct region_all *all, unsigned event, struct tally_region_figures *out)
{
	const struct region_sum *sum = &all->events[event];
	uint64_t counts[TALLY_HISTOGRAM_BUCKETS] = { 0 };
	*out = (struct tally_region_figures){
		.calls = all->calls,
		.recursive = all->recursive,
		.open = all->open,
		.measured = sum->measured,
		.scaled = sum->scaled,
		.total = sum->total,
		.self = tally_min_u64(sum->self, sum->total), /* each is rounded to 0 on its own */
		.max = sum->max,
		.empty = process.plan.events[event].empty,
		.pair = process.plan.events[event].pair,
		.share = 1,
	};
	if (sum->measured)
		out->mean = (double)sum->total / (double)sum->measured;
	out->sigma = sigma_of(sum);
	if (sum->enabled_ns)
		out->share = (double)sum->running_ns / (double)sum->enabled_ns;
	add_histograms(all->index, event, counts);
	out->p50 = tally_min_u64(tally_histogram_percentile(counts, 50), sum->max);
	out->p99 = tally_min_u64(tally_histogram_percentile(counts, 99), sum->max);
}

/* ---- the public functions ------------------------------------------------------- */

int tally_region_configure(const struct tally_region_options *options)
{
	struct tally_region_options chosen = { 0 };
	char *events = NULL;
	int result = tally_library_options(&chosen, sizeof(chosen), options, NULL);
	if (!result && chosen.events) {
		events = strdup(chosen.events);
		if (!events)
			result = -ENOMEM;
	}
	if (result)
		return tally_library_result(result);
	pthread_mutex_lock(&process.lock);
	char *unused = events;
	if (process.is_ready) {
		result = -EBUSY;
	} else {
		unused = process.chosen_events;
		process.chosen_events = events;
		process.chosen_subtracts = chosen.subtract_overhead;
	}
	pthread_mutex_unlock(&process.lock);
	free(unused);
	return tally_library_result(result);
}

const char *tally_region_name(size_t index)
{
	if (index < region_names())
		return process.names[index];
	return NULL;
}

const char *tally_region_event(size_t index)
{
	if (region_plan_get() && index < process.plan.event_count)
		return process.plan.events[index].name;
	return NULL;
}

const char *tally_region_missing(void)
{
	if (region_plan_get())
		return process.plan.missing;
	return "";
}

/* True if an event is the wanted one, perhaps counted in user mode only. */
static bool is_event_name(const char *name, const char *wanted)
{
	size_t length = strlen(wanted);
	return !strncmp(name, wanted, length) && (!name[length] || !strcmp(name + length, ":u"));
}

int tally_region_read(const char *region, const char *event, struct tally_region_figures *figures,
		      size_t size)
{
	struct region_all all;
	struct tally_region_figures found;
	unsigned names = region_names(), index = 0, number = 0;
	if (size < sizeof(found))
		return tally_library_result(-EINVAL);
	while (index < names && strcmp(process.names[index], region))
		index++;
	const char *wanted = tally_text_or(event, "wall"), *name;
	while ((name = tally_region_event(number)) && !is_event_name(name, wanted))
		number++;
	if (index == names || !name)
		return tally_library_result(-ENOENT);
	region_sum_up(index, &all);
	region_figures(&all, number, &found);
	memset(figures, 0, size);
	memcpy(figures, &found, sizeof(found));
	return 0;
}

__attribute__((destructor)) static void end_process(void)
{
	if (!__atomic_load_n(&process.is_ready, __ATOMIC_ACQUIRE))
		return;
	if (process.pid == getpid())
		region_report_at_exit();
	/* A copy in a plugin that is unloaded must not be called at the end of threads. */
	if (process.has_key)
		pthread_key_delete(process.key);
}
