/* The running kernel's memory is the first choice: it holds the code that ran, with its
 * alternatives and tracers patched in.  But only root can read it, many machines don't have it
 * (CONFIG_PROC_KCORE), and the running kernel has to be the recorded one.  The second choice is a
 * file as the compiler left it: vmlinux, or a module's own file. */
#include "naming/kernel_code.h"

#include "abi/arch.h"
#include "object/kcore.h"
#include "naming/kernel_identity.h"
#include "naming/kernel_modules.h"
#include "naming/name_tables.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sets `above` to the distance of the running kernel's addresses above those of its symbols here.
 * Returns false if another kernel runs. */
static bool running_kernel(const struct tally_names *names, uint64_t *above)
{
	struct tally_build_id running;
	const char *symbol;
	const struct tally_mapping *reference = tally_kernel_reference(names, &symbol);
	if (names->foreign_machine || (names->kernel_build_id.size &&
				       (!tally_kernel_running_build_id(&running) ||
					!tally_build_id_equal(&running, &names->kernel_build_id))))
		return false;
	*above = (uint64_t)names->kernel_shift;
	if (reference) /* after a reboot it may be at another address */
		*above += tally_kernel_running_address(symbol) - reference->file_offset;
	return true;
}

static bool is_loaded(const struct tally_name_table *table, const char *module, uint64_t address)
{
	const struct tally_symbol *there = table->symbols
						   ? tally_symbols_find(table->symbols, address)
						   : NULL;
	const char *name = there ? tally_symbol_module(table->symbols, there) : NULL;
	return name && !strcmp(name, module);
}

/* With `module`, reads the code of that module.  It is at its recorded address only if the kernel
 * was not restarted and kallsyms has the module there. */
static int read_memory(const struct tally_names *names, const struct tally_name_table *table,
		       const char *module, struct tally_function_code *code)
{
	size_t size = (size_t)(code->end - code->start);
	uint64_t above;
	if (!running_kernel(names, &above))
		return -ESTALE;
	if (module && (above || names->sources.kallsyms || !is_loaded(table, module, code->start)))
		return -ESTALE;
	code->kept = malloc(size + 1);
	if (!code->kept)
		return -ENOMEM;
	int why = tally_kcore_read("/proc/kcore", code->start + above, code->kept, size);
	code->bytes = code->kept;
	code->size = why < 0 ? 0 : size;
	return why;
}

static void say_missing(const struct tally_names *names, const char *module, int why,
			struct tally_function_code *code)
{
	const char *kcore = why == -ESTALE ? "/proc/kcore is of another kernel" :
			    why == -ENOENT ? "this kernel has no /proc/kcore" :
			    why == -EACCES || why == -EPERM ? "only root can read /proc/kcore" :
			    "/proc/kcore doesn't have it";
	const char *release = names->kernel_release ? names->kernel_release : "RELEASE";
	if (module) {
		tally_code_because(
			code,
			"the module's code is unavailable: %s, and the recorded %s.ko is not here",
			kcore, module);
		snprintf(
			code->hint, sizeof(code->hint),
			"it is searched by build-id and in /lib/modules/%.64s; --symfs DIR "
			"searches below DIR",
			release);
		return;
	}
	tally_code_because(code,
			   "the kernel's code is unavailable: %s, and there is no vmlinux",
			   kcore);
	snprintf(code->hint, sizeof(code->hint),
		 "name it with --vmlinux FILE; Debian's package linux-image-%.64s-dbg and "
		 "Fedora's kernel-debuginfo have it",
		 release);
}

void tally_kernel_code_machine(const struct tally_names *names, struct tally_function_code *code)
{
	static const unsigned MACHINES[] = {
		[TALLY_ARCH_X86_64] = EM_X86_64,
		[TALLY_ARCH_I386] = EM_386,
		[TALLY_ARCH_ARM64] = EM_AARCH64,
		[TALLY_ARCH_ARM] = EM_ARM,
	};
	enum tally_arch arch = names->objects.arch;
	code->machine = arch < sizeof(MACHINES) / sizeof(MACHINES[0]) ? MACHINES[arch] : EM_NONE;
	code->is_64bit = arch != TALLY_ARCH_I386 && arch != TALLY_ARCH_ARM;
}

int tally_kernel_code_find(struct tally_names *names, struct tally_name_table *table,
			   const struct tally_symbol *symbol, struct tally_function_code *code)
{
	code->shown = (uint64_t)names->kernel_shift;
	tally_kernel_code_machine(names, code);
	if (!symbol) {
		tally_code_because(code,
				   "no kernel symbol gives its bounds");
		snprintf(
			code->hint, sizeof(code->hint),
			"--vmlinux FILE or --kallsyms FILE of the recorded kernel name its functions");
		return 0;
	}
	const char *module = tally_kernel_module_name(table->modules, symbol);
	if (!module && table->symbols)
		module = tally_symbol_module(table->symbols, symbol);
	int why = read_memory(names, table, module, code);
	if (code->size || why == -ENOMEM)
		return why == -ENOMEM ? why : 0;
	if (module) {
		const struct tally_object *object = tally_kernel_module_object(names, table,
									       symbol);
		if (object)
			tally_code_of_object(code, object, code->start, code->end - code->start);
	} else {
		const struct tally_object_entry *entry = tally_kernel_object(names);
		uint64_t to_file = (uint64_t)(names->kernel_shift - names->vmlinux_shift);
		if (entry)
			tally_code_of_object(code, entry->object, code->start + to_file,
					     code->end - code->start);
	}
	if (!code->size && !code->missing[0])
		say_missing(names, module, why, code);
	return 0;
}
