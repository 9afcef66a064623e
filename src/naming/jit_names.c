#include "naming/jit_names.h"

#include "naming/frame_kind.h"

#include <stdio.h>
#include <string.h>

bool tally_jit_is_object(const char *path)
{
	static const char *const forms[] = { "perf-%10u.map%n", "jit-%10u.dump%n",
					     "jitted-%10u-%*u.so%n", "[JIT] tid %10u%n" };
	const char *base = path[0] == '[' ? path : tally_object_basename(path);
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		unsigned process;
		int end = 0;
		if (sscanf(base, forms[i], &process, &end) == 1 && end && !base[end])
			return true;
	}
	return !strcmp(path, TALLY_JIT_OBJECT);
}

/* V8 puts a sign behind the kind of code: "~" interpreted, "^" baseline, "+" midtier, "*"
 * optimized.  No name in JavaScript begins with one of them. */
static size_t v8_tier(const char *name, size_t *at)
{
	static const char *const kinds[] = { "JS:", "LazyCompile:", "Function:", "Script:", "Eval:" };
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		*at = strlen(kinds[i]);
		if (!strncmp(name, kinds[i], *at))
			return name[*at] && strchr("~^+-*", name[*at]) ? 1 : 0;
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
	return length ? length : dotnet_tier(name, at);
}
