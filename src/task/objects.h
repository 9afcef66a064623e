/* The ELF objects behind mapped files, opened once and shared: for names, for unwinding.
 *
 * A file is used only when its build-id is the recorded one; a copy in perf's or the distribution's
 * build-id folders is tried next, then what a process that had it mapped still has (live_file.h),
 * and what stays unusable says why.  While recording (`is_live`) there is no build-id yet: the
 * inode tells which file it is.
 */
#ifndef TALLY_TASK_OBJECTS_H
#define TALLY_TASK_OBJECTS_H

#include "abi/arch.h"
#include "object/search.h"
#include "task/tasks.h"
#include "unwind/unwind.h"

struct tally_made_code;

enum tally_object_state {
	TALLY_OBJECT_UNTRIED,
	TALLY_OBJECT_OPEN,
	TALLY_OBJECT_MISSING, /* no such file, not readable, no ELF file */
	TALLY_OBJECT_CHANGED, /* the file's build-id is not the recorded one */
	TALLY_OBJECT_NO_FILE, /* nothing to open: the kernel, anonymous memory */
};

struct tally_object_entry {
	enum tally_object_state state;
	struct tally_object *object;
	struct tally_object *debug; /* separate debug file, or NULL */
	bool debug_tried;
	int lack; /* why names of it are missed: -ENOPKG (liblzma is not there), -ENOMEM, or 0 */
	const struct tally_object_search *search;
	bool is_by_task;    /* had by way of a process that has it mapped */
	char *root;         /* the folder of another root that it was found in, or NULL */
	uint32_t tried_pid; /* of what is missing: a later process may still have it */
	uint32_t tries;
	struct tally_unwind_table *unwind; /* NULL: none, or not tried */
	bool unwind_tried;
	/* what `unwind` asks where functions begin; NULL: it asks nothing */
	struct tally_entry_functions *functions;
	struct tally_build_id build_id; /* of what was open, and was closed to save memory */
	uint64_t used; /* in which round of tally_objects_trim() last */
};

/* A file that was fetched from elsewhere, for a build-id that is looked for here. */
struct tally_fetched_object {
	struct tally_build_id id;
	struct tally_object *object; /* NULL: it was here, but for its debug file */
	struct tally_object *debug;  /* NULL: none was to be had */
};

/* What may stay open; 0: any number. */
struct tally_objects_budget {
	size_t bytes;  /* of the heap */
	size_t mapped; /* of the files: one that was deleted is still on the disk */
	size_t objects;
};

struct tally_objects {
	/* by file id */
	struct { struct tally_object_entry *items; size_t count, capacity; } entries;
	enum tally_arch arch; /* files of other machines are not used; unknown: of any */
	/* recorded under another kernel: its vdso and its processes are not this one's */
	bool is_foreign;
	/* whose stacks are unwound: this one's unless set */
	enum tally_unwind_machine machine;
	struct tally_unwind_cache *unwind_cache;  /* made when the first stack is unwound */
	/* for tests: the slow reference, without the cache */
	bool unwind_interpreted;
	/* what is mapped is of this machine, and of now */
	bool is_live;
	/* optional, while recording: code without a file */
	struct tally_made_code *made_code;
	struct tally_object_search search;        /* set before anything is opened */
	struct { uint32_t *items; size_t count, capacity; } open; /* entries that have an object */
	/* used before what lies here */
	struct { struct tally_fetched_object *items; size_t count, capacity; } fetched;
	uint64_t rounds;
	size_t files_kept; /* by tally_objects_forget(), the last time */
};

/* The entry of a file, opened on first use; NULL when memory is out. */
struct tally_object_entry *tally_objects_get(struct tally_objects *objects,
					     const struct tally_tasks *tasks, uint32_t file);

/* To be told of each record while recording, after the tasks were: files that can only be had by
 * way of the process that has them mapped are opened now, since it may end. */
void tally_objects_see(struct tally_objects *objects, const struct tally_tasks *tasks,
		       const struct tally_record *record);

/* Files of this build-id that were fetched: kept for entries that are opened from now on.  Each may
 * be NULL and is referred to anew.  0 or -ENOMEM. */
int tally_objects_keep_fetched(struct tally_objects *objects, const struct tally_build_id *id,
			       struct tally_object *object, struct tally_object *debug);

/* Hands what was had by way of a task alone (and has a build-id) over to others, as fetched: `from`
 * is not to be asked any more. 0 or -ENOMEM. */
int tally_objects_hand_over(struct tally_objects *from, struct tally_objects *to);

/* What was fetched for a build-id; NULL: nothing. */
const struct tally_fetched_object *tally_objects_fetched(const struct tally_objects *objects,
							 const struct tally_build_id *id);

/* The separate debug file, looked for on first use; NULL when there is none. */
struct tally_object *tally_objects_debug(struct tally_object_entry *entry);

/* Of the file, open or not; size 0: none, or not known. */
const struct tally_build_id *tally_objects_build_id(const struct tally_object_entry *entry);

/* The same by the file's id, which is opened for it unless it was open before; NULL when memory is
 * out. */
const struct tally_build_id *tally_objects_file_build_id(struct tally_objects *objects,
							 const struct tally_tasks *tasks,
							 uint32_t file);

/* Closes what was not used for longest, where more is open than the budget has; it is opened again
 * when it is needed.  To be called now and then, while nobody holds an object or a rule. */
void tally_objects_trim(struct tally_objects *objects, const struct tally_objects_budget *budget);

/* Where the tasks have a sixteenth more files than `limit`: forgets those that nobody has mapped
 * and that were mapped longest ago, with their entries, so that `limit` are left if so many can go.
 * `tell` (NULL: nobody) is called before with the path and the build-id of each that has one; its
 * error ends this.  Ids of files and of strings change.  To be called when tally_objects_trim() may
 * be, not by who reads dumps of JITs.  0, `tell`'s error, or -ENOMEM with nothing forgotten. */
int tally_objects_forget(struct tally_objects *objects, struct tally_tasks *tasks, size_t limit,
			 int (*tell)(void *context, const char *path,
				     const struct tally_build_id *id),
			 void *context);

/* The unwind rules, parsed on first use; NULL when there are none. */
struct tally_unwind_table *tally_objects_unwind(struct tally_object_entry *entry);

void tally_objects_release(struct tally_objects *objects);

/* "[vdso]" of this process as bytes of an ELF image; NULL when there is none. */
const void *tally_vdso_image(size_t *size);

#endif
