/* PCRE2's JIT: its code lies in anonymous memory, without unwind rules and without frame pointers. */
#include "truth.h"

#include <dlfcn.h>
#include <string.h>

/* As pcre2.h has them, which need not be here. */
enum { PCRE2_JIT_COMPLETE = 1 };
static void *(*compile)(const char *, size_t, uint32_t, int *, size_t *, void *);
static int (*jit_compile)(void *, uint32_t);
static void *(*new_data)(void *, void *);
static int (*match)(void *, const char *, size_t, size_t, uint32_t, void *, void *);

static void *code, *data;
static char text[40000];

TRUTH_FUNCTION static int matching(void)
{
	int found = 0;
	for (int i = 0; i < 20; i++)
		found += match(code, text, sizeof(text) - 1, 0, 0, data, NULL);
	return found;
}

TRUTH_FUNCTION static uint64_t other(uint64_t value)
{
	value = truth_work(value);
	__asm__ volatile("");
	return value;
}

static int open_library(void)
{
	static const char PATTERN[] = "(?:a|b)*?(c|d)[x-z]";
	void *library = dlopen("libpcre2-8.so.0", RTLD_NOW);
	size_t offset;
	int error;
	if (!library)
		return -1;
	*(void **)&compile = dlsym(library, "pcre2_compile_8");
	*(void **)&jit_compile = dlsym(library, "pcre2_jit_compile_8");
	*(void **)&new_data = dlsym(library, "pcre2_match_data_create_from_pattern_8");
	*(void **)&match = dlsym(library, "pcre2_match_8");
	code = compile(PATTERN, sizeof(PATTERN) - 1, 0, &error, &offset, NULL);
	data = code ? new_data(code, NULL) : NULL;
	return data ? jit_compile(code, PCRE2_JIT_COMPLETE) : -1;
}

int main(void)
{
	struct truth_part parts[] = { { "matching", 0 }, { "other", 0 } };
	uint64_t value = 1;
	memset(text, 'a', sizeof(text) - 1);
	if (open_library()) {
		puts("skip no libpcre2-8.so.0 with a JIT");
		return 0;
	}
	truth_begin();
	for (int i = 0; i < 8; i++) {
		TRUTH_SPEND(&parts[0], 80, matching());
		TRUTH_SPEND(&parts[1], 50, value = other(value));
	}
	truth_print(parts, 2);
	return value == 42;
}
