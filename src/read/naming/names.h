/* Places → functions: the function that holds an address, its name and its object.
 *
 * A place is a byte of a file, or a raw address where there is no file.  It is the result of
 * looking up an address in its task's maps at the time of the sample.  Functions are interned; a
 * table of symbols is built once for each file with sampled addresses.  Not thread-safe.
 */
#ifndef TALLY_NAMING_NAMES_H
#define TALLY_NAMING_NAMES_H

#include "base/buffer.h"
#include "naming/frame_kind.h"
#include "naming/names_parts.h"
#include "task/objects.h"
#include "task/tasks.h"

struct tally_buffer;
struct tally_perf_maps;
struct tally_place_table;
struct tally_text_pokes;

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
	/* a sample's own address, in front of which the time was spent (naming/causes.h) */
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
	 * "[unknown]"; of JIT code as in jit_names.h */
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

/* The same for a list of patterns (sample_filter.h): true if one of them matches. */
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

#endif
