/* Ends tasks whose EXIT record was lost.  A recorder that runs for hours checks from time to time
 * which tasks still exist.
 *
 * A task leaves the kernel's table only after its EXIT was written.  So if both the record and this
 * check report an end, they do so within two passes, which task/endings.h allows for.
 */
#include "recorder/recorder_state.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static const uint64_t PAUSE_NS = 60000000000;

static bool lives(uint32_t pid, uint32_t tid)
{
	/* the kernel's idle tasks, and tasks past their end */
	if ((int32_t)pid <= 0 || (int32_t)tid <= 0)
		return true;
	return !syscall(SYS_tgkill, pid, tid, 0) || errno != ESRCH;
}

static int end(struct tally_recorder *recorder, uint32_t pid, uint32_t tid, struct tally_error *err)
{
	struct tally_record record = { .header.type = TALLY_RECORD_EXIT };
	record.task.pid = pid;
	record.task.tid = tid;
	return tally_recorder_take_task(recorder, &record, err);
}

int tally_recorder_end_gone(struct tally_recorder *recorder, uint64_t now_ns,
			    struct tally_error *err)
{
	/* A flight recorder's tasks are those of an earlier time. */
	if (!recorder->objects.is_live || recorder->options.overwrite || now_ns < recorder->gone_at)
		return 0;
	bool is_first = !recorder->gone_at;
	int result = 0;
	recorder->gone_at = now_ns + PAUSE_NS;
	for (size_t i = 0; !is_first && !result && i < recorder->tasks.threads.count; i++) {
		const struct tally_thread *thread = &recorder->tasks.threads.items[i];
		if (!lives(thread->pid, thread->tid))
			result = end(recorder, thread->pid, thread->tid, err);
	}
	for (size_t i = 0; !is_first && !result && i < recorder->tasks.processes.count; i++) {
		uint32_t pid = recorder->tasks.processes.items[i].pid;
		if (!lives(pid, pid))
			result = end(recorder, pid, pid, err);
	}
	return result;
}
