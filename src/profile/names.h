/* Places → functions: which function holds an address, what it is called, what it belongs to.
 *
 * A place is a byte of a file (or a raw address, where there is no file): what an address means
 * once it has been looked up in its task's maps at its time.  Functions are interned; tables of
 * symbols are built once for each file that was hit.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_NAMES_H
#define TALLY_PROFILE_NAMES_H

#include "profile/stacks.h"
#include "task/objects.h"
#include "task/tasks.h"

struct tally_buffer;
struct tally_disk_cache;
struct tally_name_table;
struct tally_packed_names;
struct tally_perf_maps;
struct tally_place_table;
struct tally_text_pokes;

/* The address, with TALLY_FILE_NONE, of what isn't known of a stack whose copy ended: named
 * "[truncated]". */
#define TALLY_PLACE_CUT (UINT64_MAX - 1)

/* The address, with TALLY_FILE_NONE, of what joins a wait's stack and that of who ended it: no
 * machine has such addresses.  With the string id of a command in tasks, or one of these. */
#define TALLY_PLACE_WAKER (UINT64_C(0x80aa) << 48)
enum { TALLY_PLACE_WAKER_INTERRUPT = 1, TALLY_PLACE_WAKER_PREEMPTED, TALLY_PLACE_WAKER_UNKNOWN,
       TALLY_PLACE_WAKER_TASK };

struct tally_place {
	uint32_t file;    /* of tasks, or TALLY_FILE_NONE, TALLY_FILE_KERNEL */
	/* the bytes by which `address` was moved from a return address into the call: 1 or 0 */
	uint32_t before;
	uint64_t address; /* offset in the file; raw for kernel, JIT code and unmapped */
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
	uint32_t symbol; /* string id as the symbol table or DWARF has it (mangled): by it functions
			  * of one name are told apart */
	uint32_t bare; /* the name without a symbol version ("@@GLIBC_2.34"); what has no symbol by
			  * its object: "[gzip+0x4010]" */
	uint32_t plain;  /* what views show: the bare name, with what tells it from others
			  * (tally_names_tell_apart) */
	uint32_t source; /* string id of the file that its object's symbol table says it is of:
			  * "a.c"; TALLY_STRING_NONE: it doesn't say, or nothing needs it */
	uint32_t file;   /* of tasks, TALLY_FILE_KERNEL or TALLY_FILE_NONE */
	uint32_t
		object; /* string id of its path: "/usr/lib/…/libc.so.6", "[kernel.kallsyms]", "[unknown]" */
	uint64_t
		start; /* in its file's terms: subtract from a symbol address for the offset.  Of what has no symbol the
			  * unwind rules tell it, which a stripped program still has.  UINT64_MAX:
			  * not known */
	enum tally_frame_kind kind;
};

/* A frame of a place: the function that its symbol names, or one that the compiler inlined
 * there. */
struct tally_place_frame {
	uint32_t function;
	/* string id of the source file as the compiler had it; TALLY_STRING_NONE: not known */
	uint32_t file;
	/* where this frame is: of the place in the innermost, of the call in those around it; 0:
	 * not known */
	uint32_t line;
};

/* The frames of a place: frames.items[first] … [first + count), innermost first.  The last one is
 * the symbol's, those before it are of kind TALLY_FRAME_INLINED.  `count` is never 0. */
struct tally_place_name {
	uint32_t first, count;
	uint64_t offset; /* of the place from the start of its symbol */
};

/* Objects in each of which at least two in a hundred of the samples have no name, where they are
 * five together. */
struct tally_nameless {
	double percent;    /* of the samples, in all that are listed */
	size_t listed;
	char objects[160]; /* "a, b, c", the most of it first */
};

/* Why some names are missing, for one line to the user. */
struct tally_names_gaps {
	size_t changed_files; /* build-id differs from the recorded one */
	char changed_file[256];
	size_t missing_files;
	size_t distrusted_maps;   /* /tmp/perf-PID.map that another user wrote */
	size_t map_lines_skipped; /* of maps that were read */
	bool kernel_hidden;   /* kallsyms shows no addresses (kptr_restrict) */
	bool packed_damaged;  /* the names that the recording carries can't be read */
	bool packed_newer;    /* … are a newer tally's */
	/* another kernel than the recorded one runs, and there is no file of the recorded one */
	bool kernel_differs;
	bool vmlinux_differs; /* the vmlinux that was asked for is of another build; it is used */
	/* from debuginfod servers; those that no server had */
	size_t fetched_files, unfetched_files;
	bool fetching_ended;  /* by the user, before all were asked for */
	struct tally_nameless nameless, absent; /* of files that were read; that were not found */
	bool lacks_xz;        /* tables that can't be read without liblzma */
};

/* Where names come from besides the files of the recording; all of it may be 0.  The texts must
 * outlive the names. */
struct tally_name_sources {
	struct tally_object_search search;
	/* the kernel that was recorded; NULL: looked for where distributions put it */
	const char *vmlinux;
	bool asks_debuginfod;         /* servers are asked for the debug files of hot objects */
	const char *debuginfod_urls;  /* these; NULL: the environment's */
	/* Called while one comes; `object` "" when all is done.  False: no more. */
	bool (*fetching)(void *context, const char *object, uint64_t bytes, uint64_t total);
	void *fetching_context;
	bool modules;         /* the kernel's modules are named by their files, not by kallsyms */
	bool full_names;      /* views show parameters in any case */
	/* a copy of its /proc/kallsyms; NULL: this machine's, if it runs that kernel */
	const char *kallsyms;
};

