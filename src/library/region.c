/* Measures regions: reads the clock and the thread's events where a region begins and ends, and adds
 * the difference to the sums of its name.
 *
 * Each thread has its own sums, its own stack of open regions, and its own group of events.  A small
 * lock guards the sums against a thread that reports; it is free at all other times.  A signal's
 * handler that begins a region while this thread is adding would wait for itself: its regions are
 * dropped, and counted.  When a thread ends, its sums are merged into those of the ended threads. */
#include "tally/region.h"

#include "base/error.h"
#include "library/region_internal.h"
#include "tally/group.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH_MAX = 64, SLOTS_MIN = 32 };

/* The clock and the events at one moment. */
struct reading {
	uint64_t time_ns;
	uint64_t enabled_ns, running_ns;
	uint64_t counts[TALLY_REGION_EVENTS_MAX];
	bool has_counts;
};

/* A region that has begun. */
struct frame {
	struct tally_region_sums *sums;
	struct reading start;
	double inner[TALLY_REGION_FIGURES_MAX]; /* what the regions within it measured */
	uint64_t pairs;                         /* regions within it, at any depth */
	bool is_nested;                         /* within a call of the same region */
};

struct thread {
	struct thread *next, *previous;
	struct tally_group *group; /* NULL: only the time is measured */
	bool has_started;
	volatile bool is_busy; /* this thread changes what follows: a signal's handler must not */
	atomic_flag lock;
	struct frame stack[DEPTH_MAX];
	unsigned depth, beyond;           /* open regions; those that found no room on the stack */
	struct tally_region_sums **slots; /* by hash; a power of two */
	size_t slot_count;
	struct tally_region_sums **order; /* of the first use */
	size_t count;
	uint64_t mismatches, dropped;
};

static struct {
	pthread_mutex_t lock;       /* guards what follows */
	struct thread threads;      /* head of the ring of threads that measure */
	struct tally_regions ended; /* the figures of threads that have ended */
	const char *events;         /* the expression; NULL: only the time */
	char *names[TALLY_REGION_FIGURES_MAX];
	unsigned event_count; /* with the time */
	char reason[256];
	bool is_subtracted;
	/* what an empty region measures, and what measuring one adds to those around it */
	double inside[TALLY_REGION_FIGURES_MAX], around[TALLY_REGION_FIGURES_MAX];
} all = { .lock = PTHREAD_MUTEX_INITIALIZER,
	  .threads = { .next = &all.threads, .previous = &all.threads } };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
/* initial-exec: found without a call, which a signal's handler may make, too */
static __thread struct thread *current __attribute__((tls_model("initial-exec")));

/* --- reading -------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void read_events(const struct thread *thread, struct reading *reading)
{
	struct tally_count counts[TALLY_REGION_EVENTS_MAX];
	reading->has_counts = false;
	if (!thread->group)
		return;
	long count = tally_group_read(thread->group, counts, TALLY_REGION_EVENTS_MAX);
	if (count <= 0)
		return;
	reading->has_counts = true;
	reading->enabled_ns = counts[0].enabled_ns;
	reading->running_ns = counts[0].running_ns;
	for (long i = 0; i < count && i < TALLY_REGION_EVENTS_MAX; i++)
		reading->counts[i] = counts[i].raw;
}

/* Computes what was counted between two readings.  Returns false if the events were on no counter in
 * all that time. */
static bool subtract(const struct reading *start, const struct reading *end, unsigned count,
		     double *out, bool *is_scaled)
{
	out[0] = (double)(end->time_ns - start->time_ns);
	*is_scaled = false;
	if (!start->has_counts || !end->has_counts)
		return false;
	uint64_t enabled = end->enabled_ns - start->enabled_ns;
	uint64_t running = end->running_ns - start->running_ns;
	double scale = 1;
	if (running < enabled) {
		if (!running)
			return false;
		scale = (double)enabled / (double)running;
		*is_scaled = true;
	}
	for (unsigned i = 1; i < count; i++)
		out[i] = (double)(end->counts[i - 1] - start->counts[i - 1]) * scale;
	return true;
}

