/* Run by the build: turns a text file into a C array, `embed IN OUT SYMBOL [KEY]`.
 *
 * Lines between "//if KEY" and "//else" or "//end" are kept only when KEY is given; lines between
 * "//else" and "//end" only when it isn't. The marks themselves are always removed.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Returns true if the line is a mark, and updates whether the lines after it are left out. */
static bool is_mark(const char *line, const char *key, bool *is_left_out)
{
	while (*line == '\t')
		line++;
	if (!strncmp(line, "//if ", 5)) {
		size_t length = strcspn(line + 5, "\n");
		*is_left_out = strlen(key) != length || strncmp(line + 5, key, length) != 0;
	} else if (!strcmp(line, "//else\n")) {
		*is_left_out = !*is_left_out;
	} else if (!strcmp(line, "//end\n")) {
		*is_left_out = false;
	} else {
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	if (argc != 4 && argc != 5)
		return 2;
	FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
	if (!in || !out) {
		perror(in ? argv[2] : argv[1]);
		return 1;
	}
	fprintf(out, "extern const char %s[];\nconst char %s[] = {", argv[3], argv[3]);
	const char *key = "";
	if (argc == 5)
		key = argv[4];
	char line[4096];
	bool is_left_out = false;
	unsigned long i = 0;
	while (fgets(line, sizeof(line), in)) {
		if (is_mark(line, key, &is_left_out) || is_left_out)
			continue;
		for (const char *c = line; *c; c++, i++) {
			if (i % 24 == 0)
				fputc('\n', out);
			if ((unsigned char)*c < 128)
				fprintf(out, "%u,", (unsigned char)*c);
			else
				fprintf(out, "'\\x%x',", (unsigned char)*c);
		}
	}
	fprintf(out, "\n0};\n");
	int failed = ferror(in) | ferror(out);
	failed |= fclose(out) | fclose(in);
	return failed != 0;
}
