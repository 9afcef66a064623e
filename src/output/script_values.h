/* What `script` shows of a sample besides its place: registers, addresses of data, weights, pages; as perf prints them. */
#ifndef TALLY_OUTPUT_SCRIPT_VALUES_H
#define TALLY_OUTPUT_SCRIPT_VALUES_H

#include "base/buffer.h"
#include "output/script_fields.h"
#include "profile/recording.h"

/* The fields addr (where sym and dso are shown, of what it is, where that means something) and weight.  0 or -ENOMEM. */
int tally_script_put_address(struct tally_recording *recording, const struct tally_recorded_event *event,
			     const struct tally_sample *sample, uint32_t fields, struct tally_buffer *out);

/* iregs and uregs: " ABI:2    AX:0x1    IP:0x7f3c11a0 " */
void tally_script_put_regs(const struct tally_recording *recording, const struct tally_recorded_event *event,
			   const struct tally_sample *sample, uint32_t fields, struct tally_buffer *out);

/* phys_addr, data_page_size, code_page_size, cgroup. */
void tally_script_put_memory(struct tally_recording *recording, const struct tally_sample *sample, uint32_t fields,
			     struct tally_buffer *out);

#endif
