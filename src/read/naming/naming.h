/* Places → functions, objects, lines and code. */
#ifndef TALLY_NAMING_H
#define TALLY_NAMING_H

#include "abi/abi.h"
#include "base/buffer.h"
#include "base/map.h"
#include "task/task.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_buffer;
struct tally_disk_cache;
struct tally_line_answer;
struct tally_line_frame;
struct tally_name_table;
struct tally_packed_code;
struct tally_packed_codes;
struct tally_packed_names;
struct tally_packed_place;
struct tally_perf_maps;
struct tally_place_table;
struct tally_symbol;
struct tally_text_pokes;

/* The kind of code that a frame is in, by the name of its object. */

enum tally_frame_kind {
	TALLY_FRAME_PROGRAM, /* the main executable, or not known */
	TALLY_FRAME_LIBRARY,
	TALLY_FRAME_KERNEL,
	TALLY_FRAME_JIT,
	TALLY_FRAME_INLINED,
	TALLY_FRAME_KINDS
};

/* Returns the kind of frames by their object's name.  Kernel: "[kernel.kallsyms]",
 * "/lib/modules/…", "vmlinux".  Library: "libc.so.6", "[vdso]".  JIT: "perf-PID.map", "[JIT] tid
 * 7", "jitted-7-0.so", "//anon".  All else is the program. */
enum tally_frame_kind tally_frame_kind_of_object(const char *object);

/* True if the kernel provides the object's code, but it runs in user mode: "[vdso]", 32-bit ARM's
 * "[vectors]". */
bool tally_object_is_user_page(const char *object);

/* Returns the part of an object's path after the last slash, with a "(deleted)" if it has one. */
const char *tally_object_basename(const char *object);

/* Parts of the names (names.c) whose members only this room uses: the tables of files, the recorded
 * kernel, and what the recording carries. */

/* name_tables.c: the symbols and lines of files. */
struct tally_name_tables {
	struct tally_name_table *items; /* by file id of the tasks */
	size_t count, capacity;
	struct tally_disk_cache *cache; /* NULL: nothing is cached for the next run */
};

/* kernel_names.c: the recorded kernel. */
struct tally_kernel_naming {
	struct tally_name_table *table; /* NULL: not needed yet */
	bool is_tried;                  /* its symbols were searched for */
	const char *release;            /* recorded; NULL: not known */
	struct tally_build_id build_id; /* recorded; size 0: not known */
	/* recorded on another kernel: this machine's kallsyms must not be used */
	bool is_foreign;
	struct tally_object_entry vmlinux; /* the kernel's file, once it was searched for */
	int64_t shift;         /* recorded addresses minus those of the table */
	int64_t vmlinux_shift; /* recorded addresses minus those in vmlinux */
	/* changes to the kernel's code, applied when it is read; NULL: none */
	const struct tally_text_pokes *text_pokes;
};

/* names_recorded.c: names, symbols and maps that the recording itself has. */
struct tally_carried_names {
	/* tally's own section; NULL: none */
	struct { const void *bytes; size_t size; bool is_read, code_is_read; } section;
	struct tally_packed_names *names; /* in that section; NULL: none */
	struct tally_packed_codes *codes; /* in that section; NULL: none, or not read */
	/* symbols by file, from simpleperf's recordings; NULL: none */
	struct { const void *bytes; size_t size; } listed;
	/* perf maps held while recording; NULL: none, they are read where they are now */
	const struct tally_perf_maps *perf_maps;
	uint64_t perf_map_bytes; /* of all perf maps that were read */
};

/* Places → functions: the function that holds an address, its name and its object.
 *
 * A place is a byte of a file, or a raw address where there is no file.  It is the result of
 * looking up an address in its task's maps at the time of the sample.  Functions are interned; a
 * table of symbols is built once for each file with sampled addresses.  Not thread-safe.
 */

/* With TALLY_FILE_NONE: the place that stands for the missing rest of a stack whose copy ended.
 * Its name is "[truncated]". */
#define TALLY_PLACE_CUT (UINT64_MAX - 1)

/* With TALLY_FILE_NONE: the place between a wait's stack and the stack that ended the wait.  The
 * high 16 bits of the address are these, which no machine's addresses have; then come one of the
 * kinds below and, for TALLY_PLACE_WAKER_TASK, the string id of a command in the tasks' strings. */
