/* `tally doctor` as text and as JSON. */
#ifndef TALLY_OUTPUT_DOCTOR_H
#define TALLY_OUTPUT_DOCTOR_H

#include "base/buffer.h"
#include "machine/finding.h"

#include <stdbool.h>

struct tally_doctor_style {
	bool utf8;    /* marks are ✓ ! ✗, otherwise ok ! x */
	bool colours;
};

void tally_doctor_text(const struct tally_machine_facts *facts,
		       const struct tally_findings *findings,
		       const struct tally_doctor_style *style, struct tally_buffer *out);

/* docs/doctor.md describes the schema. */
void tally_doctor_json(const struct tally_machine_facts *facts,
		       const struct tally_findings *findings, struct tally_buffer *out);

#endif
