/* Parts of the names (names.h) whose members only this room uses: the tables of files, the recorded
 * kernel, and what the recording carries. */
#ifndef TALLY_NAMING_NAMES_PARTS_H
#define TALLY_NAMING_NAMES_PARTS_H

#include "task/objects.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_disk_cache;
struct tally_name_table;
struct tally_packed_codes;
struct tally_packed_names;
struct tally_perf_maps;
struct tally_text_pokes;

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

#endif