#define TALLY_PLACE_WAKER (UINT64_C(0x80aa) << 48)
enum { TALLY_PLACE_WAKER_INTERRUPT = 1, TALLY_PLACE_WAKER_PREEMPTED, TALLY_PLACE_WAKER_UNKNOWN,
       TALLY_PLACE_WAKER_TASK };

enum { TALLY_PERF_MAP_PATH_BYTES = 32 }; /* "/tmp/perf-4294967295.map" */

struct tally_place {
	uint32_t file;    /* file id of the tasks, or TALLY_FILE_NONE, TALLY_FILE_KERNEL */
	/* bytes that `address` lies before the return address, to be in the call: 1 or 0 */
	uint16_t before;
	/* a sample's own address, in front of which the time was spent (causes.c) */
	bool is_late;
	/* of a late place: binary logarithm of its samples' weight; no part of what it is */
	uint8_t heat;
	/* offset in the file; raw address in the kernel, in JIT code and in no file */
	uint64_t address;
};

static inline struct tally_place tally_place_of_waker(unsigned kind, uint32_t comm)
{
	return (struct tally_place){ .file = TALLY_FILE_NONE,
				     .address = TALLY_PLACE_WAKER | (uint64_t)kind << 32 | comm };
}

static inline bool tally_place_is_waker(const struct tally_place *place)
{
	return place->file == TALLY_FILE_NONE && place->address >> 48 == TALLY_PLACE_WAKER >> 48;
}

struct tally_function {
	uint32_t name;   /* string id; TALLY_STRING_NONE: no symbol */
	/* string id as in the symbol table or DWARF (mangled); differs between functions that have
	 * the same name */
	uint32_t symbol;
	/* the name without a symbol version ("@@GLIBC_2.34") and without a JIT's tier, unless
	 * full names are wanted; without a symbol, made from its object: "[gzip+0x4010]" */
	uint32_t bare;
	/* the name in views: the bare name, plus its difference from others
	 * (tally_names_tell_apart) */
	uint32_t plain;
	/* string id of its source file by the object's symbol table, such as "a.c";
	 * TALLY_STRING_NONE: not known, or not needed */
	uint32_t source;
	/* string id of the path of the file that declares it by the debug information, without "."
	 * and ".."; TALLY_STRING_NONE: not known, or the function has external linkage, so that its
	 * object has no other of its name */
	uint32_t declared;
	uint32_t file;   /* file id of the tasks, TALLY_FILE_KERNEL or TALLY_FILE_NONE */
	/* string id of its object's path: "/usr/lib/…/libc.so.6", "[kernel.kallsyms]",
	 * "[unknown]"; of JIT code as in jit_names.c */
	uint32_t object;
	/* in the terms of its file's symbols: a symbol address minus this is the offset.  Without a
	 * symbol it comes from the unwind rules, which even a stripped program has.  UINT64_MAX:
	 * not known */
	uint64_t start;
	enum tally_frame_kind kind;
};

/* One frame of a place: the function of its symbol, or a function that the compiler inlined
 * there. */
struct tally_place_frame {
	uint32_t function;
	/* string id of the source file, as the compiler had it; TALLY_STRING_NONE: not known */
	uint32_t file;
	/* in the innermost frame the line of the place, in the frames around it the line of the
	 * call; 0: not known */
	uint32_t line;
};

/* The frames of a place: frames.items[first] … [first + count), innermost first.  The last one is
 * the symbol's function; the others have the kind TALLY_FRAME_INLINED.  `count` is never 0. */
struct tally_place_name {
	uint32_t first, count;
	uint64_t offset; /* distance of the place from the start of its symbol */
	/* A late place: bytes from it to the instruction that is charged, whose file, line and
	 * inlined functions the frames have. */
	int64_t moved;
	bool is_charged; /* false: not a late place, or its code is not known */
};

/* Objects that each have at least 2 % of the samples without a name, if they have at least 5 %
 * together. */
struct tally_nameless {
	double percent;    /* of the samples, in all listed objects */
	size_t listed;
	char objects[160]; /* "a, b, c", those with most samples first */
};

