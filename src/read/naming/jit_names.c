/* Compares names with the patterns of perf, V8 and .NET. */
#include "naming/naming.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool has_form(const char *base, const char *form)
{
	unsigned process;
	int end = 0;
	return sscanf(base, form, &process, &end) == 1 && end && !base[end];
}

const char *tally_jit_object(const char *path)
{
	const char *base = path;
	if (path[0] != '[')
		base = tally_object_basename(path);
	if (has_form(base, "perf-%10u.map%n") || has_form(base, "[JIT] tid %10u%n") ||
	    !strcmp(path, TALLY_JIT_MAP))
		return TALLY_JIT_MAP;
	if (has_form(base, "jit-%10u.dump%n") || has_form(base, "jitted-%10u-%*u.so%n") ||
	    !strcmp(path, TALLY_JIT_DUMP))
		return TALLY_JIT_DUMP;
	if (!strcmp(path, TALLY_JIT_UNNAMED))
		return TALLY_JIT_UNNAMED;
	return NULL;
}

/* V8 puts a sign behind the kind of code: "~" interpreted, "^" baseline, "+" midtier, "*"
 * optimized.  No name in JavaScript begins with one of them. */
static size_t v8_tier(const char *name, size_t *at)
{
	static const char *const kinds[] = { "JS:", "LazyCompile:", "Function:", "Script:",
					     "Eval:" };
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		*at = strlen(kinds[i]);
		if (!strncmp(name, kinds[i], *at))
			return name[*at] && strchr("~^+-*", name[*at]);
	}
	return 0;
}

static size_t dotnet_tier(const char *name, size_t *at)
{
	static const char *const tiers[] = {
		"[Tier0]",     "[InstrumentedTier0]", "[QuickJitted]", "[QuickJittedInstrumented]",
		"[OptimizedTier1]", "[OptimizedTier1OSR]",  "[OptimizedTier1Instrumented]",
		"[InstrumentedTier1]", "[Optimized]", "[MinOptJitted]", "[PreJIT]", "[ReadyToRun]",
	};
	const size_t length = strlen(name);
	for (size_t i = 0; i < sizeof(tiers) / sizeof(tiers[0]); i++) {
		size_t tier = strlen(tiers[i]);
		*at = length - tier;
		if (length > tier && !strcmp(name + *at, tiers[i]))
			return tier;
	}
	return 0;
}

size_t tally_jit_tier(const char *name, size_t *at)
{
	size_t length = v8_tier(name, at);
	if (length)
		return length;
	return dotnet_tier(name, at);
}