struct tally_names {
	struct tally_tasks *tasks;
	struct tally_objects objects;
	struct tally_strings strings; /* names and objects */
	struct { struct tally_function *items; size_t count, capacity; } functions;
	struct { struct tally_place_frame *items; size_t count, capacity; } frames;
	struct tally_map function_index;
	struct { struct tally_name_table *items; size_t count, capacity; } tables; /* by file id */
	struct tally_name_table *kernel;
	bool kernel_tried;
	struct tally_name_sources sources;
	struct tally_object_entry vmlinux; /* the recorded kernel's file, once tried */
	/* what the recorded kernel's addresses are above those of its table */
	int64_t kernel_shift;
	int64_t vmlinux_shift;  /* the same above those in vmlinux */
	const char *kernel_release; /* recorded; NULL: not known */
	/* recorded on another kernel: kallsyms of this one must not be used */
	bool foreign_machine;
	struct tally_build_id kernel_build_id; /* recorded; size 0: not known */
	/* places that tally_names_function() was asked for are put here; NULL: nobody wants them */
	struct tally_place_table *asked;
	bool keep_mangled;
	bool no_inlines; /* set by who wants the symbols' functions alone */
	bool real_paths; /* objects are called by their files' own names, not by those under which
			  * they were started */
	size_t told_apart; /* so many of `functions` were there when they were told apart last */
	/* by which the kernel's code is read; NULL: none */
	const struct tally_text_pokes *text_pokes;
	/* held while recording; NULL: none, they are looked for where they lie */
	const struct tally_perf_maps *perf_maps;
	struct tally_disk_cache *cache; /* NULL: nothing is kept for the next run */
	/* symbols by file, of simpleperf's recordings; NULL: none */
	struct { const void *bytes; size_t size; } listed;
	/* NULL: none */
	struct { const void *bytes; size_t size; bool is_read, code_is_read; } packed_section;
	/* what the recording says of its places; NULL: nothing */
	struct tally_packed_names *packed;
	/* the code that it has; NULL: none, or nobody asked */
	struct tally_packed_codes *packed_codes;
	struct tally_names_gaps gaps;
};

void tally_names_init(struct tally_names *names, struct tally_tasks *tasks);
/* What is worked out from objects comes from the user's cache, and is put there for the next
 * run. */
void tally_names_use_cache(struct tally_names *names);

/* Places are named by what the recording carries (tally's own section) where it says something of
 * them; files and the kernel are asked for the others only.  The bytes must outlive the names. */
void tally_names_use_packed(struct tally_names *names, const void *section, size_t size);

/* Before anything is named. */
void tally_names_use_sources(struct tally_names *names, const struct tally_name_sources *sources);

void tally_names_release(struct tally_names *names);

struct tally_data_name {
	const char *name;   /* NULL: none is known */
	const char *object;
	uint64_t offset;    /* from the start of what is named */
	/* of what is named, in its object's terms; of what is not, the place itself */
	uint64_t start;
	uint32_t pid;       /* whose alone it is, of memory that is no file's; 0 else */
	bool is_variable;   /* and no code */
};

/* What lies at an address of a process that data was at: a variable, or a function where it is
 * code.  0 or -ENOMEM.  The texts live as long as the names. */
int tally_names_data(struct tally_names *names, uint32_t pid, uint64_t address,
		     struct tally_data_name *out);

/* The function that holds a place, as an index into `functions`; `symbol_offset` (may be NULL) gets
 * the distance from its start.  UINT32_MAX when memory is out. */
uint32_t tally_names_function(struct tally_names *names, const struct tally_place *place,
			      uint64_t *symbol_offset);

/* Names many places at once: what is to be read of a file's debug information is read in the order
 * of addresses, once.  `out` has room for `count`.  0 or -ENOMEM. */
int tally_names_resolve(struct tally_names *names, const struct tally_place *places, size_t count,
			struct tally_place_name *out);

/* Sets each function's `plain`, as short as it can be while no two functions of an object have the
 * same: "calc" where there is one, "calc(int)" and "calc(double)" where there are two
 * (names_apart.c).  Call it when all places are named, and again when there are more.  0 or
 * -ENOMEM. */
int tally_names_tell_apart(struct tally_names *names);

/* Appends the name with all parameters, which is the same in any recording of the function; without
 * hashes and addresses, which differ from build to build. */
void tally_names_full_text(const struct tally_names *names, uint32_t function,
			   struct tally_buffer *out);

/* True when `typed` names the function: as views show it, with or without version or parameters, or
 * by its symbol.  Blanks don't matter. */
bool tally_names_is_called(const struct tally_names *names, uint32_t function, const char *typed);

/* The same of any name in a list of patterns (sample_filter.h). */
bool tally_names_is_listed(const struct tally_names *names, uint32_t function, const char *list);

/* As the symbol table has it, or "[unknown]", perf's word.  And what views show: "main" without its
 * version; of what has no symbol "[gzip+0x4010]", where its function begins, or "[gzip]" where that
 * isn't known. */
const char *tally_names_text(const struct tally_names *names, uint32_t function);
const char *tally_names_plain_text(const struct tally_names *names, uint32_t function);
/* The object's whole path, and its last part. */
const char *tally_names_object(const struct tally_names *names, uint32_t function);
const char *tally_names_short_object(const struct tally_names *names, uint32_t function);
/* The path of the file, whose object may be called by the name under which it was started; "" where
 * it is in none. */
const char *tally_names_file_path(const struct tally_names *names, uint32_t function);
const char *tally_object_short(const char *path);

/* Looks an address up in the maps of a task as they are now.  `kernel`: by cpumode. */
struct tally_place tally_place_of(const struct tally_tasks *tasks, uint32_t pid, bool kernel,
				  uint64_t address);

#endif
