/* A fuzzer's input that is a folder of files: a recording, and what its views read besides.
 *
 *     "TALLYFLD", views (8 bytes) | length of the name (2), size (4), name, bytes | …
 *
 * Numbers are little-endian.  An input that begins otherwise is one file, "recording". */
#ifndef TALLY_TEST_FOLDER_H
#define TALLY_TEST_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FOLDER_FILES_MAX = 16, FOLDER_NAME_MAX = 64 };

struct folder_file {
	char name[FOLDER_NAME_MAX]; /* "recording", "recording/data.1", "root/bin/app" */
	const uint8_t *bytes;
	size_t size;
};

struct folder {
	bool is_plain;  /* one file without a head */
	uint64_t views; /* a number that chooses what is done with the files */
	struct folder_file files[FOLDER_FILES_MAX];
	size_t count;
};

/* Reads an input; the files' bytes are the input's.  Leaves out files that don't fit, or that have a
 * name outside of the folder.
 * Returns false if the input is too short. */
bool folder_read(const uint8_t *bytes, size_t size, struct folder *out);

size_t folder_bytes(const struct folder *folder);
void folder_write(const struct folder *folder, uint8_t *out);

#endif
