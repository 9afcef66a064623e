/* Prints the memory layout of libtally's public structures.  The test compares it with
 * libtally.x86_64.abi; each architecture has such a file.  A change breaks programs built
 * before. */
#include <stddef.h>
#include <stdio.h>
#include <tally/counter.h>
#include <tally/data.h>
#include <tally/group.h>
#include <tally/region.h>
#include <tally/ring.h>

#define SIZE(name) printf("struct %s %zu\n", #name, sizeof(struct name))
#define AT(name, field) printf("struct %s.%s %zu\n", #name, #field, offsetof(struct name, field))

int main(void)
{
	SIZE(tally_count);
	AT(tally_count, running_ns);
	SIZE(tally_counter_options);
	AT(tally_counter_options, this_thread_only);
	SIZE(tally_event_ring_options);
	AT(tally_event_ring_options, pages);
	AT(tally_event_ring_options, frequency);
	AT(tally_event_ring_options, fields);
	AT(tally_event_ring_options, wakeup_samples);
	AT(tally_event_ring_options, chain_max);
	AT(tally_event_ring_options, disabled);
	SIZE(tally_region_options);
	AT(tally_region_options, events);
	AT(tally_region_options, subtract_overhead);
	SIZE(tally_region_figures);
	AT(tally_region_figures, total);
	AT(tally_region_figures, p50);
	AT(tally_region_figures, mean);
	AT(tally_region_figures, share);
	SIZE(tally_attr);
	AT(tally_attr, config);
	AT(tally_attr, flags);
	SIZE(tally_record_header);
	SIZE(tally_record);
	AT(tally_record, sample_id);
	AT(tally_record, sample);
	SIZE(tally_sample);
	AT(tally_sample, ip);
	AT(tally_sample, period);
	AT(tally_sample, chain);
	AT(tally_sample, raw);
	AT(tally_sample, branches);
	AT(tally_sample, stack);
	AT(tally_sample, aux_size);
	SIZE(tally_sample_id);
	SIZE(tally_record_mmap);
	AT(tally_record_mmap, filename);
	SIZE(tally_record_task);
	SIZE(tally_read_values);
	SIZE(tally_data_frame);
	AT(tally_data_frame, line);
	SIZE(tally_data_sample);
	AT(tally_data_sample, time);
	AT(tally_data_sample, frames);
	AT(tally_data_sample, record);
	return 0;
}
