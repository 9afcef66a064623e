/* Tracepoints of a program's own, declared in a header like the kernel's (its <linux/tracepoint.h>
 * and TRACE_EVENT()):
 *
 *     #include "tally/tracepoint.h"
 *
 *     TALLY_TRACE_CLASS(order,
 *             TALLY_PROTO(uint64_t id, int32_t customer, const char *article,
 *                         const uint32_t *parts, unsigned count),
 *             TALLY_ARGS(id, customer, article, parts, count),
 *             TALLY_FIELDS(TALLY_FIELD(uint64_t, id),
 *                          TALLY_FIELD(int32_t, customer),
 *                          TALLY_STRING(article, article),
 *                          TALLY_DYNAMIC(uint32_t, parts, count)),
 *             TALLY_ASSIGN(entry->id = id;
 *                          entry->customer = customer;
 *                          tally_dynamic_copy(entry, parts, parts);),
 *             TALLY_PRINT("id=%llu customer=%d article=%s", (unsigned long long)REC->id,
 *                         REC->customer, __get_str(article)))
 *     TALLY_TRACE_EVENT(order, order_placed)
 *     TALLY_TRACE_EVENT(order, order_paid)
 *     TALLY_TRACE_GROUP(shop, order_placed, order_paid)
 *
 * Any number of C or C++ files include that header; exactly one of them defines TALLY_TRACE_DEFINE
 * first.  A hit is
 *
 *     TALLY_TRACE(order_placed, id, customer, name, parts, count);
 *
 * Without listeners a hit is a load and a branch that is not taken, and does not evaluate its
 * arguments.  tally_trace_register(engine, &tally_trace_group_shop) gives the events their ids.
 * From then on, perf events of type TRACEPOINT may be opened on them, and text listeners and probes
 * may be added.
 *
 * A class says what is stored, how, and how it reads as text.  Events share classes.  Fields:
 *     TALLY_FIELD(type, name)          an integer of any width, a bool, an enum
 *     TALLY_POINTER(name)              an address
 *     TALLY_ARRAY(type, name, count)   in place; an array of char reads as a string
 *     TALLY_STRING(name, source)       copied automatically from `source` (an expression of the
 *                                      arguments)
 *     TALLY_DYNAMIC(type, name, count) as many elements as the expression `count` says; filled by
 *                                      tally_dynamic_copy(entry, name, from), or directly at
 *                                      tally_dynamic(entry, name)
 * There are 1 to 32 fields, and at least one argument.  In TALLY_ASSIGN, `entry` is the record.
 * Fields that it doesn't set are zero, except dynamic arrays, whose bytes it must set.  In
 * TALLY_PRINT, `REC` is the record.  The arguments of TALLY_PRINT are C, but trace tools read their
 * text as well, so they may use only what those tools know: REC->field, operators, casts, numbers,
 * __get_str(), __get_dynamic_array(), __get_dynamic_array_len(), __print_symbolic(value, { 0, "off"
 * }, …), __print_flags(value, "|", { 1, "read" }, …), __print_hex(bytes, length),
 * __print_array(array, count, element size).  Constants that it names must be listed in
 * TALLY_CONSTANTS of TALLY_TRACE_CLASS_WITH.
 *
 * [surface], [cpu] and [hit] are explained in tally/engine.h.  Errors are -errno.  C99 and C++; gcc
 * or clang. */
#ifndef TALLY_TRACEPOINT_H
#define TALLY_TRACEPOINT_H

#include "tally/engine.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The largest record in bytes.  A larger one is dropped and counted
 * (tally_engine_statistics.raw_too_large). */
#define TALLY_TRACE_SIZE_MAX 8192
/* The longest line of text in bytes, with its NUL.  A longer one is cut. */
#define TALLY_TRACE_LINE_MAX 4096

/* The beginning of every record. */
struct tally_trace_common {
	uint16_t common_type;         /* the event's id */
	uint8_t common_flags;         /* 0x08 in an interrupt, 0x10 in a softirq, 0x40 in an NMI */
	uint8_t common_preempt_count; /* always 0 */
	int32_t common_pid;           /* tid; 0: idle */
};

enum tally_trace_field_kind { TALLY_TRACE_NUMBER, TALLY_TRACE_ARRAY, TALLY_TRACE_DYNAMIC };

struct tally_trace_field {
	const char *type, *name; /* `type` of an array: the element's type */
	/* bytes in the fixed part; a dynamic field has a word there: offset | size << 16 */
	uint32_t offset, size;
	uint32_t element_size;
	int is_signed;
	enum tally_trace_field_kind kind;
};

struct tally_trace_event;
struct tally_trace_text; /* a line being written: tracepoint_text.c */

/* a function whose true type depends on the class, such as a probe */
typedef void tally_trace_function(void);

/* Requests to a class.  `data` depends on the request: */
enum tally_trace_operation {
	TALLY_TRACE_REGISTER,        /* a struct tally_trace_listener, which may now get lines */
	TALLY_TRACE_UNREGISTER,
	TALLY_TRACE_PERF_REGISTER,   /* NULL: the first perf event is being opened */
	TALLY_TRACE_PERF_UNREGISTER, /* NULL: the last was closed */
	TALLY_TRACE_PERF_OPEN,       /* this and those below: the struct tally_pmu_event */
	TALLY_TRACE_PERF_CLOSE,
	/* 1 from the class: don't put it on the CPU's list.  It is scheduled in. [cpu] */
	TALLY_TRACE_PERF_ADD,
	/* 1 from the class: it isn't on the list.  It is scheduled out. [cpu] */
	TALLY_TRACE_PERF_DEL
};

