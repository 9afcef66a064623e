#include "naming/perf_map_names.h"

#include "base/buffer.h"
#include "symbol/symbol.h"
#include "task/perf_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { PERF_MAP_BYTES_MAX = 1 << 30 };

/* Reads the map's file.  Returns 1, or 0 if there is none to read. */
static int read_where_it_lies(struct tally_names *names, uint32_t pid, struct tally_buffer *text)
{
	char path[32];
	int fd = tally_perf_map_open(pid, names->perf_maps ? names->perf_maps->began_ns : 0);
	names->gaps.distrusted_maps += fd == -EPERM;
	if (fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int result = tally_buffer_read_file(text, AT_FDCWD, path, PERF_MAP_BYTES_MAX - 1);
	close(fd);
	return !result;
}

struct tally_symbols *tally_perf_map_load(struct tally_names *names, uint32_t pid)
{
	struct tally_buffer text = { .maximum = PERF_MAP_BYTES_MAX };
	struct tally_symbols *symbols = NULL;
	size_t skipped = 0;
	int found = names->perf_maps
			    ? tally_perf_maps_text(names->perf_maps, pid, &text, PERF_MAP_BYTES_MAX)
			    : 0;
	if (!found)
		found = read_where_it_lies(names, pid, &text);
	if (found > 0 && !text.failed &&
	    tally_symbols_from_perf_map(text.bytes ? text.bytes : "", text.length, &skipped,
					&symbols, NULL) < 0)
		symbols = NULL;
	names->gaps.map_lines_skipped += skipped;
	tally_buffer_release(&text);
	return symbols;
}