/* Why some names are missing, for one-line messages to the user. */
struct tally_names_gaps {
	size_t changed_files; /* files that are not the recorded ones */
	char changed_file[256];
	const char *difference; /* of that file: "has another build-id" */
	size_t distrusted_maps;   /* /tmp/perf-PID.map files that another user wrote */
	size_t map_lines_skipped; /* malformed lines of the maps that were read */
	bool kernel_hidden;   /* kallsyms shows no addresses (kptr_restrict) */
	bool packed_damaged;  /* the names that the recording carries can't be read */
	bool packed_newer;    /* … are in a newer tally's format */
	/* the running kernel is not the recorded one, and the recorded one's file is missing */
	bool kernel_differs;
	bool vmlinux_differs; /* the given vmlinux is of another build; it is used all the same */
	/* got from debuginfod servers; on no server */
	size_t fetched_files, unfetched_files;
	bool fetching_ended;  /* the user stopped it before all were fetched */
	/* in files that were read; in files that were not found */
	struct tally_nameless nameless, absent;
	bool lacks_xz;        /* some tables can't be read because liblzma is missing */
	/* objects without inlined functions, because a companion file of their debug information
	 * (dwz's common file, a .dwo) is missing; the first one, and its file */
	size_t partial_objects;
	char partial_object[80], companion[128];
	/* objects whose debug information was not read whole, because its units share too much; the
	 * first one */
	size_t refused_objects;
	char refused_object[80];
	struct tally_buffer details; /* a line for each file that the messages are about */
	/* string ids of the objects counted in partial_objects, and of their companions */
	struct {
		struct tally_names_partial { uint32_t object, companion; } *items;
		size_t count, capacity;
	} partial;
};

/* Sources of names, besides the files of the recording.  Zero-initialised is valid.  The texts must
 * outlive the names. */
struct tally_name_sources {
	struct tally_object_search search;
	/* path of the recorded kernel's vmlinux; NULL: search where distributions put it */
	const char *vmlinux;
	bool asks_debuginfod;         /* fetch debug files of hot objects from servers */
	const char *debuginfod_urls;  /* URLs of these servers; NULL: from the environment */
	/* Called while a file is fetched; `object` is "" when all are done.  Returns false to
	 * stop. */
	bool (*fetching)(void *context, const char *object, uint64_t bytes, uint64_t total);
	void *fetching_context;
	bool modules;         /* name the kernel's modules by their files instead of kallsyms */
	bool full_names;      /* views always show parameters */
	bool raw_addresses;   /* no sample's place is late: lines are those of its address */
	bool verbose;         /* warnings are followed by their details */
	/* copy of the recorded kernel's /proc/kallsyms; NULL: this machine's, if it runs that
	 * kernel */
	const char *kallsyms;
};

/* How to name.  Zero-initialised is valid; may be changed between calls. */
struct tally_name_options {
	/* only name the symbols' functions, without inlined ones; without lines, too, unless
	 * `wants_lines`: then places have the lines of the code that was inlined there */
	bool no_inlines, wants_lines;
	bool keep_mangled;
	/* name objects by their files' own paths, not by those that started them */
	bool real_paths;
	/* collects the places that tally_names_function() is called for; NULL: not collected */
	struct tally_place_table *asked;
};

/* Interned functions. */
struct tally_functions {
	struct tally_function *items;
	size_t count, capacity;
	struct tally_map index;
	size_t told_apart; /* `count` at the last tally_names_tell_apart() */
};

/* Frames of the places that were resolved. */
struct tally_name_frames {
	struct tally_place_frame *items;
	size_t count, capacity;
};

/* A name is made in this order: from what the recording carries (names_recorded.c), else from the
 * table of its file (name_tables.c) or of the kernel (kernel_names.c).  names.c and names_resolve.c
 * intern the functions, with `options`; names_apart.c tells them apart.  Only this room uses
 * `tables`, `kernel` and `carried`. */
struct tally_names {
	struct tally_tasks *tasks;
	struct tally_objects objects;
	struct tally_strings strings; /* names and objects */
	struct tally_functions functions;
	struct tally_name_frames frames;
	struct tally_name_tables tables;
	struct tally_kernel_naming kernel;
	struct tally_carried_names carried;
	struct tally_name_sources sources;
	struct tally_name_options options;
	struct tally_names_gaps gaps;
};

