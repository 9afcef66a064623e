/* The ELF objects behind mapped files, opened once and shared, for names and for unwinding.
 *
 * A file is used only when it is the recorded one (file_identity.h).  Otherwise a copy in perf's or
 * the distribution's build-id folders is tried, then the file of a process that still maps it
 * (live_file.h).  An entry that can't be used says why.  While recording (`is_live`), a file is
 * opened as soon as it is mapped, and kept for the names.
 */
#ifndef TALLY_TASK_OBJECTS_H
#define TALLY_TASK_OBJECTS_H

#include "abi/arch.h"
#include "object/search.h"
#include "task/file_identity.h"
#include "task/live_file.h"
#include "task/tasks.h"
#include "unwind/unwind.h"

struct tally_live_jits;
struct tally_made_code;
struct tally_symbol;
struct tally_symbols;

enum tally_object_state {
	TALLY_OBJECT_UNTRIED,
	TALLY_OBJECT_OPEN,
	TALLY_OBJECT_HELD,    /* found, but not read yet */
	TALLY_OBJECT_MISSING, /* not found, not readable, or no ELF file */
	TALLY_OBJECT_CHANGED, /* a file is there, but not the recorded one */
	TALLY_OBJECT_NO_FILE, /* nothing to open: the kernel, anonymous memory */
};

struct tally_object_entry {
	enum tally_object_state state;
	struct tally_object *object;
	struct tally_object *debug; /* separate debug file, or NULL */
	bool debug_tried;
	int lack; /* why names are missing: -ENOPKG (no liblzma), -ENOMEM, or 0 */
	const struct tally_object_search *search;
	/* why the file is not the recorded one (CHANGED) */
	enum tally_file_identity difference;
	struct tally_live_file held; /* of state HELD */
	size_t copied_bytes;
	/* the file was written anew while it was recorded, so its names may be of other code */
	bool is_ambiguous;
	char *root;         /* folder of another root in which it was found, or NULL */
	/* process tried last for a missing file; a later one may still have it */
	uint32_t tried_pid;
	uint32_t tries;
	struct tally_unwind_table *unwind; /* NULL: none, or not tried */
	bool unwind_tried;
	/* tells `unwind` where functions begin; NULL: unused */
	struct tally_entry_functions *functions;
	struct tally_build_id build_id; /* of an object that was closed to save memory */
	uint64_t used; /* round of tally_objects_trim() in which it was last used */
};

/* A file fetched from elsewhere: by debuginfod, or by the recorder, which opened it when it was
 * mapped. */
struct tally_fetched_object {
	struct tally_build_id id;
	/* with size 0 of `id`: the mapped file; NULL: identified by `id` */
	char *path;
	uint32_t major, minor;
	uint64_t inode, inode_generation;
	struct tally_object *object; /* NULL: only the debug file was fetched, or `held` has it */
	struct tally_object *debug;  /* NULL: none found */
	struct tally_live_file held; /* not read yet; path NULL: none */
	bool is_overwritten; /* the file was written anew while it was recorded */
};

/* Limits for open objects; 0: none. */
struct tally_objects_budget {
	size_t bytes;  /* heap bytes */
	size_t mapped; /* bytes of mapped files; a deleted file occupies the disk while mapped */
	size_t objects;
};

struct tally_objects {
	/* indexed by file id */
	struct { struct tally_object_entry *items; size_t count, capacity; } entries;
	enum tally_arch arch; /* ignore files of other machines; unknown: use all */
	/* recorded under another kernel: our vdso and our processes are not the recorded ones */
	bool is_foreign;
	/* the machine whose stacks are unwound; by default this one */
	enum tally_unwind_machine machine;
	struct tally_unwind_cache *unwind_cache;  /* made for the first stack */
	/* for tests: unwind by the slow reference, without the cache */
	bool unwind_interpreted;
	/* the mappings are of this machine and current */
	bool is_live;
	struct tally_file_times times;
	size_t copied_bytes; /* of files that are not mapped, since they may be written anew */
	size_t held_count; /* descriptors of files that are not read yet */
	/* optional, while recording: reads code without a file */
	struct tally_made_code *made_code;
	/* optional, while recording: has rules of code without a file */
	struct tally_live_jits *live_jits;
	struct tally_object_search search;        /* set before the first object is opened */
	struct { uint32_t *items; size_t count, capacity; } open; /* entries that have an object */
	/* preferred to local files */
	struct { struct tally_fetched_object *items; size_t count, capacity; } fetched;
	uint64_t rounds;
	size_t files_kept; /* files left by the last tally_objects_forget() */
};