/* --- names ---------------------------------------------------------------- */

static uint64_t hash_of(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
	return hash;
}

static struct tally_region_sums *make_sums(const char *name, uint64_t hash, unsigned count)
{
	struct tally_region_sums *sums = calloc(1, sizeof(*sums) + count * sizeof(*sums->sums));
	char *copy = strdup(name);
	if (!sums || !copy) {
		free(sums);
		free(copy);
		return NULL;
	}
	sums->name = copy;
	sums->hash = hash;
	sums->count = count;
	return sums;
}

static void free_sums(struct tally_region_sums *sums)
{
	free(sums->name);
	free(sums);
}

static void put_slot(struct tally_region_sums **slots, size_t slot_count,
		     struct tally_region_sums *sums)
{
	size_t at = sums->hash & (slot_count - 1);
	while (slots[at])
		at = (at + 1) & (slot_count - 1);
	slots[at] = sums;
}

static bool grow(struct thread *thread)
{
	size_t count = thread->slot_count ? thread->slot_count * 2 : SLOTS_MIN;
	struct tally_region_sums **slots = calloc(count, sizeof(*slots));
	struct tally_region_sums **order = realloc(thread->order, count * sizeof(*order));
	if (order)
		thread->order = order;
	if (!slots || !order) {
		free(slots);
		return false;
	}
	for (size_t i = 0; i < thread->count; i++)
		put_slot(slots, count, order[i]);
	free(thread->slots);
	thread->slots = slots;
	thread->slot_count = count;
	return true;
}

/* Finds the thread's sums of a name, or makes them.  NULL without memory. */
static struct tally_region_sums *find_sums(struct thread *thread, const char *name, bool makes)
{
	uint64_t hash = hash_of(name);
	for (size_t at = hash; thread->slot_count; at++) {
		struct tally_region_sums *sums = thread->slots[at & (thread->slot_count - 1)];
		if (!sums)
			break;
		if (sums->hash == hash && !strcmp(sums->name, name))
			return sums;
	}
	if (!makes || (thread->count * 2 >= thread->slot_count && !grow(thread)))
		return NULL;
	struct tally_region_sums *sums = make_sums(name, hash, all.event_count);
	if (!sums)
		return NULL;
	put_slot(thread->slots, thread->slot_count, sums);
	thread->order[thread->count++] = sums;
	return sums;
}

/* --- threads -------------------------------------------------------------- */

static void lock(struct thread *thread)
{
	while (atomic_flag_test_and_set_explicit(&thread->lock, memory_order_acquire))
		;
}

static void unlock(struct thread *thread)
{
	atomic_flag_clear_explicit(&thread->lock, memory_order_release);
}

/* Adds one thread's sums to those in `to`.  Returns 0 or -ENOMEM. */
static int merge(struct tally_regions *to, struct tally_region_sums *const *items, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct tally_region_sums *sums = NULL;
		for (size_t k = 0; k < to->count && !sums; k++)
			if (!strcmp(to->items[k]->name, items[i]->name))
				sums = to->items[k];
		if (!sums) {
			struct tally_region_sums **grown = realloc(
				to->items, (to->count + 1) * sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			to->items = grown;
			sums = make_sums(items[i]->name, items[i]->hash, items[i]->count);
			if (!sums)
				return -ENOMEM;
			to->items[to->count++] = sums;
		}
		sums->calls += items[i]->calls;
		for (unsigned n = 0; n < sums->count && n < items[i]->count; n++)
			tally_region_sum_merge(&sums->sums[n], &items[i]->sums[n]);
	}
	return 0;
}

static void release_sums(struct thread *thread)
{
	for (size_t i = 0; i < thread->count; i++)
		free_sums(thread->order[i]);
	free(thread->order);
	free(thread->slots);
}

/* At the end of a thread that measured. */
static void end_thread(void *argument)
{
	struct thread *thread = argument;
	pthread_mutex_lock(&all.lock);
	merge(&all.ended, thread->order, thread->count);
	all.ended.mismatches += thread->mismatches;
	all.ended.dropped += thread->dropped;
	all.ended.threads += thread->count > 0;
	thread->previous->next = thread->next;
	thread->next->previous = thread->previous;
	pthread_mutex_unlock(&all.lock);
	tally_group_close(thread->group);
	release_sums(thread);
	free(thread);
	current = NULL;
}

