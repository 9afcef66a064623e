#include "command/output_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int tally_output_write(const char *path, const struct tally_buffer *text, struct tally_error *err)
{
	bool is_stdout = !path || !strcmp(path, "-");
	FILE *file = is_stdout ? stdout : fopen(path, "we");
	if (!file)
		return tally_error_set(err, -errno, "%s can't be written: %s", path, tally_errno_text(errno));
	bool failed = fwrite(tally_buffer_string(text), 1, text->length, file) != text->length;
	failed |= is_stdout ? fflush(file) != 0 : fclose(file) != 0;
	return failed ? tally_error_set(err, -EIO, "writing %s failed: %s", is_stdout ? "to standard output" : path,
					tally_errno_text(errno)) : 0;
}
