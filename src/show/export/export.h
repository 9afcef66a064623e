/* Recordings in other tools' formats: one file per format, all in one table.
 *
 *     pprof       Profile message of github.com/google/pprof, proto/profile.proto
 *     firefox     the Firefox Profiler's processed profile, version 48
 *                 (firefox-devtools/profiler, docs-developer)
 *     speedscope  https://www.speedscope.app/file-format-schema.json
 *     chrome      Trace Event Format, as chrome://tracing and ui.perfetto.dev read it
 */
#ifndef TALLY_EXPORT_H
#define TALLY_EXPORT_H

#include "base/buffer.h"
#include "profile/profile.h"

struct tally_export_format {
	const char *name;
	const char *suffix;  /* usual suffix of the format's files: ".pb.gz" */
	const char *opened;  /* program that opens it, for messages */
	/* Appends the whole file, uncompressed. Returns 0 or -ENOMEM. */
	int (*write)(const struct tally_samples *samples, uint32_t event, struct tally_buffer *out);
	bool compressed;     /* usually compressed with gzip */
	bool is_signed;      /* its numbers have 64 bits with a sign */
};

/* The formats: name, suffix, opened, compressed, is_signed.  tally_export_NAME() writes one. */
#define TALLY_EXPORT_FORMATS(FORMAT) \
	FORMAT(pprof, ".pb.gz", "go tool pprof, Grafana Pyroscope, speedscope", true, true) \
	FORMAT(firefox, ".json.gz", "profiler.firefox.com", true, false) \
	FORMAT(speedscope, ".speedscope.json", "speedscope.app", false, false) \
	FORMAT(chrome, ".trace.json", "ui.perfetto.dev, chrome://tracing", false, false)

/* All names, each after a separator: LIST with commas, CHOICES with blanks. */
#define TALLY_EXPORT_LISTED(name, suffix, opened, compressed, is_signed) ", " #name
#define TALLY_EXPORT_CHOICE(name, suffix, opened, compressed, is_signed) " " #name
#define TALLY_EXPORT_LIST TALLY_EXPORT_FORMATS(TALLY_EXPORT_LISTED)
#define TALLY_EXPORT_CHOICES TALLY_EXPORT_FORMATS(TALLY_EXPORT_CHOICE)

/* A NULL name ends the table. */
extern const struct tally_export_format tally_export_formats[];

#endif
