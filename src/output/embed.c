/* Run by the build: turns a text file into a C array, `embed IN OUT SYMBOL`. */
#include <stdio.h>

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
	if (!in || !out) {
		perror(in ? argv[2] : argv[1]);
		return 1;
	}
	fprintf(out, "extern const char %s[];\nconst char %s[] = {", argv[3], argv[3]);
	int c;
	for (unsigned long i = 0; (c = fgetc(in)) != EOF; i++)
		fprintf(out, c < 128 ? "%s%u," : "%s'\\x%x',", i % 24 ? "" : "\n", (unsigned)c);
	fprintf(out, "\n0};\n");
	int failed = ferror(in) | ferror(out);
	failed |= fclose(out) | fclose(in);
	return failed != 0;
}