struct tally_trace_class {
	const char *name;
	const struct tally_trace_field *fields;
	unsigned field_count;
	uint32_t size;              /* bytes of the fixed part, with the common fields */
	const char *print;          /* TALLY_PRINT(…) as in the source */
	const char *constant_names; /* TALLY_CONSTANTS(…) as in the source */
	const int64_t *constants;   /* the values, behind an unused first word */
	void (*text)(struct tally_trace_text *text, const void *record);
	tally_trace_function *text_probe, *perf_probe; /* the built-in ones */
	/* Handles a request; NULL: tally_trace_operate(), which a class's own function calls for
	 * requests that it leaves to it.  Returns 0 or -errno.  An error fails REGISTER,
	 * PERF_REGISTER and PERF_OPEN; for PERF_ADD and PERF_DEL see above; otherwise it is
	 * ignored.  Must be set before the events are registered. */
	int (*operate)(struct tally_trace_event *event, enum tally_trace_operation operation,
		       void *data);
};

struct tally_trace_probe {
	tally_trace_function *function; /* void (*)(void *data, PROTO); NULL ends a list */
	void *data;
};

/* Programs may read name, of, group and id.  The rest is the engine's. */
struct tally_trace_event {
	/* number of probes on its list; while it is 0, a hit reads nothing else */
	uint32_t enabled;
	uint32_t id;                   /* attr.config; 0: not registered */
	const char *name;
	struct tally_trace_class *of;
	const char *group;
	struct tally_engine *engine;   /* NULL: not registered */
	struct tally_trace_probes *probes;
	struct tally_trace_lists *lists; /* the perf events, by CPU; NULL: none */
	struct tally_trace_event *next;
	/* number of perf events, and of those that do more than count */
	uint32_t perf_events, perf_more;
	uint32_t perf_alone; /* TALLY_TRACE_ALONE or _COUNTED: perf's probe is the whole list */
	int raw_for_anybody;           /* copied from the group */
};

struct tally_trace_group {
	const char *name;
	struct tally_trace_event *const *events;
	size_t count;
	/* non-zero: RAW data of a task's own hits need no privilege, as for Linux's system calls;
	 * set before registration */
	int raw_for_anybody;
};

/* [surface] Gives each event an id and makes it known: all events of the group or none.  Returns 0;
 * -EINVAL if tools could not read the print format of a class; -EBUSY if an event is registered
 * already; -EEXIST if there is an event of that group and name; -ENOSPC if no id is left; -ENOMEM.
 * The group stays the caller's, and must live until it is unregistered. */
int tally_trace_register(struct tally_engine *engine, struct tally_trace_group *group);
/* [surface] Returns 0, -ENOENT if an event isn't registered with this engine, or -EBUSY while one
 * of its events has listeners.  tally_engine_free() unregisters all groups. */
int tally_trace_unregister(struct tally_engine *engine, struct tally_trace_group *group);

/* For programs without an engine of their own: lets 'tally stat --provider process -e GROUP:NAME' count
 * the events.  The function is libtally's, where it does nothing; the process provider's object, which
 * tally preloads, puts its own in place of it.  So the program must be linked with the shared
 * library.  Call it before the first hits that matter, or let TALLY_TRACE_PUBLISH(group), at file
 * scope, call it when the program or library is loaded.  The group must live as long as the process.
 * Returns 0. */
int tally_trace_publish(struct tally_trace_group *group);