void tally_names_init(struct tally_names *names, struct tally_tasks *tasks);
/* Uses the user's cache for data computed from objects, and fills it for the next run. */
void tally_names_use_cache(struct tally_names *names);

/* Uses the names that the recording carries (tally's own section).  Files and the kernel are used
 * only for places that it has no names for.  The bytes must outlive the names. */
void tally_names_use_packed(struct tally_names *names, const void *section, size_t size);

/* True if the recording carries names, and they can be read. */
static inline bool tally_names_are_carried(const struct tally_names *names)
{
	return names->carried.names != NULL;
}

/* True if the carried names know the object of a file. */
bool tally_names_carry_object(const struct tally_names *names, uint32_t file);

/* The symbols by file that simpleperf's recordings carry.  The bytes must outlive the names. */
void tally_names_use_listed(struct tally_names *names, const void *bytes, size_t size);

/* The perf maps held while recording; NULL: none, they are read where they are now.  They must
 * outlive the names. */
void tally_names_use_perf_maps(struct tally_names *names, const struct tally_perf_maps *maps);

/* The changes to the kernel's code, applied when it is read.  They must outlive the names. */
void tally_names_use_text_pokes(struct tally_names *names, const struct tally_text_pokes *pokes);

/* Sets the recorded kernel: its release (NULL: not known; the text must outlive the names), and
 * whether it or its machine is another than this one, so that this machine's kallsyms must not be
 * used. */
void tally_names_set_kernel(struct tally_names *names, const char *release, bool is_foreign);
void tally_names_set_kernel_build_id(struct tally_names *names, struct tally_build_id id);

/* Return what was set: whether it is known which kernel was recorded, and whether it is another than
 * this machine's. */
static inline bool tally_names_know_kernel(const struct tally_names *names)
{
	return names->kernel.build_id.size || names->kernel.release;
}

static inline bool tally_names_are_foreign(const struct tally_names *names)
{
	return names->kernel.is_foreign;
}

/* The kernel's places get no names. */
void tally_names_omit_kernel(struct tally_names *names);

/* Call this before anything is named. */
void tally_names_use_sources(struct tally_names *names, const struct tally_name_sources *sources);

void tally_names_release(struct tally_names *names);

/* Notes that an object's inlined functions are missing, because a companion file is.  Returns 0 or
 * -ENOMEM. */
int tally_names_note_partial(struct tally_names *names, const char *object,
			     const char *companion);

struct tally_data_name {
	const char *name;   /* NULL: not known */
	const char *object;
	char map[TALLY_PERF_MAP_PATH_BYTES]; /* holds the object, if it is a perf map */
	uint64_t offset;    /* from `start` */
	/* start of the variable or function, in its object's terms; without a name, the place
	 * itself */
	uint64_t start;
	uint32_t pid;       /* the process whose private memory it is; 0: shared, or of a file */
	bool is_variable;   /* false: it is code */
};

/* Finds what is at a data address of a process: a variable, or a function.  Returns 0 or -ENOMEM.
 * The texts live as long as the names. */
int tally_names_data(struct tally_names *names, uint32_t pid, uint64_t address,
		     struct tally_data_name *out);

/* Returns the function that holds a place, as an index into `functions`; UINT32_MAX when memory is
 * out.  `symbol_offset` (may be NULL) gets the distance from its start. */
uint32_t tally_names_function(struct tally_names *names, const struct tally_place *place,
			      uint64_t *symbol_offset);

/* The same by the source: the innermost function that was inlined at the place, if there is one and
 * names have inlined functions. */
uint32_t tally_names_source_function(struct tally_names *names, const struct tally_place *place);

/* Names many places at once: a file's debug information is read only once, in the order of
 * addresses.  `out` has room for `count`.  Returns 0 or -ENOMEM. */
int tally_names_resolve(struct tally_names *names, const struct tally_place *places, size_t count,
			struct tally_place_name *out);

/* Sets `plain` of each function, as short as possible, so that no two functions of an object have
 * the same: "calc" if there is only one, "calc(int)" and "calc(double)" if there are two
 * (names_apart.c).  Call it when all places are named, and again after more were named.  Returns 0
 * or -ENOMEM. */
