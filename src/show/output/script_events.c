/* Sorts records into perf's kinds.  A record that is shown gets the head of a sample's line, and
 * then a body by its type. */
#include "output/output.h"

#include "base/terminal.h"

#include "tally/perf_event.h"

#include <inttypes.h>
#include <sys/mman.h>

static unsigned kind_of(uint32_t type)
{
	switch (type) {
	case TALLY_RECORD_MMAP:
	case TALLY_RECORD_MMAP2: return TALLY_SCRIPT_MMAP;
	case TALLY_RECORD_COMM:
	case TALLY_RECORD_FORK:
	case TALLY_RECORD_EXIT: return TALLY_SCRIPT_TASK;
	case TALLY_RECORD_SWITCH:
	case TALLY_RECORD_SWITCH_CPU_WIDE: return TALLY_SCRIPT_SWITCH;
	case TALLY_RECORD_NAMESPACES: return TALLY_SCRIPT_NAMESPACE;
	case TALLY_RECORD_CGROUP: return TALLY_SCRIPT_CGROUP;
	case TALLY_RECORD_LOST: return TALLY_SCRIPT_LOST;
	case TALLY_RECORD_KSYMBOL: return TALLY_SCRIPT_BPF | TALLY_SCRIPT_TEXT_POKE;
	case TALLY_RECORD_BPF_EVENT: return TALLY_SCRIPT_BPF;
	case TALLY_RECORD_TEXT_POKE: return TALLY_SCRIPT_TEXT_POKE;
	case TALLY_RECORD_FINISHED_ROUND: return TALLY_SCRIPT_ROUND;
	default: return 0;
	}
}

/* Returns the task that a record is about. Records without one of their own are about the task that
 * was running. */
static void task_of(const struct tally_record *record, uint32_t *pid, uint32_t *tid)
{
	uint32_t type = record->header.type;
	*pid = record->sample_id.pid;
	*tid = record->sample_id.tid;
	if (type == TALLY_RECORD_MMAP || type == TALLY_RECORD_MMAP2) {
		*pid = record->mmap.pid;
		*tid = record->mmap.tid;
	} else if (type == TALLY_RECORD_COMM) {
		*pid = record->comm.pid;
		*tid = record->comm.tid;
	} else if (type == TALLY_RECORD_FORK || type == TALLY_RECORD_EXIT) {
		*pid = record->task.pid;
		*tid = record->task.tid;
	} else if (type == TALLY_RECORD_NAMESPACES) {
		*pid = record->namespaces.pid;
		*tid = record->namespaces.tid;
	}
}

/* Puts a name that ends the line. */
static void put_name(const char *name, struct tally_buffer *out)
{
	tally_put_name(out, name);
	tally_buffer_char(out, '\n');
}

static void put_mmap(const struct tally_record *record, struct tally_buffer *out)
{
	const struct tally_record_mmap *mmap = &record->mmap;
	bool is_mmap2 = record->header.type == TALLY_RECORD_MMAP2;
	tally_buffer_printf(out, " %d/%d: [%#" PRIx64 "(%#" PRIx64 ") @ %#" PRIx64, (int)mmap->pid,
			    (int)mmap->tid, mmap->start, mmap->length, mmap->file_offset);
	if (!is_mmap2) {
		tally_buffer_printf(out, "]: %c ",
				    record->header.misc & TALLY_MISC_MMAP_DATA ? 'r' : 'x');
		put_name(mmap->filename, out);
		return;
	}
	if (mmap->has_inode)
		tally_buffer_printf(out, " %02x:%02x %" PRIu64 " %" PRIu64, mmap->major,
				    mmap->minor, mmap->inode, mmap->inode_generation);
	if (!mmap->has_inode)
		tally_buffer_text(out, " <");
	for (unsigned i = 0; i < mmap->build_id_size; i++)
		tally_buffer_printf(out, "%02x", mmap->build_id[i]);
	char rights[] = "---p";
	if (mmap->protection & PROT_READ)
		rights[0] = 'r';
	if (mmap->protection & PROT_WRITE)
		rights[1] = 'w';
	if (mmap->protection & PROT_EXEC)
		rights[2] = 'x';
	if (mmap->flags & MAP_SHARED)
		rights[3] = 's';
	tally_buffer_printf(out, "%s]: %s ", mmap->has_inode ? "" : ">", rights);
	put_name(mmap->filename, out);
}

static void put_namespaces(const struct tally_record_namespaces *record, struct tally_buffer *out)
{
	static const char *const names[] = { "net", "uts", "ipc", "pid", "user", "mnt", "cgroup" };
	tally_buffer_printf(out, " %d/%d - nr_namespaces: %" PRIu64 "\n\t\t[", (int)record->pid,
			    (int)record->tid, record->count);
	for (uint64_t i = 0; i < record->count; i++)
		tally_buffer_printf(out, "%s%" PRIu64 "/%s: %" PRIu64 "/%#" PRIx64 "%s",
				    i && !(i % 4) ? "\n\t\t " : "", i,
				    i < sizeof(names) / sizeof(names[0]) ? names[i] : "UNKNOWN",
				    record->dev_inode[2 * i], record->dev_inode[2 * i + 1],
				    i + 1 < record->count ? ", " : "]\n");
}