static void before_fork(void)
{
	pthread_mutex_lock(&all.lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&all.lock);
}

/* The child has one thread, and figures of its own.  What the parent's other threads had is left
 * where it is: they may have been changing it. */
static void in_child(void)
{
	tally_regions_release(&all.ended);
	all.ended = (struct tally_regions){ 0 };
	all.threads.next = all.threads.previous = &all.threads;
	if (current) {
		struct thread *thread = current;
		tally_group_close(thread->group); /* it counts the parent */
		release_sums(thread);
		*thread = (struct thread){ .next = &all.threads, .previous = &all.threads };
		all.threads.next = all.threads.previous = thread;
	}
	pthread_mutex_unlock(&all.lock);
}

static void report_at_exit(void);

/* Reads the environment, and chooses the events that can be counted here. */
static void start(void)
{
	static const char *const defaults[] = { "cycles:u,instructions:u",
						"task-clock:u,page-faults:u" };
	const char *asked = secure_getenv("TALLY_EVENTS"),
		   *subtracts = secure_getenv("TALLY_SUBTRACT");
	struct tally_group *group = NULL;
	char error[sizeof(all.reason)] = "";
	all.names[0] = strdup("time");
	all.event_count = 1;
	all.is_subtracted = subtracts && *subtracts && strcmp(subtracts, "0") != 0;
	if (asked && *asked && strcmp(asked, "none") != 0) {
		group = tally_group_open(asked, error, sizeof(error));
		all.events = asked;
		if (group && tally_group_size(group) > TALLY_REGION_EVENTS_MAX) {
			snprintf(error, sizeof(error), "TALLY_EVENTS names more than %d events",
				 TALLY_REGION_EVENTS_MAX);
			tally_group_close(group);
			group = NULL;
		}
	} else if (!asked || !*asked) {
		for (unsigned i = 0; i < 2 && !group; i++) {
			group = tally_group_open(defaults[i], error, sizeof(error));
			all.events = defaults[i];
		}
	}
	if (!group && *error)
		memcpy(all.reason, error, sizeof(error));
	if (!group)
		all.events = NULL;
	for (size_t i = 0; group && i < tally_group_size(group); i++)
		all.names[all.event_count++] = strdup(tally_group_name(group, i));
	tally_group_close(group);
	pthread_key_create(&key, end_thread);
	pthread_atfork(before_fork, after_fork, in_child);
	atexit(report_at_exit);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void begin(struct thread *thread, struct tally_region_sums *sums);
static void end(struct thread *thread, double *values);

/* Measures what measuring costs: medians over empty regions. */
static void calibrate(struct thread *thread)
{
	enum { TRIALS = 101 };
	static double inside[TALLY_REGION_FIGURES_MAX][TRIALS];
	static double around[TALLY_REGION_FIGURES_MAX][TRIALS];
	struct tally_region_sums *scratch = make_sums("", 0, all.event_count);
	if (!scratch)
		return;
	for (unsigned i = 0; i < TRIALS; i++) {
		struct reading readings[3] = { 0 };
		double apart[2][TALLY_REGION_FIGURES_MAX] = { { 0 } };
		double values[TALLY_REGION_FIGURES_MAX] = { 0 };
		bool is_scaled;
		for (unsigned r = 0; r < 3; r++) {
			if (r == 2) {
				begin(thread, scratch);
				end(thread, values);
			}
			readings[r].time_ns = now_ns();
			read_events(thread, &readings[r]);
		}
		subtract(&readings[0], &readings[1], all.event_count, apart[0], &is_scaled);
		subtract(&readings[1], &readings[2], all.event_count, apart[1], &is_scaled);
		for (unsigned n = 0; n < all.event_count; n++) {
			inside[n][i] = values[n];
			around[n][i] = apart[1][n] - apart[0][n];
		}
	}
	for (unsigned n = 0; n < all.event_count; n++) {
		qsort(inside[n], TRIALS, sizeof(double), compare_doubles);
		qsort(around[n], TRIALS, sizeof(double), compare_doubles);
		all.inside[n] = inside[n][TRIALS / 2];
		all.around[n] = around[n][TRIALS / 2];
	}
	free_sums(scratch);
}

/* Opens the thread's events. */
static void start_thread(struct thread *thread)
{
	static bool is_calibrated;
	char error[sizeof(all.reason)] = "";
	thread->has_started = true;
	if (all.events)
		thread->group = tally_group_open(all.events, error, sizeof(error));
	pthread_mutex_lock(&all.lock);
	if (*error && !*all.reason)
		memcpy(all.reason, error, sizeof(error));
	bool calibrates = all.is_subtracted && !is_calibrated;
	is_calibrated |= calibrates;
	pthread_mutex_unlock(&all.lock);
	if (calibrates)
		calibrate(thread);
}

/* Returns the calling thread's state; NULL without memory. */
static struct thread *this_thread(void)
{
	if (current)
		return current;
	pthread_once(&once, start);
	struct thread *thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	pthread_setspecific(key, thread);
	pthread_mutex_lock(&all.lock);
	thread->next = &all.threads;
	thread->previous = all.threads.previous;
	thread->previous->next = all.threads.previous = thread;
	pthread_mutex_unlock(&all.lock);
	current = thread;
	return thread;
}

/* --- beginning and ending -------------------------------------------------- */

static void begin(struct thread *thread, struct tally_region_sums *sums)
{
	struct frame *frame = &thread->stack[thread->depth++];
	frame->sums = sums;
	frame->is_nested = sums->active++;
	frame->pairs = 0;
	memset(frame->inner, 0, sizeof(frame->inner));
	read_events(thread, &frame->start);
	frame->start.time_ns = now_ns();
}

/* Ends the innermost region, and stores what it measured. */
static void end(struct thread *thread, double *values)
{
	struct reading now;
	bool is_scaled;
	now.time_ns = now_ns();
	read_events(thread, &now);
	struct frame *frame = &thread->stack[--thread->depth], *outer = NULL;
	if (thread->depth)
		outer = frame - 1;
	bool has_counts = subtract(&frame->start, &now, all.event_count, values, &is_scaled);
	unsigned count = has_counts ? all.event_count : 1;
	for (unsigned i = 0; i < count && all.is_subtracted; i++) {
		values[i] -= all.inside[i] + (double)frame->pairs * all.around[i];
		if (values[i] < 0)
			values[i] = 0;
	}
	lock(thread);
	frame->sums->calls++;
	for (unsigned i = 0; i < count; i++) {
		struct tally_region_sum *sum = &frame->sums->sums[i];
		double self = values[i] - frame->inner[i];
		sum->self += self > 0 ? self : 0;
		sum->scaled += i && is_scaled;
		if (!frame->is_nested)
			tally_region_sum_add(sum, values[i]);
	}
	unlock(thread);
	frame->sums->active--;
	if (!outer)
		return;
	outer->pairs += 1 + frame->pairs;
	for (unsigned i = 0; i < count; i++)
		outer->inner[i] += values[i];
}

void tally_region_begin(const char *name)
{
	struct thread *thread = this_thread();
	if (!thread)
		return;
	if (thread->is_busy) {
		__atomic_fetch_add(&thread->dropped, 1, __ATOMIC_RELAXED);
		return;
	}
	thread->is_busy = true;
	if (!thread->has_started)
		start_thread(thread);
	struct tally_region_sums *sums = find_sums(thread, name, false);
	if (!sums) {
		/* the table of names changes: a report must not read it meanwhile */
		lock(thread);
		sums = find_sums(thread, name, true);
		unlock(thread);
	}
	if (sums && thread->depth < DEPTH_MAX)
		begin(thread, sums);
	else
		thread->beyond++;
	thread->is_busy = false;
}

void tally_region_end(const char *name)
{
	struct thread *thread = current;
	if (!thread || thread->is_busy)
		return;
	thread->is_busy = true;
	if (thread->beyond) {
		thread->beyond--;
		thread->dropped++;
	} else {
		unsigned at = thread->depth;
		while (at && strcmp(thread->stack[at - 1].sums->name, name) != 0)
			at--;
		if (!at || at < thread->depth)
			thread->mismatches++;
		double values[TALLY_REGION_FIGURES_MAX];
		while (at && thread->depth >= at)
			end(thread, values);
	}
	thread->is_busy = false;
}

/* --- figures --------------------------------------------------------------- */

int tally_regions_gather(struct tally_regions *regions)
{
	*regions = (struct tally_regions){ 0 };
	pthread_mutex_lock(&all.lock);
	int result = merge(regions, all.ended.items, all.ended.count);
	regions->mismatches = all.ended.mismatches;
	regions->dropped = all.ended.dropped;
	regions->threads = all.ended.threads;
	for (struct thread *thread = all.threads.next; !result && thread != &all.threads;
	     thread = thread->next) {
		lock(thread);
		result = merge(regions, thread->order, thread->count);
		regions->mismatches += thread->mismatches;
		regions->dropped += thread->dropped;
		regions->threads += thread->count > 0;
		unlock(thread);
	}
	regions->event_count = all.event_count;
	for (unsigned i = 0; i < all.event_count; i++)
		regions->events[i] = all.names[i];
	if (*all.reason)
		regions->reason = all.reason;
	regions->is_subtracted = all.is_subtracted;
	pthread_mutex_unlock(&all.lock);
	return result;
}

void tally_regions_release(struct tally_regions *regions)
{
	for (size_t i = 0; i < regions->count; i++)
		free_sums(regions->items[i]);
	free(regions->items);
	regions->items = NULL;
	regions->count = 0;
}

long tally_region_read(const char *name, struct tally_region_figure *figures, size_t size,
		       uint64_t *calls)
{
	struct tally_regions regions;
	const struct tally_region_sums *sums = NULL;
	long result = tally_regions_gather(&regions);
	for (size_t i = 0; !result && !sums && i < regions.count; i++)
		if (!strcmp(regions.items[i]->name, name))
			sums = regions.items[i];
	if (!result && !sums)
		result = -ENOENT;
	if (!result) {
		result = sums->count;
		if (calls)
			*calls = sums->calls;
		for (size_t i = 0; i < sums->count && i < size; i++) {
			tally_region_figure_of(&sums->sums[i], &figures[i]);
			figures[i].event = regions.events[i];
			figures[i].unit = i ? "" : "ns";
		}
	}
	tally_regions_release(&regions);
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

static int report(int fd, bool as_json)
{
	struct tally_regions regions;
	int result = tally_regions_gather(&regions);
	if (!result && regions.count)
		result = tally_regions_write(&regions, fd, as_json);
	tally_regions_release(&regions);
	return result;
}

int tally_region_report(int fd, const char *format)
{
	bool as_json = !strcmp(format, "json");
	int result = -EINVAL;
	if (as_json || !strcmp(format, "table"))
		result = report(fd, as_json);
	if (result >= 0)
		return 0;
	errno = -result;
	return -1;
}

static void report_at_exit(void)
{
	const char *asked = secure_getenv("TALLY_REPORT");
	if (!asked || !*asked)
		return;
	bool as_json = !strncmp(asked, "json", 4);
	const char *file = asked + (as_json ? 4 : 5);
	if ((!as_json && strncmp(asked, "table", 5) != 0) || (*file && *file != ':')) {
		dprintf(STDERR_FILENO, "libtally: TALLY_REPORT is '%s', and not table or json\n",
			asked);
		return;
	}
	int fd = STDERR_FILENO;
	if (*file)
		fd = open(file + 1, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int result = fd < 0 ? -errno : report(fd, as_json);
	if (result < 0 && *file)
		dprintf(STDERR_FILENO, "libtally: %s can't be written: %s\n", file + 1,
			tally_errno_text(result));
	if (*file && fd >= 0)
		close(fd);
}
