/* Shared by the files of `tally list`. */
#ifndef TALLY_COMMAND_LIST_COMMAND_H
#define TALLY_COMMAND_LIST_COMMAND_H

#include "command/command.h"
#include "command/metric_sources.h"

struct list_metrics_request {
	struct metric_sources sources;
	const char **words; /* a metric is shown if its name or group has one of them */
	size_t word_count;
	bool is_json, verbose;
};

/* Prints the metrics.  Returns the exit status.  The caller releases the catalogue. */
int list_metrics(const struct tally_command *command, const struct list_metrics_request *request,
		 const struct tally_provider_ops *provider, struct tally_catalogue *catalogue);

#endif