int tally_names_tell_apart(struct tally_names *names);

/* Sets out[i] to the string id of the name to show for function i if views don't show its object:
 * its plain name; if functions of several objects have that, its object behind it: "main (cc1)"; if
 * two of these objects differ only in their folders, the object's whole path.  `out` has room for
 * all functions, which have been told apart.  Returns 0 or -ENOMEM. */
int tally_names_tell_objects_apart(struct tally_names *names, uint32_t *out);

/* Appends the name with all parameters, which is the same in every recording of the function.
 * Leaves out hashes and addresses, which differ between builds. */
void tally_names_full_text(const struct tally_names *names, uint32_t function,
			   struct tally_buffer *out);

/* True if `typed` names the function: as views show it, with or without version or parameters, or
 * by its symbol.  Blanks are ignored. */
bool tally_names_is_called(const struct tally_names *names, uint32_t function, const char *typed);

/* The same for a list of patterns (recording.h): true if one of them matches. */
bool tally_names_is_listed(const struct tally_names *names, uint32_t function, const char *list);

/* _text returns the readable name, or "[unknown]" as perf does.  _plain_text returns what views
 * show: "main" without its version; without a symbol "[gzip+0x4010]", the start of the function, or
 * "[gzip]" if that is not known. */
const char *tally_names_text(const struct tally_names *names, uint32_t function);
const char *tally_names_plain_text(const struct tally_names *names, uint32_t function);
/* Return the object's whole path, and its last part. */
const char *tally_names_object(const struct tally_names *names, uint32_t function);
const char *tally_names_short_object(const struct tally_names *names, uint32_t function);
/* Returns the object as perf's script prints it: of JIT code, the map or dump of its process.
 * `map` holds the text if it is a map's path. */
const char *tally_names_mapped_object(const struct tally_names *names, uint32_t function,
				      char map[TALLY_PERF_MAP_PATH_BYTES]);
/* Returns the path of the function's file, even if the object is shown by the name under which it
 * was started; "": in no file. */
const char *tally_names_file_path(const struct tally_names *names, uint32_t function);
const char *tally_object_short(const char *path);

/* Looks an address up in the current maps of a task.  `kernel`: the sample's cpumode is kernel. */
struct tally_place tally_place_of(const struct tally_tasks *tasks, uint32_t pid, bool kernel,
				  uint64_t address);

/* Interning functions: the common part of single lookups (names.c) and lookups of many places
 * (names_resolve.c).  Used in this room only. */

/* Returns the file whose table has the names of a place: a file id, TALLY_FILE_KERNEL, or
 * TALLY_FILE_NONE if no table is needed. */
uint32_t tally_names_file(const struct tally_names *names, const struct tally_place *place);

/* Returns the function of a place without a table: in no file, or in code that the kernel named in
 * a record.  Sets `offset` to the place's distance from its start. */
uint32_t tally_names_plain_function(struct tally_names *names, const struct tally_place *place,
				    uint64_t *offset);

/* Returns the function of a place with the table's symbol.  If `symbol` is NULL, the function is
 * known only by its start (UINT64_MAX: not known). */
uint32_t tally_names_symbol_function(struct tally_names *names, struct tally_name_table *table,
				     uint32_t file, const struct tally_place *place,
				     const struct tally_symbol *symbol, uint64_t start);

/* Returns the index of the function, added when new; UINT32_MAX when memory is out.  Sets its
 * `bare` and `plain` names. */
uint32_t tally_names_intern_function(struct tally_names *names, uint32_t file,
				     struct tally_function function);

/* True if the function is the kernel's and its name is in a sorted list.  A name ends before a dot:
 * "mwait_idle_with_hints.constprop.0". */
bool tally_names_is_kernels(const struct tally_names *names, uint32_t function,
			    const char *const *sorted, size_t count);

/* Returns the string id of the readable form of `text`.  `text` must live as long as `texts`: a
 * pointer is demangled only once. */
uint32_t tally_names_intern_text(struct tally_names *names, struct tally_map *texts,
				 const char *text);

/* In names_recorded.c: return the recording's own name of a place (NULL: it has none), its
 * function's code, and its function. */
