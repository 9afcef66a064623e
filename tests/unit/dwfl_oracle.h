/* Runs elfutils' libdwfl over the samples of a recording, with the same mappings, registers and
 * stack bytes that tally gets.  x86-64. */
#ifndef TALLY_TESTS_DWFL_ORACLE_H
#define TALLY_TESTS_DWFL_ORACLE_H

#include "object/object.h"
#include "task/task.h"
#include "unwind/unwind.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DWFL_ORACLE_FRAMES = 1024, DWFL_ORACLE_PROCESSES = 256 };

struct dwfl_oracle_process {
	uint32_t pid;
	uint64_t generation;
	Dwfl *dwfl;
};

struct dwfl_oracle {
	struct dwfl_oracle_process processes[DWFL_ORACLE_PROCESSES];
	char vdso[32]; /* a file with the vdso's image, since libdwfl needs files; "": none */
	/* the current sample */
	pid_t pid;
	uint64_t registers[TALLY_UNWIND_REGISTERS];
	const uint8_t *stack;
	size_t stack_size;
	uint64_t addresses[DWFL_ORACLE_FRAMES];
	size_t count;
};

static inline void dwfl_oracle_init(struct dwfl_oracle *oracle)
{
	size_t size;
	const void *image = tally_vdso_image(&size);
	memset(oracle, 0, sizeof(*oracle));
	snprintf(oracle->vdso, sizeof(oracle->vdso), "/tmp/tally-vdso.XXXXXX");
	int fd = image ? mkstemp(oracle->vdso) : -1;
	if (fd < 0 || write(fd, image, size) != (ssize_t)size)
		oracle->vdso[0] = 0;
	if (fd >= 0)
		close(fd);
}

static inline void dwfl_oracle_release(struct dwfl_oracle *oracle)
{
	for (size_t i = 0; i < DWFL_ORACLE_PROCESSES; i++)
		dwfl_end(oracle->processes[i].dwfl);
	if (oracle->vdso[0])
		unlink(oracle->vdso);
}

static inline pid_t dwfl_oracle_thread(Dwfl *dwfl, void *argument, void **thread)
{
	(void)dwfl;
	struct dwfl_oracle *oracle = argument;
	if (*thread)
		return 0;
	*thread = oracle;
	return oracle->pid;
}

static inline bool dwfl_oracle_read(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result,
				    void *argument)
{
	(void)dwfl;
	const struct dwfl_oracle *oracle = argument;
	uint64_t offset = address - oracle->registers[TALLY_UNWIND_RSP];
	if (offset > oracle->stack_size || oracle->stack_size - offset < sizeof(*result))
		return false;
	memcpy(result, oracle->stack + offset, sizeof(*result));
	return true;
}

static inline bool dwfl_oracle_registers(Dwfl_Thread *thread, void *argument)
{
	struct dwfl_oracle *oracle = argument;
	return dwfl_thread_state_registers(thread, 0, TALLY_UNWIND_RIP + 1, oracle->registers);
}

static inline int dwfl_oracle_no_debug_file(Dwfl_Module *module, void **data, const char *name,
					    Dwarf_Addr base, const char *file, const char *link,
					    GElf_Word crc, char **found)
{
	(void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc,
		(void)found;
	return -1;
}

static inline void dwfl_oracle_report(struct dwfl_oracle *oracle, const struct tally_tasks *tasks,
				      const struct tally_process *process, Dwfl *dwfl)
{
	const struct tally_mapping *mapping = tally_mappings_behind(&process->mappings, 0);
	for (; mapping; mapping = tally_mappings_behind(&process->mappings, mapping->end)) {
		const char *path = tally_tasks_path(tasks, mapping->file);
		struct tally_object *object;
		uint64_t address;
		if (!strcmp(path, "[vdso]"))
			path = oracle->vdso;
		if (!mapping->executable || path[0] != '/' ||
		    tally_object_open(AT_FDCWD, path, &object, NULL) < 0)
			continue;
		/* The beginning of the first page may belong to another segment. */
		const uint64_t in_segment = 4095;
		if (tally_object_address_of_offset(object, mapping->file_offset + in_segment,
						   &address))
			dwfl_report_elf(dwfl, path, path, -1, mapping->start + in_segment - address,
					true);
		else if (tally_object_address_of_offset(object, mapping->file_offset, &address))
			dwfl_report_elf(dwfl, path, path, -1, mapping->start - address, true);
		tally_object_unref(object);
	}
}

static inline Dwfl *dwfl_oracle_process(struct dwfl_oracle *oracle, const struct tally_tasks *tasks,
					uint32_t pid)
{
	static const Dwfl_Callbacks CALLBACKS = { .find_elf = dwfl_linux_proc_find_elf,
						  .find_debuginfo = dwfl_oracle_no_debug_file };
	static const Dwfl_Thread_Callbacks THREADS = {
		.next_thread = dwfl_oracle_thread,
		.memory_read = dwfl_oracle_read,
		.set_initial_registers = dwfl_oracle_registers
	};
	struct dwfl_oracle_process *slot = &oracle->processes[pid % DWFL_ORACLE_PROCESSES];
	uint64_t generation = tally_tasks_generation(tasks, pid);
	if (slot->dwfl && slot->pid == pid && slot->generation == generation)
		return slot->dwfl;
	dwfl_end(slot->dwfl);
	*slot = (struct dwfl_oracle_process){ pid, generation, dwfl_begin(&CALLBACKS) };
	for (size_t i = 0; i < tasks->processes.count; i++)
		if (tasks->processes.items[i].pid == pid)
			dwfl_oracle_report(oracle, tasks, &tasks->processes.items[i], slot->dwfl);
	dwfl_report_end(slot->dwfl, NULL, NULL);
	oracle->pid = (pid_t)pid;
	if (!dwfl_attach_state(slot->dwfl, NULL, (pid_t)pid, &THREADS, oracle)) {
		dwfl_end(slot->dwfl);
		slot->dwfl = NULL;
	}
	return slot->dwfl;
}

static inline int dwfl_oracle_frame(Dwfl_Frame *frame, void *argument)
{
	struct dwfl_oracle *oracle = argument;
	Dwarf_Addr address;
	if (!dwfl_frame_pc(frame, &address, NULL) || oracle->count == DWFL_ORACLE_FRAMES)
		return DWARF_CB_ABORT;
	oracle->addresses[oracle->count++] = address;
	return DWARF_CB_OK;
}

/* Unwinds a sample into oracle->addresses.  Returns false if libdwfl does not know the process. */
static inline bool dwfl_oracle_unwind(struct dwfl_oracle *oracle, const struct tally_tasks *tasks,
				      const struct tally_attr *attr,
				      const struct tally_sample *sample)
{
	Dwfl *dwfl = dwfl_oracle_process(oracle, tasks, sample->pid);
	if (!dwfl || !tally_unwind_registers(TALLY_UNWIND_X86_64, sample->regs_user.words,
					     attr->sample_regs_user, oracle->registers))
		return false;
	oracle->pid = (pid_t)sample->pid;
	oracle->stack = sample->stack;
	oracle->stack_size = sample->stack_dynamic_size;
	oracle->count = 0;
	dwfl_getthread_frames(dwfl, (pid_t)sample->pid, dwfl_oracle_frame, oracle);
	return true;
}

#endif
