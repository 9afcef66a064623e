/* The command `annotate`, called by another. */
#ifndef TALLY_COMMAND_ANNOTATE_COMMAND_H
#define TALLY_COMMAND_ANNOTATE_COMMAND_H

#include "command/command.h"
#include "profile/profile.h"
#include "view/view.h"

extern const struct tally_command tally_command_annotate;

/* Shows a function as `tally annotate FUNCTION` does without other options than the view's.  Returns
 * the exit status. */
int tally_annotate_function(const struct tally_view_options *view,
			    const struct tally_function_choice *choice);

#endif
