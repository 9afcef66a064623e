# Prints the index of the word where the program begins that tally runs: one past the last word while tally's own
# options go on, two past it if the last option lacks its value.
function __tally_program_at
	set -l words (commandline -opc)
	set -l at 3
	while test $at -le (count $words)
		switch $words[$at]
			case --
				math $at + 1
				return
			case '-?*'
				__tally_takes "$words[2] $words[$at]"; and set at (math $at + 1)
				set at (math $at + 1)
			case '*'
				break
		end
	end
	echo $at
end

function __tally_in
	set -l words (commandline -opc)
	test (count $words) -ge 2; and test "$words[2]" = $argv[1]; or return 1
	not contains -- -- $words
end

# Tests for a command's options, which end where the program begins.
function __tally_options_of
	__tally_in $argv[1]; and test (__tally_program_at) -gt (count (commandline -opc))
end

function __tally_behind
	contains -- (commandline -opc)[-1] $argv
end

function __tally_program
	set -l words (commandline -opc)
	set -l at (__tally_program_at)
	test $at -gt (math (count $words) + 1); and return
	set -l rest
	test $at -le (count $words); and set rest (string escape -- $words[$at..-1])
	complete -C (string join ' ' -- $rest (commandline -ct))
end

function __tally_events
	set -l whole (commandline -ct)
	set -l part (string replace -r '.*[,{]' '' -- $whole)
	set -l head (string replace -r '[^,{]*$' '' -- $whole)
	tally list "$part*" 2>/dev/null | awk -v h="$head" '{ print h $1 }'
end

complete -c tally -f
