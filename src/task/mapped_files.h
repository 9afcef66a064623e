/* The files of the tasks' mappings, each once: inside this room.
 *
 * A recorder that follows a machine for hours sees files without end (each process that makes code
 * has its own "//anon", each test that is compiled and run is another program), so that those which
 * nobody has mapped any more can be forgotten.
 */
#ifndef TALLY_TASK_MAPPED_FILES_H
#define TALLY_TASK_MAPPED_FILES_H

#include "task/tasks.h"

/* The id of the file, made when it is new; TALLY_FILE_NONE when memory is out. */
uint32_t tally_mapped_files_intern(struct tally_tasks *tasks, const struct tally_mapped_file *file);
uint32_t tally_mapped_files_of_record(struct tally_tasks *tasks,
				      const struct tally_record_mmap *mmap);

/* Into an index of files, by a number, one that is not in there.  0 or -ENOMEM. */
int tally_mapped_files_put(struct tally_map *index, const struct tally_mapped_file *file,
			   uint32_t number);

/* The number that each file gets when those are forgotten that nobody has mapped and that were
 * mapped longest ago, so that `limit` are left, if so many can go; TALLY_FILE_NONE: it goes.  To be
 * freed by the caller; NULL: no memory. */
uint32_t *tally_mapped_files_choose(const struct tally_tasks *tasks, size_t limit);

/* Makes it so, and forgets the strings that nobody needs any more: ids of files and of strings
 * change.  0, or -ENOMEM with nothing done. */
int tally_mapped_files_renumber(struct tally_tasks *tasks, const uint32_t *numbers);

#endif
