#include "output/header_parts.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

/* ---- attributes ---------------------------------------------------------- */

static void put_number(struct tally_buffer *out, const char *name, uint64_t value)
{
	if (value)
		tally_buffer_printf(out, ", %s = %" PRIu64, name, value);
}

static void put_hex(struct tally_buffer *out, const char *name, uint64_t value)
{
	if (value)
		tally_buffer_printf(out, ", %s = 0x%" PRIx64, name, value);
}

static void put_bits(struct tally_buffer *out, const char *name, uint64_t value,
		     const struct tally_bit_name *names)
{
	bool any = false;
	if (!value)
		return;
	tally_buffer_printf(out, ", %s = ", name);
	for (; names->name; names++)
		if (value & names->bit) {
			tally_buffer_printf(out, "%s%s", any ? "|" : "", names->name);
			any = true;
		}
}

static void put_flags(struct tally_buffer *out, const struct tally_attr *attr)
{
	bool precise_done = false;
	for (const struct tally_bit_name *flag = tally_attr_flag_names; flag->name; flag++) {
		if (flag->bit > TALLY_ATTR_PRECISE_IP && !precise_done) {
			put_number(out, "precise_ip", tally_attr_precise(attr));
			precise_done = true;
		}
		if (attr->flags & flag->bit)
			put_number(out, flag->name, 1);
	}
}

static void put_attr(struct tally_buffer *out, const struct tally_attr *attr)
{
	put_number(out, "type", attr->type);
	put_number(out, "size", attr->size);
	put_hex(out, "config", attr->config);
	put_number(out, "{ sample_period, sample_freq }", attr->sample_period);
	put_bits(out, "sample_type", attr->sample_type, tally_sample_type_names);
	put_bits(out, "read_format", attr->read_format, tally_read_format_names);
	put_flags(out, attr);
	put_number(out, "{ wakeup_events, wakeup_watermark }", attr->wakeup_events);
	put_number(out, "bp_type", attr->bp_type);
	put_hex(out, "{ bp_addr, config1 }", attr->config1);
	put_hex(out, "{ bp_len, config2 }", attr->config2);
	put_bits(out, "branch_sample_type", attr->branch_sample_type, tally_branch_type_names);
	put_hex(out, "sample_regs_user", attr->sample_regs_user);
	put_number(out, "sample_stack_user", attr->sample_stack_user);
	if (attr->clockid)
		tally_buffer_printf(out, ", clockid = %d", attr->clockid);
	put_hex(out, "sample_regs_intr", attr->sample_regs_intr);
	put_number(out, "aux_watermark", attr->aux_watermark);
	put_number(out, "sample_max_stack", attr->sample_max_stack);
	put_number(out, "aux_sample_size", attr->aux_sample_size);
	put_number(out, "sig_data", attr->sig_data);
}

/* Puts one event: its attribute, its name and its ids. */
static void put_event(struct tally_header_part *part, uint32_t attr_size)
{
	struct tally_attr attr = { 0 };
	const void *bytes = tally_reader_bytes(&part->reader, attr_size);
	uint32_t ids = tally_reader_u32(&part->reader);
	const char *name = tally_header_string(part);
	if (part->reader.failed)
		return;
	memcpy(&attr, bytes, attr_size < sizeof(attr) ? attr_size : sizeof(attr));
	tally_buffer_printf(part->out, "# event : name = %s, ", name);
	if (ids)
		tally_buffer_text(part->out, ", id = {");
	for (uint32_t i = 0; i < ids && !part->reader.failed; i++) {
		uint64_t id = tally_reader_u64(&part->reader);
		if (!part->reader.failed)
			tally_buffer_printf(part->out, "%s %" PRIu64, i ? "," : "", id);
	}
	if (ids)
		tally_buffer_text(part->out, " }");
	put_attr(part->out, &attr);
	tally_buffer_char(part->out, '\n');
}

void tally_header_event_desc(struct tally_header_part *part)
{
	uint32_t count = tally_reader_u32(&part->reader),
		 attr_size = tally_reader_u32(&part->reader);
	for (uint32_t i = 0; i < count && !part->reader.failed; i++)
		put_event(part, attr_size);
}

void tally_header_groups(struct tally_header_part *part)
{
	size_t event_count;
	const struct tally_recorded_event *events = tally_perfdata_events(part->data, &event_count);
	uint32_t count = tally_reader_u32(&part->reader);
	for (uint32_t i = 0; i < count && !part->reader.failed; i++) {
		const char *name = tally_header_string(part);
		uint32_t leader = tally_reader_u32(&part->reader),
			 members = tally_reader_u32(&part->reader);
		if (part->reader.failed || members < 2)
			continue;
		tally_buffer_printf(part->out, "# group: %s{",
				    strcmp(name, "{anon_group}") ? name : "");
		for (uint64_t k = leader; k < (uint64_t)leader + members && k < event_count; k++)
			tally_buffer_printf(part->out, "%s%s", k > leader ? "," : "",
					    events[k].name);
		tally_buffer_text(part->out, "}\n");
	}
}

/* ---- clocks -------------------------------------------------------------- */

static const char *clock_name(uint32_t clock)
{
	static const char *const names[] = {
		[CLOCK_REALTIME] = "realtime",
		[CLOCK_MONOTONIC] = "monotonic",
		[CLOCK_MONOTONIC_RAW] = "monotonic_raw",
		[CLOCK_BOOTTIME] = "boottime",
		[CLOCK_TAI] = "tai",
		[CLOCK_PROCESS_CPUTIME_ID] = "process_cputime_id",
		[CLOCK_THREAD_CPUTIME_ID] = "thread_cputime_id",
	};
	const char *name = clock < sizeof(names) / sizeof(names[0]) ? names[clock] : NULL;
	return name ? name : "(not found)";
}

void tally_header_clock_data(struct tally_header_part *part)
{
	uint32_t version = tally_reader_u32(&part->reader), clock = tally_reader_u32(&part->reader);
	uint64_t wall = tally_reader_u64(&part->reader),
		 monotonic = tally_reader_u64(&part->reader);
	const uint64_t second = 1000000000;
	char text[64] = "";
	struct tm local;
	time_t time = (time_t)(wall / second);
	if (part->reader.failed || version != 1)
		return;
	tally_buffer_printf(part->out, "# clockid: %s (%u)\n", clock_name(clock), clock);
	if (localtime_r(&time, &local))
		strftime(text, sizeof(text), "%F %T", &local);
	tally_buffer_printf(part->out,
			    "# reference time: %s.%06u = %" PRIu64 ".%06u (TOD) = %" PRIu64
			    ".%09u (%s)\n",
			    text, (unsigned)(wall % second / 1000), wall / second,
			    (unsigned)(wall % second / 1000), monotonic / second,
			    (unsigned)(monotonic % second), clock_name(clock));
}

void tally_header_sample_time(struct tally_header_part *part)
{
	uint64_t first = tally_reader_u64(&part->reader), last = tally_reader_u64(&part->reader);
	const uint64_t second = 1000000000;
	if (part->reader.failed)
		return;
	tally_buffer_printf(part->out, "# time of first sample : %" PRIu64 ".%06u\n",
			    first / second, (unsigned)(first % second / 1000));
	tally_buffer_printf(part->out, "# time of last sample : %" PRIu64 ".%06u\n", last / second,
			    (unsigned)(last % second / 1000));
	tally_buffer_printf(part->out, "# sample duration : %10.3f ms\n",
			    (double)(last - first) / 1e6);
}