#define TALLY_TRACE_PUBLISH(group) \
	__attribute__((constructor)) static void tally_trace_publish_##group(void) \
	{ \
		tally_trace_publish(&tally_trace_group_##group); \
	}

/* [surface] Walks the registered events: NULL starts and ends the walk. */
struct tally_trace_event *tally_trace_next(struct tally_engine *engine,
					   const struct tally_trace_event *event);
/* Returns the event with that id, or NULL. */
struct tally_trace_event *tally_trace_find(struct tally_engine *engine, uint64_t id);

/* Writes the text of tracefs's events/GROUP/NAME/format, like snprintf(): returns its length
 * without NUL, whatever `size` is. -EINVAL: see tally_trace_register(). */
long tally_trace_format(const struct tally_trace_event *event, char *text, size_t size);

/* Checks a filter for PERF_EVENT_IOC_SET_FILTER.  Returns 0, or -EINVAL with the *position of the
 * error in it and a *reason (static). */
int tally_trace_check_filter(const struct tally_trace_event *event, const char *filter,
			     size_t *position, const char **reason);

/* A hit, as a listener gets it. [hit] */
struct tally_trace_line {
	const struct tally_trace_event *event;
	/* by the print format, without newline, NUL-terminated; valid during the call */
	const char *text;
	size_t length;
	const void *record;
	uint32_t record_size;
	unsigned cpu;
};
struct tally_trace_listener;
typedef void tally_trace_write(void *data, const struct tally_trace_line *line);

/* [surface] Calls `write` with a line of text for each hit of the event until
 * tally_trace_unlisten().  A hit while a line is written on the same CPU and level is dropped and
 * counted.  Returns 0, -ENOMEM, -ENODEV if the event isn't registered, or an error of the class. */
int tally_trace_listen(struct tally_trace_event *event, tally_trace_write *write, void *data,
		       struct tally_trace_listener **out);
void tally_trace_unlisten(struct tally_trace_listener *listener);

/* The default implementation of a class's `operate`. */
int tally_trace_operate(struct tally_trace_event *event, enum tally_trace_operation operation,
			void *data);

/* [surface] Add and remove probes with private data.  Use tally_trace_add_EVENT() and
 * tally_trace_remove_EVENT(), which check the function's type.  Probes are called in the order in
 * which they were added, on the hit's CPU and level, and may hit tracepoints themselves.  Return 0;
 * -EEXIST for the same function with the same data; -ENOENT; -ENODEV if the event isn't registered;
 * -ENOMEM. */
int tally_trace_probe_add(struct tally_trace_event *event, tally_trace_function *function,
			  void *data);
int tally_trace_probe_remove(struct tally_trace_event *event, tally_trace_function *function,
			     void *data);
/* [surface] Returns true if every hit that may have seen a removed probe has ended.  Until then the
 * probe's data must stay. */
bool tally_trace_quiet(struct tally_engine *engine);

/* --- for the code that the macros generate -------------------------------- */

/* A hit in progress.  The first seven words are set before it begins, the engine sets the
 * others. */
struct tally_trace_hit {
	struct tally_trace_event *event;
	uint64_t count, address;
	struct tally_engine_task *task; /* a task whose events get the hit as well, or NULL */
	/* the hit's address: see TALLY_TP_HERE(); the return address of the hit's function */
	uintptr_t ip, back;
	const uintptr_t *frame;         /* frame of that function */
	void *record;
	void *cpu;
	uint32_t size;
	int level;
};

#define TALLY_TRACE_ALONE 1u /* tally_trace_event.perf_alone: perf's probe is the only one */
#define TALLY_TRACE_COUNTED 2u /* … and its events only count */

/* A hit that is only counted, of an event that is TALLY_TRACE_COUNTED. [hit] */
void tally_trace_count(struct tally_trace_event *event, uint64_t count);
/* Begins a hit.  Returns the place for its record of `size` bytes (fixed and dynamic part, without
 * padding), whose common fields are set and whose padding is zero; or NULL if nothing is to be
 * written: then the hit is over. [hit] */
void *tally_trace_begin(struct tally_trace_hit *hit, size_t size);
/* Delivers the record and ends the hit. [hit] */
void tally_trace_end(struct tally_trace_hit *hit);
/* The same for a text listener and its event. */
void *tally_trace_begin_line(struct tally_trace_hit *hit, struct tally_trace_listener *listener,
			     size_t size);
void tally_trace_end_line(struct tally_trace_hit *hit, struct tally_trace_listener *listener);

/* Returns the list of probes, and sets a mark that it is being walked, which tally_trace_walked()
 * clears. [hit] */
const struct tally_trace_probe *tally_trace_walk(struct tally_trace_event *event, void **mark);
void tally_trace_walked(void *mark);

struct tally_trace_bytes {
	const void *bytes;
	uint32_t size;
};

struct tally_trace_symbol {
	int64_t value;
	const char *name;
};

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void tally_trace_print(struct tally_trace_text *text, const char *format, ...);
const char *tally_trace_symbolic(struct tally_trace_text *text, int64_t value,
				 const struct tally_trace_symbol *symbols, size_t count);
const char *tally_trace_flags(struct tally_trace_text *text, const char *delimiter, uint64_t value,
			      const struct tally_trace_symbol *symbols, size_t count);
const char *tally_trace_hex(struct tally_trace_text *text, const void *bytes, long length);
const char *tally_trace_array(struct tally_trace_text *text, const void *array, long count,
			      long element_size);

#ifdef __cplusplus
}
#endif

/* Reserves room for `count` elements at the end of a record of *total bytes.  Returns the word that
 * says where they are.  Once *total exceeds the maximum, it stays above it. */
static inline uint32_t tally_trace_room(size_t *total, size_t count, size_t size, size_t alignment)
{
	size_t at = (*total + alignment - 1) & ~(alignment - 1);
	if (at > TALLY_TRACE_SIZE_MAX || count > (TALLY_TRACE_SIZE_MAX - at) / size) {
		*total = TALLY_TRACE_SIZE_MAX + 1;
		return 0;
	}
	*total = at + count * size;
	return (uint32_t)(at | (count * size) << 16);
}

static inline const char *tally_trace_source(const char *string)
{
	return string ? string : "(null)";
}

/* Copies as much as there is room for: the string may have changed since it was measured. */
static inline void tally_trace_copy(void *record, uint32_t word, const char *string)
{
	char *to = (char *)record + (word & 0xffff);
	size_t room = word >> 16, i = 0;
	for (; i + 1 < room && string[i]; i++)
		to[i] = string[i];
	for (; i < room; i++)
		to[i] = '\0';
}

/* Clears the bytes that alignment left free. */
static inline void tally_trace_clear(void *record, size_t from, uint32_t word)
{
	for (; from < (word & 0xffff); from++)
		((char *)record)[from] = '\0';
}

static inline struct tally_trace_bytes tally_trace_bytes_at(const void *record, uint32_t word)
{
	struct tally_trace_bytes bytes;
	bytes.bytes = (const char *)record + (word & 0xffff);
	bytes.size = word >> 16;
	return bytes;
}

static inline void tally_trace_copy_bytes(void *record, uint32_t word, const void *from)
{
	if (word >> 16)
		__builtin_memcpy((char *)record + (word & 0xffff), from, word >> 16);
}