const struct tally_packed_place *tally_names_recorded_place(struct tally_names *names,
							    const struct tally_place *place);
const struct tally_packed_code *tally_names_recorded_code(struct tally_names *names,
							  const struct tally_place *place);
uint32_t tally_names_recorded_function(struct tally_names *names, const struct tally_place *place,
				       const struct tally_packed_place *packed, uint64_t *offset);

/* Returns the build-id of a file, from the recording or from the file itself; size 0: not known. */
struct tally_build_id tally_names_build_id(struct tally_names *names, uint32_t file);

/* True if names need debug information, and not only symbols. */
static inline bool tally_names_reads_lines(const struct tally_names *names)
{
	return !names->options.no_inlines || names->options.wants_lines;
}

/* In names_resolve.c: tally_names_resolve() for places that the recording has no names for. */
int tally_names_resolve_by_files(struct tally_names *names, const struct tally_place *places,
				 size_t count, struct tally_place_name *out);

/* Finds the place of an address, and gives each place a small number.
 *
 * A cache keeps the results of the last look-ups; they hold as long as the task's maps stay the
 * same.  Not thread-safe.
 */

/* An entry of the cache.  16 bytes, so that four fit in a cache line. */
struct tally_place_memory {
	uint64_t address;
	/* tally_place_meaning() + 1; 0: the entry is free */
	uint32_t meaning;
	uint32_t place;
};

enum { TALLY_PLACE_MEMORY_BITS = 14, TALLY_PLACE_STATE_BITS = 28 /* in `meaning` */ };

/* What an address tells. */
enum tally_address_aim {
	TALLY_ADDRESS_EXACT,
	TALLY_ADDRESS_OF_RETURN, /* the call is in front of it */
	TALLY_ADDRESS_LATE,      /* the place is late (struct tally_place) */
};

struct tally_place_table {
	struct { struct tally_place *items; size_t count, capacity; } places;
	struct tally_map index;
	struct tally_place_memory *memory; /* the cache, by a hash of address and meaning */
	uint64_t era; /* the high bits of the maps' generation that `memory` belongs to */
	/* set by callers that only need names: all addresses outside mapped files become one place,
	 * with address 0 */
	bool merges_unknown;
};

/* Returns the number of a place, added when new; UINT32_MAX when memory is out. */
uint32_t tally_place_table_intern(struct tally_place_table *table, const struct tally_place *place);

/* The slow path of tally_place_table_find(): looks up an address that is not in the cache, and adds
 * it. */
uint32_t tally_place_table_look_up(struct tally_place_table *table, const struct tally_tasks *tasks,
				   uint32_t pid, bool kernel, uint64_t maps, uint64_t address,
				   enum tally_address_aim aim);

static inline struct tally_place_memory *tally_place_table_remembered(
	const struct tally_place_table *table, uint64_t address, uint32_t meaning)
{
	uint64_t hash = (address ^ (uint64_t)meaning << 40) * 0x9e3779b97f4a7c15ull;
	return &table->memory[hash >> (64 - TALLY_PLACE_MEMORY_BITS)];
}

/* Packs what an address's place depends on: the low bits of the maps' generation, the kernel flag
 * and the aim. */
static inline uint32_t tally_place_meaning(bool kernel, uint64_t maps, enum tally_address_aim aim)
{
	uint64_t states = (uint64_t)1 << TALLY_PLACE_STATE_BITS;
	return (uint32_t)(maps & (states - 1)) << 3 | (uint32_t)kernel << 2 | (uint32_t)aim;
}

/* Returns the number of an address's place in the current maps of a process (`kernel`: of the
 * kernel); `maps` is the generation of these maps.  1 is subtracted from a return address, which
 * then lies in the call instruction.  Returns UINT32_MAX when memory is out. */
static inline uint32_t tally_place_table_find(struct tally_place_table *table,
					      const struct tally_tasks *tasks, uint32_t pid,
					      bool kernel, uint64_t maps, uint64_t address,
					      enum tally_address_aim aim)
{
	uint32_t meaning = tally_place_meaning(kernel, maps, aim);
	if (__builtin_expect(table->memory && table->era == maps >> TALLY_PLACE_STATE_BITS, 1)) {
		const struct tally_place_memory *there = tally_place_table_remembered(
			table, address, meaning);
		if (__builtin_expect(there->address == address && there->meaning == meaning + 1, 1))
			return there->place;
	}
	return tally_place_table_look_up(table, tasks, pid, kernel, maps, address, aim);
}

