#!/bin/bash
# Manual pages against the program: each command has a page, complete and valid, which names no
# unknown option.  TAP; $TALLY is the binary, $MANUAL the folder of the generated pages, $SOURCE the
# source's.
set -u
. "$(dirname "$0")/tap.sh"
cd "$scratch" || exit 1
export LC_ALL=C.UTF-8

commands=$("$TALLY" help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
[ -n "$commands" ] || exit 1

has_page() { [ -s "$MANUAL/tally-$1.1" ] || { echo "no man/tally-$1.1.in" >out; false; }; }
# Prints the words of a page: without fonts, and with plain hyphens.
plain() { sed 's/\\f[BIR]//g; s/\\-/-/g' "$1"; }
long_options() { grep -oE -- '(^|[^-a-zA-Z0-9])--[a-z][-a-z0-9]+' | grep -oE -- '--[-a-z0-9]+' | sort -u; }
all_options() {
	for command in $commands; do "$TALLY" "$command" --help; done | long_options
	cat "$SOURCE/man/allowed_options" # options of other programs, with the reason
}
all_options | sed 's/ .*//' | sort -u >known

whole() { # every option that --help lists has its own entry
	"$TALLY" "$1" --help | sed -n 's/^  \(-.\(, \)\?\)\? *\(--[-a-z0-9]*\).*/\3/p' | sort >wanted
	plain "$MANUAL/tally-$1.1" | sed -n '/^\.TP/{n;s/.*\(--[-a-z0-9]*\).*/\1/p}' | sort -u >described
	sort -u wanted | comm -23 - described >out
	[ ! -s out ]
}
truthful() { # each option that a page names exists
	plain "$MANUAL/$1" | long_options | comm -23 - known >out
	[ ! -s out ]
}
linked() { # other pages of tally that it refers to exist
	plain "$MANUAL/$1" | grep -oE 'tally-[a-z]+ ?\(1\)' | tr -d ' ' | sort -u >names
	: >out
	while read -r name; do
		[ -s "$MANUAL/${name%(1)}.1" ] || echo "$name" >>out
	done <names
	[ ! -s out ]
}
sound() {
	groff -K utf8 -man -Tutf8 -ww -z "$MANUAL/$1" >out 2>&1 && [ ! -s out ]
}

for command in $commands; do
	check "$command has a manual page" has_page "$command"
	check "$command: every option is described" whole "$command"
done
narrow() { # the synopsis is one line
	for command in $commands; do
		[ "$command" = perf ] && continue # in perf's form
		[ "$("$TALLY" "$command" --help | sed 1d | wc -L)" -le 100 ] &&
			[ "$(script -qec "stty cols 80 rows 24; '$TALLY' $command --help" /dev/null </dev/null | tr -d '\r' |
				sed 1d | wc -L)" -le 80 ] || echo "$command"
	done >out
	[ ! -s out ] && [ "$("$TALLY" help | wc -L)" -le 80 ]
}
if command -v script >out; then
	check "help is as wide as the terminal" narrow
else
	skip "help is as wide as the terminal" "there is no script(1)"
fi
check "tally(1) lists every command" eval 'for c in $commands; do plain "$MANUAL/tally.1" | grep -qxF "tally-$c(1)" || { echo "$c" >out; false; break; }; done'
described() { # every function of a header
	sed '/^ \*\|^\/\*/d' "$1" | grep -oE '\<tally_[a-z0-9_]+\(' | tr -d '(' | sort -u >wanted
	plain "$MANUAL/tally_$(basename "$1" .h).3" | grep -oE '\<tally_[a-z0-9_]+\(' | tr -d '(' | sort -u | comm -23 wanted - >out
	[ ! -s out ]
}
for header in "$SOURCE"/include/tally/*.h; do
	check "${header##*/} has a page with everything that it declares" described "$header"
done
for page in "$MANUAL"/*.[13]; do
	page=${page##*/}
	[ "${page##*.}" = 3 ] || check "$page names only options that exist" truthful "$page"
	check "$page refers only to pages that exist" linked "$page"
	if command -v groff >/dev/null; then
		check "$page: groff prints no warning" sound "$page"
	else
		skip "$page: groff prints no warning" "groff is not installed"
	fi
done
echo "1..$number"