static void put_switch(const struct tally_record *record, struct tally_buffer *out)
{
	bool is_out = record->header.misc & TALLY_MISC_SWITCH_OUT;
	if (!is_out)
		tally_buffer_text(out, " IN         ");
	else if (record->header.misc & TALLY_MISC_SWITCH_OUT_PREEMPT)
		tally_buffer_text(out, " OUT preempt");
	else
		tally_buffer_text(out, " OUT        ");
	if (record->switched.has_next)
		tally_buffer_printf(out, "  %s pid/tid: %5d/%-5d", is_out ? "next" : "prev",
				    (int)record->switched.next_prev_pid,
				    (int)record->switched.next_prev_tid);
	tally_buffer_char(out, '\n');
}

static void put_task(const struct tally_record_task *task, struct tally_buffer *out)
{
	tally_buffer_printf(out, "(%d:%d):(%d:%d)\n", (int)task->pid, (int)task->tid,
			    (int)task->parent_pid, (int)task->parent_tid);
}

/* Puts sixteen bytes per line. */
static void put_bytes(const char *name, const uint8_t *bytes, unsigned count,
		      struct tally_buffer *out)
{
	enum { A_LINE = 16 };
	for (unsigned i = 0; i < count; i++) {
		if (!(i % A_LINE))
			tally_buffer_printf(out, "%s%s", i ? "\n" : "", name);
		tally_buffer_printf(out, " %02x", bytes[i]);
	}
	if (count)
		tally_buffer_char(out, '\n');
}

static void put_text_poke(struct tally_recording *recording,
			  const struct tally_record_text_poke *poke, struct tally_buffer *out)
{
	struct tally_names *names = &recording->names;
	const struct tally_place place = tally_place_of(&recording->tasks, 0, true, poke->address);
	uint64_t offset;
	uint32_t function = tally_names_function(names, &place, &offset);
	tally_buffer_printf(out, " %" PRIx64 " ", poke->address);
	if (function != UINT32_MAX && names->functions.items[function].name != TALLY_STRING_NONE) {
		tally_put_name(out, tally_names_text(names, function));
		tally_buffer_printf(out, "+0x%" PRIx64, offset);
	}
	tally_buffer_printf(out, " old len %u new len %u\n", poke->old_length, poke->new_length);
	put_bytes("            Old bytes:", poke->bytes, poke->old_length, out);
	put_bytes("            New bytes:", poke->bytes + poke->old_length, poke->new_length, out);
}

void tally_script_record_body(struct tally_recording *recording, const struct tally_record *record,
			      struct tally_buffer *out)
{
	switch (record->header.type) {
	case TALLY_RECORD_MMAP:
	case TALLY_RECORD_MMAP2: put_mmap(record, out); break;
	case TALLY_RECORD_COMM:
		tally_buffer_text(out,
				  record->header.misc & TALLY_MISC_COMM_EXEC ? " exec: " : ": ");
		tally_put_name(out, record->comm.comm);
		tally_buffer_printf(out, ":%d/%d\n", (int)record->comm.pid, (int)record->comm.tid);
		break;
	case TALLY_RECORD_FORK:
	case TALLY_RECORD_EXIT: put_task(&record->task, out); break;
	case TALLY_RECORD_SWITCH:
	case TALLY_RECORD_SWITCH_CPU_WIDE: put_switch(record, out); break;
	case TALLY_RECORD_NAMESPACES: put_namespaces(&record->namespaces, out); break;
	case TALLY_RECORD_CGROUP:
		tally_buffer_printf(out, " cgroup: %" PRIu64 " ", record->cgroup.id);
		put_name(record->cgroup.path, out);
		break;
	case TALLY_RECORD_LOST:
		tally_buffer_printf(out, " lost %" PRIu64 "\n", record->lost.lost);
		break;
	case TALLY_RECORD_KSYMBOL:
		tally_buffer_printf(out, " addr %" PRIx64 " len %u type %u flags 0x%x name ",
				    record->ksymbol.address, record->ksymbol.length,
				    record->ksymbol.type, record->ksymbol.flags);
		put_name(record->ksymbol.name, out);
		break;
	case TALLY_RECORD_BPF_EVENT:
		tally_buffer_printf(out, " type %u, flags %u, id %u\n", record->bpf.type,
				    record->bpf.flags, record->bpf.id);
		break;
	case TALLY_RECORD_TEXT_POKE:
		put_text_poke(recording, &record->text_poke, out);
		break;
	default: tally_buffer_char(out, '\n');
	}
}

int tally_script_event(struct tally_recording *recording, struct tally_script *script,
		       const struct tally_raw_record *raw, const struct tally_record *record,
		       unsigned shown, struct tally_buffer *out, struct tally_error *err)
{
	uint32_t pid, tid;
	if (!(kind_of(record->header.type) & shown))
		return 0;
	task_of(record, &pid, &tid);
	pid = tid ? pid : 0; /* the kernel's mappings are recorded with pid -1 */
	int result = 0;
	if (raw->event && record->header.type < TALLY_RECORD_USER_START)
		result = tally_script_head(script, raw, record, pid, tid, out, err);
	if (result < 0)
		return result;
	tally_buffer_printf(out, "PERF_RECORD_%s", tally_record_type_name(record->header.type));
	if (record->header.type < TALLY_RECORD_USER_START)
		tally_script_record_body(recording, record, out);
	else
		tally_buffer_char(out, '\n');
	return 0;
}