void tally_place_table_release(struct tally_place_table *table);

/* The machine code of a recorded function, from wherever it can be found:
 *
 * - a program's or library's code from its file, if that is the recorded build (by build-id);
 * - a JIT's code from its dump;
 * - the kernel's code from the running kernel's memory, which has the same patches as when it ran,
 *   else from its vmlinux or a module's file.
 *
 * The recording itself has the changes that the kernel made to its code in that time
 * (text_pokes.c), and the whole code of some functions that the kernel generated.  If none of these
 * sources is available, the recording may carry the code (packed.h).
 */

struct tally_function_code {
	uint64_t start, end;  /* addresses in the terms of its symbols; both 0: not known */
	/* added to these addresses to show them: JIT code and kernels are shown where they were */
	uint64_t shown;
	/* `size` bytes from `start`; valid as long as the names, or `kept` */
	const uint8_t *bytes;
	/* 0: the code was not found; `missing` says why */
	size_t size;
	const struct tally_packed_code *packed; /* the code is the recording's; NULL: a file's */
	const struct tally_object *object;      /* the file that has the code; NULL: none */
	uint8_t *kept;        /* bytes owned by this function; NULL: none */
	/* bytes that the kernel wrote over while it was recorded; `bytes` has their last values */
	size_t poked;
	unsigned machine;     /* e_machine */
	bool is_64bit, is_big_endian;
	char missing[256], hint[256];
	/* modification time of its file, seconds since the epoch; 0: not known */
	int64_t file_time_s;
	bool is_rebuilt;      /* the file here is another build than the recorded one */
	/* why there may be no source lines; NULL: debug information is missing */
	const char *no_lines;
};

/* Finds the code of the function that holds a place.  Returns 0 (`size` is 0 when there is no code)
 * or -ENOMEM.  Release `out` in both cases. */
int tally_function_code_find(struct tally_names *names, const struct tally_place *place,
			     struct tally_function_code *out);
/* The same without the recording's own code, and without `file_time_s`.  Uses nothing of other
 * files, so threads may name different files by it. */
int tally_function_code_find_in_files(struct tally_names *names, const struct tally_place *place,
				      struct tally_function_code *out);
void tally_function_code_release(struct tally_function_code *code);

/* Returns the name of the symbol at an address, such as "memcpy", and the address's offset from its
 * start; NULL: not known.  `place` is any place of the function; `address` is in the terms of its
 * symbols.  The name may be mangled, and lives as long as the names. */
const char *tally_function_code_symbol(struct tally_names *names,
				       const struct tally_function_code *code,
				       const struct tally_place *place, uint64_t address,
				       uint64_t *offset);

/* Converts a place of the function to an address in the terms of its symbols.  Returns false when
 * that is not known. */
bool tally_function_code_address(struct tally_names *names, const struct tally_function_code *code,
				 const struct tally_place *place, uint64_t *address);

/* Finds the source lines of ascending addresses (in the terms of the symbols): innermost frames, as
 * from tally_lines_find().  They live as long as the names.  `scratch` has room for `count`
 * frames.  Returns 0 or -ENOMEM. */
int tally_function_code_lines(struct tally_names *names, const struct tally_function_code *code,
			      const struct tally_place *place, const uint64_t *addresses,
			      size_t count, struct tally_line_answer *answers,
			      struct tally_line_frame *scratch);

/* Which instructions late samples are charged to.
 *
 * A clock's sample, and one of a hardware event with skid, has the address of the next instruction
 * to run.  Lines and inlined functions are those of the instruction before, which took the time
 * (unwind/unwind.h).  A sample never leaves its function by this. */

/* A late address. */
struct tally_late {
	uint64_t address; /* in the terms of its file's symbols */
	const struct tally_place *place;
	uint32_t index;   /* for the caller */
	int64_t moved;    /* from the address to the instruction that is charged, in bytes */
	bool is_charged;  /* its code was read, so `moved` is known */
	bool is_jump;     /* a jump is charged */
};

