/* simpleperf stores the symbols of sampled files in the recording, because the files are on a
 * phone.  The addresses are as linked: the file's first executable segment has the address
 * min_vaddr, and the difference to its offset in the file is the shift.  The offset is listed too;
 * recordings from before 2018 lack it, so there the mapping's offset is used. */
#include "naming/listed_names.h"

#include "symbol/simpleperf_symbols.h"

#include <errno.h>
#include <string.h>

static bool find(const struct tally_names *names, const char *path,
		 struct tally_simpleperf_file *out)
{
	size_t at = 0;
	while (tally_simpleperf_next(names->listed.bytes, names->listed.size, &at, out) > 0)
		if (!strcmp(out->path, path))
			return true;
	return false;
}

static bool find_mapped_in(const struct tally_process *process, uint32_t file,
			   uint64_t *file_offset)
{
	for (size_t i = 0; i < process->count; i++)
		if (process->mappings[i].file == file && process->mappings[i].executable) {
			*file_offset = process->mappings[i].file_offset;
			return true;
		}
	return false;
}

/* Finds the file offset at which a file's code is mapped. */
static bool find_mapped(const struct tally_tasks *tasks, uint32_t file, uint64_t *file_offset)
{
	for (size_t i = 0; i < tasks->processes.count; i++)
		if (find_mapped_in(&tasks->processes.items[i], file, file_offset))
			return true;
	return false;
}

int tally_listed_names_fill(struct tally_names *names, struct tally_name_table *table,
			    uint32_t file)
{
	struct tally_simpleperf_file listed;
	bool is_kernel = file == TALLY_FILE_KERNEL;
	const char *path = is_kernel ? "[kernel.kallsyms]" : tally_tasks_path(names->tasks, file);
	uint64_t offset;
	if (!names->listed.bytes || !find(names, path, &listed) || !listed.symbol_count)
		return 0;
	bool is_elf = listed.kind == TALLY_SIMPLEPERF_ELF,
	     is_dex = listed.kind == TALLY_SIMPLEPERF_DEX;
	if (is_kernel ? listed.kind != TALLY_SIMPLEPERF_KERNEL : !is_elf && !is_dex)
		return 0;
	struct tally_symbols *symbols;
	int result = tally_symbols_from_simpleperf(&listed, &offset, &symbols);
	if (result < 0)
		return result == -ENOMEM ? result : 0;
	if (is_elf && offset == UINT64_MAX && !find_mapped(names->tasks, file, &offset)) {
		tally_symbols_free(symbols);
		return 0;
	}
	table->symbols = symbols;
	table->is_listed = table->is_read = true;
	table->listed_shift = is_elf ? listed.min_address - offset : 0;
	return 0;
}
