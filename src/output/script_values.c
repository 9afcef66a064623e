#include "output/script_values.h"

#include "tally/perf_event.h"

#include <errno.h>
#include <inttypes.h>

/* What a page fault was at has a name; what a clock's samples carry has none. */
static bool is_of_data(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_SOFTWARE &&
	       (attr->config == TALLY_SW_PAGE_FAULTS || attr->config == TALLY_SW_PAGE_FAULTS_MIN ||
		attr->config == TALLY_SW_PAGE_FAULTS_MAJ);
}

static int put_data_place(struct tally_recording *recording, const struct tally_sample *sample, uint32_t fields,
			  struct tally_buffer *out)
{
	struct tally_names *names = &recording->names;
	struct tally_place place = tally_place_of(&recording->tasks, sample->pid, sample->addr >> 63, sample->addr);
	uint64_t offset = 0;
	uint32_t function = tally_names_function(names, &place, &offset);
	if (function == UINT32_MAX)
		return -ENOMEM;
	bool named = names->functions.items[function].name != TALLY_STRING_NONE;
	if (fields & TALLY_FIELD_SYMBOL) {
		tally_buffer_printf(out, " %s", tally_names_text(names, function));
		if (named && fields & TALLY_FIELD_OFFSET)
			tally_buffer_printf(out, "+0x%" PRIx64, offset);
	}
	if (fields & TALLY_FIELD_OBJECT)
		tally_buffer_printf(out, " (%s)", tally_names_object(names, function));
	return 0;
}

int tally_script_put_address(struct tally_recording *recording, const struct tally_recorded_event *event,
			     const struct tally_sample *sample, uint32_t fields, struct tally_buffer *out)
{
	if (fields & TALLY_FIELD_ADDR) {
		tally_buffer_printf(out, "%16" PRIx64, sample->addr);
		if (is_of_data(&event->attr) && put_data_place(recording, sample, fields, out) < 0)
			return -ENOMEM;
	}
	if (fields & TALLY_FIELD_WEIGHT)
		tally_buffer_printf(out, "%16" PRIu64, sample->weight);
	return 0;
}

static void put_regs(enum tally_arch arch, const struct tally_sample_regs *regs, uint64_t mask, struct tally_buffer *out)
{
	unsigned word = 0;
	if (!regs->words)
		return;
	tally_buffer_printf(out, " ABI:%" PRIu64 " ", regs->abi);
	for (unsigned bit = 0; bit < 64; bit++) {
		if (!(mask >> bit & 1))
			continue;
		const char *name = tally_arch_register(arch, bit);
		tally_buffer_printf(out, "%5s:0x%" PRIx64 " ", name ? name : "unknown", regs->words[word++]);
	}
}

void tally_script_put_regs(const struct tally_recording *recording, const struct tally_recorded_event *event,
			   const struct tally_sample *sample, uint32_t fields, struct tally_buffer *out)
{
	if (fields & TALLY_FIELD_REGS_INTR)
		put_regs(recording->arch, &sample->regs_intr, event->attr.sample_regs_intr, out);
	if (fields & TALLY_FIELD_REGS_USER)
		put_regs(recording->arch, &sample->regs_user, event->attr.sample_regs_user, out);
}

/* "4K", "2M", "1G"; "N/A" of no page */
static void put_page_size(uint64_t bytes, struct tally_buffer *out)
{
	static const char units[] = "BKMGTPE";
	unsigned unit = 0;
	for (; bytes && !(bytes & 1023); bytes >>= 10)
		unit++;
	if (bytes)
		tally_buffer_printf(out, unit ? " %" PRIu64 "%c" : " %" PRIu64, bytes, units[unit]);
	else
		tally_buffer_text(out, " N/A");
}

void tally_script_put_memory(struct tally_recording *recording, const struct tally_sample *sample, uint32_t fields,
			     struct tally_buffer *out)
{
	if (fields & TALLY_FIELD_PHYS_ADDR)
		tally_buffer_printf(out, "%16" PRIx64, sample->phys_addr);
	if (fields & TALLY_FIELD_DATA_PAGE_SIZE)
		put_page_size(sample->data_page_size, out);
	if (fields & TALLY_FIELD_CODE_PAGE_SIZE)
		put_page_size(sample->code_page_size, out);
	if (fields & TALLY_FIELD_CGROUP) {
		uint32_t path = tally_tasks_cgroup(&recording->tasks, sample->cgroup);
		tally_buffer_printf(out, " %s", path == TALLY_STRING_NONE ? "unknown" :
				    tally_strings_text(&recording->tasks.strings, path));
	}
}
