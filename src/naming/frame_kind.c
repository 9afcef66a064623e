#include "naming/frame_kind.h"

#include <ctype.h>
#include <string.h>

const char *tally_object_basename(const char *object)
{
	const char *slash = strrchr(object, '/');
	return slash && slash[1] ? slash + 1 : object;
}

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static bool is_jit(const char *object, const char *base)
{
	size_t length = strlen(base);
	return starts(object, "[JIT]") || starts(object, "//anon") || starts(object, "[anon") ||
	       starts(base, "jitted-") || starts(object, "/memfd:") ||
	       (starts(base, "perf-") && length > 9 && !strcmp(base + length - 4, ".map"));
}

/* True for ".so" at the end, or before a version or another ending: libc.so.6, libx-2.3.so,
 * libx.so.debug. */
static bool is_library(const char *base)
{
	for (const char *so = strstr(base, ".so"); so; so = strstr(so + 1, ".so"))
		if (!isalnum((unsigned char)so[3]) && so[3] != '_')
			return true;
	return starts(base, "ld-linux");
}

bool tally_object_is_user_page(const char *object)
{
	static const char *const pages[] = { "[vdso",     "[vsyscall", "[vvar",
					     "[vectors]", "[sigpage]", "[uprobes]" };
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
		if (starts(object, pages[i]))
			return true;
	return false;
}

enum tally_frame_kind tally_frame_kind_of_object(const char *object)
{
	const char *base = tally_object_basename(object);
	size_t length = strlen(object);
	if (!*object || !strcmp(object, "[unknown]") || !strcmp(object, "[heap]") ||
	    starts(object, "[stack"))
		return TALLY_FRAME_PROGRAM;
	if (is_jit(object, base))
		return TALLY_FRAME_JIT;
	if (tally_object_is_user_page(object))
		return TALLY_FRAME_LIBRARY;
	if (starts(object, "[bpf") || starts(object, "bpf_prog_") || starts(base, "vmlinux") ||
	    starts(object, "/lib/modules/") || starts(object, "/usr/lib/modules/") ||
	    (length > 3 && !strcmp(object + length - 3, ".ko")))
		return TALLY_FRAME_KERNEL;
	/* perf writes a kernel module whose file it doesn't have as "[nf_conntrack]" */
	if (object[0] == '[' && length > 2)
		return TALLY_FRAME_KERNEL;
	return is_library(base) ? TALLY_FRAME_LIBRARY : TALLY_FRAME_PROGRAM;
}