/* Finds the causes of addresses in one function, in ascending order.  Returns 0 or -ENOMEM. */
int tally_causes_in(const struct tally_function_code *code, struct tally_late *late, size_t count);

/* Finds the causes of addresses in one file, in ascending order; its tables have been read.  Uses
 * nothing of other files.  Returns 0 or -ENOMEM. */
int tally_causes_find(struct tally_names *names, struct tally_late *late, size_t count);

/* How views show code that JITs made: one function is one row, however many processes ran it and
 * however often its JIT compiled it.  Pure. */

/* The object of JIT code: what names it, without the number of a process; or nothing names it. */
#define TALLY_JIT_MAP "perf.map"
#define TALLY_JIT_DUMP "jit.dump"
#define TALLY_JIT_UNNAMED "[JIT]"

/* Returns one of these for objects that perf and JITs name after a process: "/tmp/perf-7.map" or
 * "[JIT] tid 7", "jit-7.dump" or perf inject's "jitted-7-3.so"; also for the objects above.  NULL:
 * it is another object. */
const char *tally_jit_object(const char *path);

/* Finds the part of a JIT's function name that says how it was compiled: V8's tiers, as in
 * "JS:*sort /x/list.js:3:9", and .NET's, as in "void Program::Sort()[OptimizedTier1]".  Returns its
 * length and sets `at`, its offset; 0: there is none. */
size_t tally_jit_tier(const char *name, size_t *at);

/* Which kernel was recorded, judged by the records of its maps. */

enum { TALLY_KERNEL_RELEASE_BYTES = 65 };

/* True if a MMAP or MMAP2 record is of a module of another release than the running kernel's; sets
 * `release` to it. */
bool tally_kernel_module_is_anothers(const struct tally_record *record,
				     char release[TALLY_KERNEL_RELEASE_BYTES]);

/* Returns the symbol whose address a record of the kernel's map tells, "_text" or "_stext"; NULL:
 * none. */
const char *tally_kernel_map_symbol(const struct tally_record *record);

/* True if a kernel of this architecture with a symbol at `now` (0: not known) may have had it at
 * `recorded`. */
bool tally_kernel_may_be_at(uint64_t recorded, uint64_t now, enum tally_arch arch);

/* Returns the address of a symbol in the running kernel; 0: there is none, or it is hidden. */
uint64_t tally_kernel_running_address(const char *symbol);

/* Changes that the kernel made to its own code while it was recorded (TEXT_POKE records): jumps of
 * tracepoints and static keys, calls of tracers, generated code.  Used in this room only.  Not
 * thread-safe. */

struct tally_text_pokes {
	struct tally_map bytes; /* address → the byte written last */
};

/* Notes a change; changes must come in order of time.  Only the first million different addresses
 * are kept.  Returns 0 or -ENOMEM. */
int tally_text_pokes_add(struct tally_text_pokes *pokes, const struct tally_record_text_poke *poke);

/* Writes the changed bytes into `code`, a copy of `size` bytes at an address; NULL: only counts
 * them.  Returns the number of changed bytes. */
size_t tally_text_pokes_apply(const struct tally_text_pokes *pokes, uint64_t address, uint8_t *code,
			      size_t size);

void tally_text_pokes_release(struct tally_text_pokes *pokes);

/* In kernel_names.c: returns the recorded kernel's vmlinux.  Searches for it once: by the name
 * that the user gave, by build-id and by release.  Also sets kernel.vmlinux_shift.  NULL: none. */
struct tally_object_entry *tally_kernel_object(struct tally_names *names);
/* Sets the vmlinux after none was found; the names own it.  NULL: there is none. */
void tally_kernel_object_use(struct tally_names *names, struct tally_object *object);

/* Sets the recorded kernel's build-id; without one in the recording, the running kernel's if that may
 * be the recorded one.  Returns false if it is not known. */
bool tally_kernel_build_id(const struct tally_names *names, struct tally_build_id *id);

/* True if the file (or the kernel: TALLY_FILE_KERNEL) has symbols. */
bool tally_names_has_symbols(struct tally_names *names, uint32_t file);

#endif