/* Returns a file's entry, opened on first use; NULL without memory. */
struct tally_object_entry *tally_objects_get(struct tally_objects *objects,
					     const struct tally_tasks *tasks, uint32_t file);

/* Call it with each record while recording, after the tasks got it.  Opens each file that is mapped
 * executable when it is new: it may be removed or replaced, and its process may end. */
void tally_objects_record(struct tally_objects *objects, const struct tally_tasks *tasks,
			  const struct tally_record *record);

/* Keeps fetched files of this build-id for entries that are opened later.  Either may be NULL;
 * takes new references.  Returns 0 or -ENOMEM. */
int tally_objects_keep_fetched(struct tally_objects *objects, const struct tally_build_id *id,
			       struct tally_object *object, struct tally_object *debug);

/* Moves the open and held files to `to`, as fetched.  Don't use `from` afterwards.  Returns 0 or
 * -ENOMEM. */
int tally_objects_hand_over(struct tally_objects *from, const struct tally_tasks *tasks,
			    struct tally_objects *to);

/* Lets `to` use the fetched files of `from` as well.  Returns 0 or -ENOMEM. */
int tally_objects_share(const struct tally_objects *from, struct tally_objects *to);

/* Returns what was fetched for a build-id, or NULL. */
const struct tally_fetched_object *tally_objects_fetched(const struct tally_objects *objects,
							 const struct tally_build_id *id);

/* Returns the separate debug file, searched for on first use; NULL when there is none. */
struct tally_object *tally_objects_debug(struct tally_object_entry *entry);

/* Returns the build-id of an entry, open or closed; size 0: none or unknown. */
const struct tally_build_id *tally_objects_build_id(const struct tally_object_entry *entry);

/* Returns the build-id of a file by its id; opens the file unless it was open before.  NULL without
 * memory. */
const struct tally_build_id *tally_objects_file_build_id(struct tally_objects *objects,
							 const struct tally_tasks *tasks,
							 uint32_t file);

/* When more is open than the budget allows, closes the objects not used for longest; they are
 * reopened when needed.  Call it from time to time, while no caller holds an object or a rule. */
void tally_objects_trim(struct tally_objects *objects, const struct tally_objects_budget *budget);

/* When the tasks have a sixteenth more files than `limit`, forgets files that no process maps, the
 * least recently mapped first, with their entries, until `limit` files are left or no more can go.
 * Before, calls `report` (may be NULL) with path and build-id of each that has a build-id; an error
 * of `report` ends this.  Ids of files and of strings change.  Call it only when
 * tally_objects_trim() may be called, and not with tasks that read dumps of JITs.  Returns 0,
 * `report`'s error, or -ENOMEM with nothing forgotten. */
int tally_objects_forget(struct tally_objects *objects, struct tally_tasks *tasks, size_t limit,
			 int (*report)(void *context, const char *path,
				       const struct tally_build_id *id),
			 void *context);

/* Corrects the symbol that a table has for an address, by where functions begin and end by rules
 * and code (`rules` may be NULL).  A symbol without a size ends with its function; code behind it
 * has no symbol.  A local label inside of a function is not the function's name.  Sets *symbol, and
 * *end to the function's end.  Returns false when there is no symbol. */
bool tally_objects_function_at(struct tally_unwind_table *rules,
			       const struct tally_symbols *symbols, uint64_t address,
			       const struct tally_symbol **symbol, uint64_t *end);

/* Returns the unwind rules, parsed on first use; NULL when there are none. */
struct tally_unwind_table *tally_objects_unwind(struct tally_object_entry *entry);

void tally_objects_release(struct tally_objects *objects);

/* Returns this process's "[vdso]" as bytes of an ELF image; NULL when there is none. */
const void *tally_vdso_image(size_t *size);

#endif
