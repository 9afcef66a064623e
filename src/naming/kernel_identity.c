/* Tells whether the recorded kernel may be the running one when a recording has neither its
 * build-id nor its release.  Old recorders, and recorders that were killed, leave such recordings.
 * The records of the kernel's maps help: modules lie below /lib/modules/RELEASE, and KASLR moves a
 * kernel only by whole steps.  So a symbol at another offset within a step belongs to another
 * build. */
#include "naming/kernel_identity.h"

#include "abi/arch.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

/* The address range of the x86-64 kernel (arch/x86/include/asm/page_64_types.h), and
 * CONFIG_PHYSICAL_ALIGN. */
static const uint64_t X86_64_START = 0xffffffff80000000, X86_64_END = 0xffffffffc0000000,
		      X86_64_STEP = 2 << 20;
enum { STEP_MIN = 4096 /* other architectures */ };

static const char kernel_prefix[] = "[kernel.kallsyms]";

uint64_t tally_kernel_running_address(const char *symbol)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	char line[512], name[256];
	unsigned long long at, found = 0;
	while (file && !found && fgets(line, sizeof(line), file))
		if (sscanf(line, "%llx %*c %255s", &at, name) == 2 && !strcmp(name, symbol))
			found = at;
	if (file)
		fclose(file);
	return found;
}

/* Copies the release from "/lib/modules/RELEASE/…".  Returns false for any other path. */
static bool take_release(const char *path, char release[TALLY_KERNEL_RELEASE_BYTES])
{
	static const char modules[] = "/lib/modules/";
	if (!strncmp(path, "/usr/", 5))
		path += 4;
	if (strncmp(path, modules, sizeof(modules) - 1) != 0)
		return false;
	path += sizeof(modules) - 1;
	size_t length = strcspn(path, "/");
	if (!length || !path[length] || length >= TALLY_KERNEL_RELEASE_BYTES)
		return false;
	memcpy(release, path, length);
	release[length] = '\0';
	return true;
}

bool tally_kernel_may_be_at(uint64_t recorded, uint64_t now, enum tally_arch arch)
{
	bool is_x86_64 = arch == TALLY_ARCH_X86_64;
	if (is_x86_64 && (recorded < X86_64_START || recorded >= X86_64_END))
		return false;
	if (!now)
		return true; /* kallsyms hides it */
	return (recorded - now) % (is_x86_64 ? X86_64_STEP : STEP_MIN) == 0;
}

static bool is_kernels(const struct tally_record *record)
{
	return (record->header.misc & TALLY_MISC_CPUMODE_MASK) == TALLY_MISC_KERNEL &&
	       record->mmap.pid == UINT32_MAX;
}

bool tally_kernel_module_is_anothers(const struct tally_record *record,
				     char release[TALLY_KERNEL_RELEASE_BYTES])
{
	struct utsname here;
	return is_kernels(record) && take_release(record->mmap.filename, release) &&
	       uname(&here) == 0 && strcmp(release, here.release) != 0;
}

const char *tally_kernel_map_symbol(const struct tally_record *record)
{
	const char *name = record->mmap.filename, *symbol = name + sizeof(kernel_prefix) - 1;
	if (!is_kernels(record) || strncmp(name, kernel_prefix, sizeof(kernel_prefix) - 1) != 0)
		return NULL;
	return !strcmp(symbol, "_text") || !strcmp(symbol, "_stext") ? symbol : NULL;
}