/* Copy all of a dynamic array from `from`; get its address. */
#define tally_dynamic_copy(entry, name, from) \
	tally_trace_copy_bytes(entry, (entry)->tally_loc_##name, from)
#define tally_dynamic(entry, name) \
	((void *)((char *)(entry) + ((entry)->tally_loc_##name & 0xffff)))

/* --- declaring ------------------------------------------------------------ */

#define TALLY_PROTO(...) (__VA_ARGS__)
#define TALLY_ARGS(...) (__VA_ARGS__)
#define TALLY_FIELDS(...) (__VA_ARGS__)
#define TALLY_ASSIGN(...) (__VA_ARGS__)
#define TALLY_PRINT(...) tally_trace_print(tally_text, __VA_ARGS__)

#define TALLY_FIELD(type, name) (NUMBER, type, name)
#define TALLY_POINTER(name) (POINTER, name)
#define TALLY_ARRAY(type, name, count) (ARRAY, type, name, count)
#define TALLY_DYNAMIC(type, name, count) (DYNAMIC, type, name, count)
#define TALLY_STRING(name, source) (STRING, name, source)

/* For TALLY_TRACE_CLASS_WITH: statements that set what a hit brings to perf events (SPEC E2).  They
 * can use the arguments. */
#define TALLY_HIT(...) (__VA_ARGS__)
/* the number that the hit adds to counts; default 1 */
#define tally_count(value) (tally_hit->count = (uint64_t)(value))
#define tally_address(value) \
	(tally_hit->address = (uint64_t)(uintptr_t)(value)) /* PERF_SAMPLE_ADDR */
#define tally_task(value) (tally_hit->task = (value)) /* events on this task get the hit as well */
/* Enumerators and macros that TALLY_PRINT uses. */
#define TALLY_CONSTANTS(...) (0, __VA_ARGS__)

/* Visibility of the events' objects.  They are hit from within one program or library: hidden saves
 * a load. */
#ifndef TALLY_TRACE_VISIBILITY
#define TALLY_TRACE_VISIBILITY __attribute__((visibility("hidden")))
#endif

#ifdef __cplusplus
#define TALLY_TP_EXTERN extern "C"
#else
#define TALLY_TP_EXTERN extern
#endif

/* Hits a tracepoint. */
#define TALLY_TRACE(event, ...) \
	do { \
		if (TALLY_TRACE_ENABLED(event)) { \
			tally_trace_of_##event()(&tally_trace_event_##event, TALLY_TP_HERE(), \
						 __VA_ARGS__); \
			TALLY_TP_STAY(); \
		} \
	} while (0)

/* The address of a hit.  The call may be the function's last jump (a tail call), so the return
 * address need not be in that function.  On machines where the address can't be read,
 * TALLY_TP_STAY() keeps the call from becoming a jump.  (clang makes a frame for calls that it
 * can't turn into jumps before it tests the branch.  So in a leaf function compiled by clang, a
 * tracepoint costs only a branch as long as its arguments fit into registers: up to four.) */
#if defined(__x86_64__)
#define TALLY_TP_HERE()                                                                   \
	__extension__({                                                                    \
		uintptr_t tally_here;                                                      \
		__asm__ __volatile__("lea 0(%%rip), %0" : "=r"(tally_here));               \
		tally_here;                                                                \
	})
#define TALLY_TP_STAY() ((void)0)
#elif defined(__aarch64__)
#define TALLY_TP_HERE()                                                                   \
	__extension__({                                                                    \
		uintptr_t tally_here;                                                      \
		__asm__ __volatile__("adr %0, ." : "=r"(tally_here));                      \
		tally_here;                                                                \
	})
#define TALLY_TP_STAY() ((void)0)
#else
#define TALLY_TP_HERE() ((uintptr_t)0)
#define TALLY_TP_STAY() __asm__ __volatile__("")
#endif

/* True if the event has listeners.  For work that only the hit needs. */
#define TALLY_TRACE_ENABLED(event) \
	__builtin_expect( \
		__atomic_load_n(&tally_trace_event_##event.enabled, __ATOMIC_RELAXED) != 0, 0)

#define TALLY_TP_OPEN(...) __VA_ARGS__
#define TALLY_TP_COUNT(...) \
	TALLY_TP_COUNT_(__VA_ARGS__, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, \
			17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define TALLY_TP_COUNT_(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16, \
			_17, _18, _19, _20, _21, _22, _23, _24, _25, _26, _27, _28, _29, _30, _31, \
			_32, count, ...) \
	count
#define TALLY_TP_JOIN(a, b) TALLY_TP_JOIN_(a, b)
#define TALLY_TP_JOIN_(a, b) a##b
/* m(c, x) for each x. */
#define TALLY_TP_EACH(m, c, ...) \
	TALLY_TP_JOIN(TALLY_TP_EACH_, TALLY_TP_COUNT(__VA_ARGS__))(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_OF(m, c, list) TALLY_TP_EACH_OF_(m, c, TALLY_TP_OPEN list)
#define TALLY_TP_EACH_OF_(m, ...) TALLY_TP_EACH(m, __VA_ARGS__)
#define TALLY_TP_EACH_1(m, c, x) m(c, x)
#define TALLY_TP_EACH_2(m, c, x, ...) m(c, x) TALLY_TP_EACH_1(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_3(m, c, x, ...) m(c, x) TALLY_TP_EACH_2(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_4(m, c, x, ...) m(c, x) TALLY_TP_EACH_3(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_5(m, c, x, ...) m(c, x) TALLY_TP_EACH_4(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_6(m, c, x, ...) m(c, x) TALLY_TP_EACH_5(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_7(m, c, x, ...) m(c, x) TALLY_TP_EACH_6(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_8(m, c, x, ...) m(c, x) TALLY_TP_EACH_7(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_9(m, c, x, ...) m(c, x) TALLY_TP_EACH_8(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_10(m, c, x, ...) m(c, x) TALLY_TP_EACH_9(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_11(m, c, x, ...) m(c, x) TALLY_TP_EACH_10(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_12(m, c, x, ...) m(c, x) TALLY_TP_EACH_11(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_13(m, c, x, ...) m(c, x) TALLY_TP_EACH_12(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_14(m, c, x, ...) m(c, x) TALLY_TP_EACH_13(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_15(m, c, x, ...) m(c, x) TALLY_TP_EACH_14(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_16(m, c, x, ...) m(c, x) TALLY_TP_EACH_15(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_17(m, c, x, ...) m(c, x) TALLY_TP_EACH_16(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_18(m, c, x, ...) m(c, x) TALLY_TP_EACH_17(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_19(m, c, x, ...) m(c, x) TALLY_TP_EACH_18(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_20(m, c, x, ...) m(c, x) TALLY_TP_EACH_19(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_21(m, c, x, ...) m(c, x) TALLY_TP_EACH_20(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_22(m, c, x, ...) m(c, x) TALLY_TP_EACH_21(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_23(m, c, x, ...) m(c, x) TALLY_TP_EACH_22(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_24(m, c, x, ...) m(c, x) TALLY_TP_EACH_23(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_25(m, c, x, ...) m(c, x) TALLY_TP_EACH_24(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_26(m, c, x, ...) m(c, x) TALLY_TP_EACH_25(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_27(m, c, x, ...) m(c, x) TALLY_TP_EACH_26(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_28(m, c, x, ...) m(c, x) TALLY_TP_EACH_27(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_29(m, c, x, ...) m(c, x) TALLY_TP_EACH_28(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_30(m, c, x, ...) m(c, x) TALLY_TP_EACH_29(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_31(m, c, x, ...) m(c, x) TALLY_TP_EACH_30(m, c, __VA_ARGS__)
#define TALLY_TP_EACH_32(m, c, x, ...) m(c, x) TALLY_TP_EACH_31(m, c, __VA_ARGS__)

/* what_KIND(c, …) of a field. */
#define TALLY_TP_FIELD(what, c, field) TALLY_TP_FIELD_(what, c, TALLY_TP_OPEN field)
#define TALLY_TP_FIELD_(...) TALLY_TP_FIELD__(__VA_ARGS__)
#define TALLY_TP_FIELD__(what, c, kind, ...) what##_##kind(c, __VA_ARGS__)

#define TALLY_TP_MEMBER(c, field) TALLY_TP_FIELD(TALLY_TP_MEMBER, c, field)
#define TALLY_TP_MEMBER_NUMBER(c, type, name) type name;
#define TALLY_TP_MEMBER_POINTER(c, name) const void *name;
#define TALLY_TP_MEMBER_ARRAY(c, type, name, count) type name[count];
#define TALLY_TP_MEMBER_DYNAMIC(c, type, name, count) uint32_t tally_loc_##name;
#define TALLY_TP_MEMBER_STRING(c, name, source) uint32_t tally_loc_##name;

/* A class's record, and the functions that its events call. */
#define TALLY_TP_DECLARE(name, proto, fields) \
	struct tally_trace_record_##name { \
		struct tally_trace_common common; \
		TALLY_TP_EACH_OF(TALLY_TP_MEMBER, name, fields) \
	}; \
	typedef void tally_trace_function_##name(void *data, TALLY_TP_OPEN proto); \
	TALLY_TP_EXTERN void tally_trace_hit_##name(struct tally_trace_event *tally_event, \
						    uintptr_t tally_ip, TALLY_TP_OPEN proto) \
		TALLY_TRACE_VISIBILITY; \
	TALLY_TP_EXTERN struct tally_trace_class tally_trace_class_##name TALLY_TRACE_VISIBILITY; \
	typedef void tally_trace_hits_##name(struct tally_trace_event *tally_event, \
					     uintptr_t tally_ip, TALLY_TP_OPEN proto);

#define TALLY_TP_DECLARE_EVENT(class_name, event) \
	TALLY_TP_EXTERN struct tally_trace_event tally_trace_event_##event TALLY_TRACE_VISIBILITY; \
	static inline __attribute__((unused)) \
	tally_trace_hits_##class_name *tally_trace_of_##event(void) \
	{ \
		return tally_trace_hit_##class_name; \
	} \
	static inline __attribute__((unused)) int tally_trace_add_##event( \
		tally_trace_function_##class_name *function, void *data) \
	{ \
		return tally_trace_probe_add(&tally_trace_event_##event, \
					     (tally_trace_function *)function, data); \
	} \
	static inline __attribute__((unused)) int tally_trace_remove_##event( \
		tally_trace_function_##class_name *function, void *data) \
	{ \
		return tally_trace_probe_remove(&tally_trace_event_##event, \
						(tally_trace_function *)function, data); \
	}

#define TALLY_TP_DECLARE_GROUP(group) \
	TALLY_TP_EXTERN struct tally_trace_group tally_trace_group_##group TALLY_TRACE_VISIBILITY;

#ifndef TALLY_TRACE_DEFINE

#define TALLY_TRACE_CLASS(name, proto, args, fields, assign, print) \
	TALLY_TP_DECLARE(name, proto, fields)
/* With TALLY_HIT(…), which may be empty, and TALLY_CONSTANTS(…) with at least one constant. */
#define TALLY_TRACE_CLASS_WITH(name, proto, args, fields, assign, print, hit, constants) \
	TALLY_TP_DECLARE(name, proto, fields)
#define TALLY_TRACE_EVENT(class_name, event) TALLY_TP_DECLARE_EVENT(class_name, event)
/* A group of at most 32 events. */
#define TALLY_TRACE_GROUP(group, ...) TALLY_TP_DECLARE_GROUP(group)

#else /* TALLY_TRACE_DEFINE: in exactly one file */

#define TALLY_TRACE_CLASS(name, proto, args, fields, assign, print) \
	TALLY_TP_DECLARE(name, proto, fields) \
	TALLY_TP_DEFINE(name, proto, args, fields, assign, print, #print, (), (0), "")
#define TALLY_TRACE_CLASS_WITH(name, proto, args, fields, assign, print, hit, constants) \
	TALLY_TP_DECLARE(name, proto, fields) \
	TALLY_TP_DEFINE(name, proto, args, fields, assign, print, #print, hit, constants, \
			#constants)
#define TALLY_TRACE_EVENT(class_name, event) \
	TALLY_TP_DECLARE_EVENT(class_name, event) \
	struct tally_trace_event tally_trace_event_##event = { \
		0, 0, #event, &tally_trace_class_##class_name, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
	};
#define TALLY_TRACE_GROUP(group, ...) \
	TALLY_TP_DECLARE_GROUP(group) \
	static struct tally_trace_event *const tally_trace_events_of_##group[] = { TALLY_TP_EACH( \
		TALLY_TP_ADDRESS, group, __VA_ARGS__) }; \
	struct tally_trace_group tally_trace_group_##group = { \
		#group, tally_trace_events_of_##group, \
		sizeof(tally_trace_events_of_##group) / sizeof(tally_trace_events_of_##group[0]), \
		0 \
	};
#define TALLY_TP_ADDRESS(group, event) &tally_trace_event_##event,

#define TALLY_TP_SIGNED(type) ((type)-1 < (type)1)
#define TALLY_TP_OFFSET(c, member) offsetof(struct tally_trace_record_##c, member)
#define TALLY_TP_DESCRIBE(c, field) TALLY_TP_FIELD(TALLY_TP_DESCRIBE, c, field)
#define TALLY_TP_DESCRIBE_NUMBER(c, type, name) \
	{ #type, \
	  #name, \
	  TALLY_TP_OFFSET(c, name), \
	  sizeof(type), \
	  sizeof(type), \
	  TALLY_TP_SIGNED(type), \
	  TALLY_TRACE_NUMBER },
#define TALLY_TP_DESCRIBE_POINTER(c, name) \
	{ "const void *", #name, TALLY_TP_OFFSET(c, name), sizeof(void *), \
	  sizeof(void *), 0,     TALLY_TRACE_NUMBER },
#define TALLY_TP_DESCRIBE_ARRAY(c, type, name, count) \
	{ #type, \
	  #name, \
	  TALLY_TP_OFFSET(c, name), \
	  sizeof(type) * (count), \
	  sizeof(type), \
	  TALLY_TP_SIGNED(type), \
	  TALLY_TRACE_ARRAY },
#define TALLY_TP_DESCRIBE_DYNAMIC(c, type, name, count) \
	{ #type, \
	  #name, \
	  TALLY_TP_OFFSET(c, tally_loc_##name), \
	  4, \
	  sizeof(type), \
	  TALLY_TP_SIGNED(type), \
	  TALLY_TRACE_DYNAMIC },
#define TALLY_TP_DESCRIBE_STRING(c, name, source) \
	{ "char", \
	  #name, \
	  TALLY_TP_OFFSET(c, tally_loc_##name), \
	  4, \
	  1, \
	  TALLY_TP_SIGNED(char), \
	  TALLY_TRACE_DYNAMIC },

#define TALLY_TP_UNUSED(c, argument) (void)(argument);

/* Words that hold the places of dynamic fields. */
#define TALLY_TP_WORD(c, field) TALLY_TP_FIELD(TALLY_TP_WORD, c, field)
#define TALLY_TP_WORD_NUMBER(c, type, name)
#define TALLY_TP_WORD_POINTER(c, name)
#define TALLY_TP_WORD_ARRAY(c, type, name, count)
#define TALLY_TP_WORD_DYNAMIC(c, type, name, count) \
	uint32_t tally_loc_##name; \
	size_t tally_gap_##name;
#define TALLY_TP_WORD_STRING(c, name, source) \
	uint32_t tally_loc_##name; \
	const char *tally_from_##name;

#define TALLY_TP_MEASURE(c, field) TALLY_TP_FIELD(TALLY_TP_MEASURE, c, field)
#define TALLY_TP_MEASURE_NUMBER(c, type, name)
#define TALLY_TP_MEASURE_POINTER(c, name)
#define TALLY_TP_MEASURE_ARRAY(c, type, name, count)
#define TALLY_TP_MEASURE_DYNAMIC(c, type, name, count) \
	tally_words->tally_gap_##name = tally_size; \
	tally_words->tally_loc_##name = tally_trace_room(&tally_size, (size_t)(count), \
							 sizeof(type), __alignof__(type));
#define TALLY_TP_MEASURE_STRING(c, name, source) \
	tally_words->tally_from_##name = tally_trace_source(source); \
	tally_words->tally_loc_##name = tally_trace_room( \
		&tally_size, __builtin_strlen(tally_words->tally_from_##name) + 1, 1, 1);

#define TALLY_TP_PLACE(c, field) TALLY_TP_FIELD(TALLY_TP_PLACE, c, field)
#define TALLY_TP_PLACE_NUMBER(c, type, name)
#define TALLY_TP_PLACE_POINTER(c, name)
#define TALLY_TP_PLACE_ARRAY(c, type, name, count)
#define TALLY_TP_PLACE_DYNAMIC(c, type, name, count)                \
	entry->tally_loc_##name = tally_words->tally_loc_##name;      \
	tally_trace_clear(entry, tally_words->tally_gap_##name, entry->tally_loc_##name);
#define TALLY_TP_PLACE_STRING(c, name, source)                      \
	entry->tally_loc_##name = tally_words->tally_loc_##name;      \
	tally_trace_copy(entry, entry->tally_loc_##name, tally_words->tally_from_##name);

/* In the function that writes the text, each dynamic field has a variable of its name, for
 * __get_str(name). */
#define TALLY_TP_NAME(c, field) TALLY_TP_FIELD(TALLY_TP_NAME, c, field)
#define TALLY_TP_NAME_NUMBER(c, type, name)
#define TALLY_TP_NAME_POINTER(c, name)
#define TALLY_TP_NAME_ARRAY(c, type, name, count)
#define TALLY_TP_NAME_DYNAMIC(c, type, name, count) \
	const struct tally_trace_bytes name = tally_trace_bytes_at(REC, REC->tally_loc_##name); \
	(void)name;
#define TALLY_TP_NAME_STRING(c, name, source) TALLY_TP_NAME_DYNAMIC(c, char, name, 0)

/* The words of tracefs's print formats, as C. */
static inline const char *__get_str(struct tally_trace_bytes field)
{
	return (const char *)field.bytes;
}
static inline const void *__get_dynamic_array(struct tally_trace_bytes field)
{
	return field.bytes;
}
static inline uint32_t __get_dynamic_array_len(struct tally_trace_bytes field)
{
	return field.size;
}
#define __print_symbolic(value, ...)                                                           \
	__extension__({                                                                         \
		static const struct tally_trace_symbol tally_symbols[] = { __VA_ARGS__ };       \
		tally_trace_symbolic(tally_text, (int64_t)(value), tally_symbols,               \
				     sizeof(tally_symbols) / sizeof(tally_symbols[0]));         \
	})
#define __print_flags(value, delimiter, ...)                                                   \
	__extension__({                                                                         \
		static const struct tally_trace_symbol tally_symbols[] = { __VA_ARGS__ };       \
		tally_trace_flags(tally_text, delimiter, (uint64_t)(value), tally_symbols,      \
				  sizeof(tally_symbols) / sizeof(tally_symbols[0]));            \
	})
#define __print_hex(bytes, length) tally_trace_hex(tally_text, bytes, (long)(length))
#define __print_array(array, count, element_size) \
	tally_trace_array(tally_text, array, (long)(count), (long)(element_size))

#define TALLY_TP_DEFINE(name, proto, args, fields, assign, print_call, print_text, hit_statements, \
			constants_list, constant_text) \
	struct tally_trace_words_##name { \
		uint32_t tally_none; /* so that it is never empty */ \
		TALLY_TP_EACH_OF(TALLY_TP_WORD, name, fields) \
	}; \
	static inline size_t tally_trace_measure_##name( \
		struct tally_trace_words_##name *tally_words, TALLY_TP_OPEN proto) \
	{ \
		size_t tally_size = sizeof(struct tally_trace_record_##name); \
		(void)tally_words; \
		TALLY_TP_EACH_OF(TALLY_TP_UNUSED, name, args) \
		TALLY_TP_EACH_OF(TALLY_TP_MEASURE, name, fields) \
		return tally_size; \
	} \
	static inline void tally_trace_fill_##name( \
		struct tally_trace_record_##name *entry, \
		const struct tally_trace_words_##name *tally_words, TALLY_TP_OPEN proto) \
	{ \
		(void)tally_words; \
		TALLY_TP_EACH_OF(TALLY_TP_UNUSED, name, args) \
		__builtin_memset((char *)entry + sizeof(entry->common), 0, \
				 sizeof(*entry) - sizeof(entry->common)); \
		TALLY_TP_EACH_OF(TALLY_TP_PLACE, name, fields) \
		TALLY_TP_OPEN assign \
	} \
	static inline void tally_trace_aim_##name(struct tally_trace_hit *tally_hit, \
						  TALLY_TP_OPEN proto) \
	{ \
		(void)tally_hit; \
		TALLY_TP_EACH_OF(TALLY_TP_UNUSED, name, args) \
		TALLY_TP_OPEN hit_statements; \
	} \
	static inline __attribute__((always_inline)) void tally_trace_deliver_##name( \
		struct tally_trace_event *tally_event, uintptr_t tally_ip, uintptr_t tally_back, \
		const uintptr_t *tally_frame, TALLY_TP_OPEN proto) \
	{ \
		struct tally_trace_words_##name tally_words; \
		struct tally_trace_hit tally_hit; \
		size_t tally_size = tally_trace_measure_##name(&tally_words, TALLY_TP_OPEN args); \
		void *tally_entry; \
		tally_hit.event = tally_event; \
		tally_hit.count = 1; \
		tally_hit.address = 0; \
		tally_hit.task = 0; \
		tally_hit.ip = tally_ip; \
		tally_hit.back = tally_back; \
		tally_hit.frame = tally_frame; \
		tally_trace_aim_##name(&tally_hit, TALLY_TP_OPEN args); \
		tally_entry = tally_trace_begin(&tally_hit, tally_size); \
		if (!tally_entry) \
			return; \
		tally_trace_fill_##name((struct tally_trace_record_##name *)tally_entry, \
					&tally_words, TALLY_TP_OPEN args); \
		tally_trace_end(&tally_hit); \
	} \
	static void tally_trace_perf_##name(void *tally_data, TALLY_TP_OPEN proto) \
	{ \
		tally_trace_deliver_##name((struct tally_trace_event *)tally_data, 0, \
					   (uintptr_t)__builtin_return_address(0), \
					   (const uintptr_t *)__builtin_frame_address(0), \
					   TALLY_TP_OPEN args); \
	} \
	static void tally_trace_line_##name(void *tally_data, TALLY_TP_OPEN proto) \
	{ \
		struct tally_trace_listener *tally_listener = (struct tally_trace_listener *) \
			tally_data; \
		struct tally_trace_words_##name tally_words; \
		struct tally_trace_hit tally_hit; \
		size_t tally_size = tally_trace_measure_##name(&tally_words, TALLY_TP_OPEN args); \
		void *tally_entry = tally_trace_begin_line(&tally_hit, tally_listener, \
							   tally_size); \
		if (!tally_entry) \
			return; \
		tally_trace_fill_##name((struct tally_trace_record_##name *)tally_entry, \
					&tally_words, TALLY_TP_OPEN args); \
		tally_trace_end_line(&tally_hit, tally_listener); \
	} \
	static inline __attribute__((always_inline)) int tally_trace_counted_##name( \
		struct tally_trace_event *tally_event, TALLY_TP_OPEN proto) \
	{ \
		struct tally_trace_words_##name tally_words; \
		struct tally_trace_hit tally_hit; \
		tally_hit.count = 1; \
		tally_hit.task = 0; \
		tally_trace_aim_##name(&tally_hit, TALLY_TP_OPEN args); \
		if (tally_hit.task || \
		    tally_trace_measure_##name(&tally_words, TALLY_TP_OPEN args) > \
			    TALLY_TRACE_SIZE_MAX - 4) \
			return 0; \
		tally_trace_count(tally_event, tally_hit.count); \
		return 1; \
	} \
	static __attribute__((noinline)) void tally_trace_call_##name( \
		struct tally_trace_event *tally_event, uintptr_t tally_ip, uintptr_t tally_back, \
		const uintptr_t *tally_frame, TALLY_TP_OPEN proto) \
	{ \
		const struct tally_trace_probe *tally_probe; \
		void *tally_mark; \
		for (tally_probe = tally_trace_walk(tally_event, &tally_mark); \
		     tally_probe && tally_probe->function; tally_probe++) { \
			if (tally_probe->function == \
			    (tally_trace_function *)tally_trace_perf_##name) \
				tally_trace_deliver_##name( \
					(struct tally_trace_event *)tally_probe->data, tally_ip, \
					tally_back, tally_frame, TALLY_TP_OPEN args); \
			else \
				((tally_trace_function_##name *)tally_probe->function)( \
					tally_probe->data, TALLY_TP_OPEN args); \
		} \
		tally_trace_walked(tally_mark); \
	} \
	void tally_trace_hit_##name(struct tally_trace_event *tally_event, uintptr_t tally_ip, \
				    TALLY_TP_OPEN proto) \
	{ \
		const uintptr_t tally_back = (uintptr_t)__builtin_return_address(0); \
		const uintptr_t *const tally_frame = (const uintptr_t *)__builtin_frame_address( \
			0); \
		const uint32_t tally_alone = __atomic_load_n(&tally_event->perf_alone, \
							     __ATOMIC_RELAXED); \
		if (tally_alone == TALLY_TRACE_COUNTED && \
		    tally_trace_counted_##name(tally_event, TALLY_TP_OPEN args)) \
			return; \
		if (__builtin_expect(tally_alone != 0, 1)) \
			tally_trace_deliver_##name(tally_event, tally_ip, tally_back, tally_frame, \
						   TALLY_TP_OPEN args); \
		else \
			tally_trace_call_##name(tally_event, tally_ip, tally_back, tally_frame, \
						TALLY_TP_OPEN args); \
	} \
	static void tally_trace_text_##name(struct tally_trace_text *tally_text, \
					    const void *tally_record) \
	{ \
		const struct tally_trace_record_##name *REC = \
			(const struct tally_trace_record_##name *)tally_record; \
		TALLY_TP_EACH_OF(TALLY_TP_NAME, name, fields) \
		(void)REC; \
		print_call; \
	} \
	static const struct tally_trace_field tally_trace_fields_##name[] = { TALLY_TP_EACH_OF( \
		TALLY_TP_DESCRIBE, name, fields) }; \
	static const int64_t tally_trace_constants_##name[] = { TALLY_TP_OPEN constants_list }; \
	struct tally_trace_class tally_trace_class_##name = { \
		#name, \
		tally_trace_fields_##name, \
		sizeof(tally_trace_fields_##name) / sizeof(tally_trace_fields_##name[0]), \
		sizeof(struct tally_trace_record_##name), \
		print_text, \
		constant_text, \
		tally_trace_constants_##name, \
		tally_trace_text_##name, \
		(tally_trace_function *)tally_trace_line_##name, \
		(tally_trace_function *)tally_trace_perf_##name, \
		0 \
	};

#endif /* TALLY_TRACE_DEFINE */

#endif
