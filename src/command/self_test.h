/* `tally doctor --self-test`: does what doctor says works really work? */
#ifndef TALLY_COMMAND_SELF_TEST_H
#define TALLY_COMMAND_SELF_TEST_H

#include "base/buffer.h"
#include "machine/machine.h"

#include <stdbool.h>

/* Runs the tests whose findings are not "missing", and appends their results as text or JSON.  Takes
 * some seconds, and leaves no files.  Returns the number of failures, or -errno with a message. */
int self_test_run(const struct tally_findings *findings, bool as_json, bool is_utf8,
		  bool has_colours, struct tally_buffer *out, struct tally_error *err);

/* Does the work that the tests measure: "spin", "faults", "calls", "loop", each with a number behind
 * ":".  Returns the exit status. */
int self_test_work(const char *work);

#endif
