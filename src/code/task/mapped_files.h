/* The files of the tasks' mappings, each stored once.  Internal to this folder.
 *
 * A recorder that runs for hours sees ever more files: each process that makes code has its own
 * "//anon", and each test that is compiled and run is a new program.  So files that no process maps
 * any more can be forgotten.
 */
#ifndef TALLY_TASK_MAPPED_FILES_H
#define TALLY_TASK_MAPPED_FILES_H

#include "task/tasks.h"

/* Returns the file's id and adds the file if it is new; TALLY_FILE_NONE without memory. */
#define TALLY_VDSO32 "[vdso32]" /* the path of the vdso of a 32-bit process */

uint32_t tally_mapped_files_intern(struct tally_tasks *tasks, const struct tally_mapped_file *file);
uint32_t tally_mapped_files_of_record(struct tally_tasks *tasks,
				      const struct tally_record_mmap *mmap);

/* Returns the file of a forked child's copy of memory that belongs to its parent. */
uint32_t tally_mapped_files_inherit(struct tally_tasks *tasks, uint32_t number, uint32_t pid);

/* Chooses which files to forget: files that no process maps, the least recently mapped first, until
 * `limit` files are left or no more can go.  Returns each file's new number, or TALLY_FILE_NONE if
 * it goes.  The caller frees the array.  Returns NULL without memory. */
uint32_t *tally_mapped_files_choose(struct tally_tasks *tasks, size_t limit);

/* Applies new numbers, and forgets the strings that are no longer used.  Ids of files and of
 * strings change.  Returns 0, or -ENOMEM without any change. */
int tally_mapped_files_renumber(struct tally_tasks *tasks, uint32_t *numbers);

#endif
