/* The recorded machine: its architecture, its kernel, the build-ids of its files, and changes to the
 * kernel's code. */
#include "recording/recording.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

static bool names_kernel(const char *filename)
{
	return !strncmp(filename, "[kernel", 7);
}

int tally_recording_apply_build_ids(struct tally_recording *recording)
{
	size_t count;
	const struct tally_recorded_build_id *list = tally_perfdata_build_ids(recording->data,
									      &count);
	for (; recording->machine.build_ids_applied < count; recording->machine.build_ids_applied++) {
		const struct tally_recorded_build_id *one = &list[recording->machine.build_ids_applied];
		struct tally_build_id id = { .size = one->size };
		if (one->size > sizeof(id.bytes) || tally_is_guest(one->misc))
			continue;
		memcpy(id.bytes, one->bytes, one->size);
		if (names_kernel(one->filename))
			tally_names_set_kernel_build_id(&recording->names, id);
		else if (tally_tasks_build_id(&recording->tasks, one->filename, &id) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* True if the recorded machine (NULL or "": not known) or kernel is not the running one. */
static bool is_another(const struct tally_recording *recording, const char *machine,
		       const char *release, const struct utsname *here)
{
	if (!machine || !*machine) {
		if (tally_perfdata_is_swapped(recording->data))
			return true;
	} else if (!tally_arch_related(recording->machine.arch, tally_arch_host()) ||
		   (!recording->machine.arch && strcmp(machine, here->machine))) {
		return true;
	}
	if (release)
		return strcmp(release, here->release) != 0;
	return recording->machine.kernel.is_another;
}

void tally_recording_find_machine(struct tally_recording *recording)
{
	struct utsname here;
	const char *machine = tally_perfdata_feature_text(recording->data, TALLY_FEATURE_ARCH);
	const char *release = tally_perfdata_feature_text(recording->data, TALLY_FEATURE_OSRELEASE);
	bool is_told = machine && *machine, is_swapped = tally_perfdata_is_swapped(recording->data);
	bool is_foreign = false;
	struct tally_objects *objects = &recording->names.objects;
	enum tally_arch arch = tally_arch_host();
	if (is_told || is_swapped)
		arch = tally_arch_named(machine);
	recording->machine.arch = objects->arch = arch;
	recording->tasks.kernel_start = 0;
	if (arch == TALLY_ARCH_X86_64 || arch == TALLY_ARCH_ARM64)
		recording->tasks.kernel_start = 1ull << 63;
	objects->machine = TALLY_UNWIND_OTHER;
	if (is_told || !is_swapped)
		objects->machine = tally_unwind_machine_named(machine);
	if (uname(&here) == 0)
		is_foreign = is_another(recording, machine, release, &here);
	if (!release && recording->machine.kernel.release[0])
		release = recording->machine.kernel.release;
	tally_names_set_kernel(&recording->names, release, is_foreign);
}

/* Returns false if the running kernel can't have the recorded address of a symbol.  Compares only
 * once, because it has to read kallsyms. */
static bool fits_running_kernel(struct tally_recording *recording,
				const struct tally_record *record)
{
	if (recording->machine.kernel.is_located)
		return true;
	const char *symbol = tally_kernel_map_symbol(record);
	if (!symbol)
		return true;
	recording->machine.kernel.is_located = true;
	return tally_kernel_may_be_at(record->mmap.file_offset,
				      tally_kernel_running_address(symbol), tally_arch_host());
}

void tally_recording_check_kernel(struct tally_recording *recording,
				  const struct tally_record *record)
{
	char release[TALLY_KERNEL_RELEASE_BYTES];
	if (tally_names_know_kernel(&recording->names))
		return;
	bool is_module = tally_kernel_module_is_anothers(record, release);
	if (is_module)
		memcpy(recording->machine.kernel.release, release, sizeof(release));
	if (!is_module && fits_running_kernel(recording, record))
		return;
	recording->machine.kernel.is_another = true;
	tally_recording_find_machine(recording);
}

int tally_recording_keep_text_poke(struct tally_recording *recording,
				   const struct tally_record *record)
{
	uint64_t end = recording->filter.samples.time_end_ns;
	if (record->header.type != TALLY_RECORD_TEXT_POKE ||
	    (record->header.misc & TALLY_MISC_CPUMODE_MASK) != TALLY_MISC_KERNEL)
		return 0;
	if (end && record->sample_id.time > end)
		return 0;
	return tally_text_pokes_add(&recording->machine.text_pokes, &record->text_poke);
}
