/* Goes through sorted addresses function by function, and reads each function's code once for all
 * addresses in it. */
#include "naming/naming.h"

#include "unwind/unwind.h"

#include <errno.h>
#include <stdlib.h>

int tally_causes_in(const struct tally_function_code *code, struct tally_late *late, size_t count)
{
	if (!code->size || !tally_code_has_causes(code->machine, code->is_big_endian))
		return 0;
	struct tally_code_sample *samples = calloc(count + 1, sizeof(*samples));
	if (!samples)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		samples[i] = (struct tally_code_sample){ .offset = late[i].address - code->start,
							 .heat = late[i].place->heat };
	int result = tally_code_causes(code->machine, code->bytes, code->size, samples, count);
	for (size_t i = 0; !result && i < count; i++) {
		late[i].is_charged = samples[i].offset < code->size;
		late[i].is_jump = samples[i].is_jump;
		late[i].moved = (int64_t)(samples[i].cause - samples[i].offset);
	}
	free(samples);
	return result;
}

int tally_causes_find(struct tally_names *names, struct tally_late *late, size_t count)
{
	int result = 0;
	for (size_t first = 0, end; !result && first < count; first = end) {
		struct tally_function_code code;
		result = tally_function_code_find_in_files(names, late[first].place, &code);
		end = first + 1;
		while (!result && end < count && late[end].address < code.end)
			end++;
		bool is_inside = code.start <= late[first].address &&
				 late[first].address < code.end;
		if (!result && is_inside)
			result = tally_causes_in(&code, late + first, end - first);
		tally_function_code_release(&code);
	}
	return result;
}
