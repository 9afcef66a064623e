_tally_events()
{
	# Completes after the last comma or brace; bash splits words at the colons of events.
	local whole=$1 head= part=
	part=${whole##*[,\{]}
	head=${whole%"$part"}
	local IFS=$'\n'
	COMPREPLY=($(tally list "$part*" 2>/dev/null | awk -v h="$head" -v p="$part" 'index($1, p) == 1 { print h $1 }'))
	local colon=${whole%"${whole##*:}"}
	COMPREPLY=("${COMPREPLY[@]#"$colon"}")
}

_tally_value()
{
	case $takes in
	words) COMPREPLY=($(compgen -W "$choices" -- "$1")) ;;
	files) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$1")) ;;
	events) compopt -o nospace 2>/dev/null; _tally_events "$1" ;;
	processes) COMPREPLY=($(compgen -W "$(cd /proc && echo [0-9]*)" -- "$1")) ;;
	esac
}

# COMP_WORDS splits words at = and :; joins them again into line[], up to the cursor's word.
_tally_join()
{
	local i joined=0
	line=()
	for ((i = 0; i <= COMP_CWORD; i++)); do
		local word=${COMP_WORDS[i]}
		if [[ $word == [=:]* ]] && ((i)); then
			line[${#line[@]} - 1]+=$word
			joined=1
		elif ((joined)); then
			line[${#line[@]} - 1]+=$word
			joined=0
		else
			line+=("$word")
		fi
	done
}

_tally()
{
	local line words takes choices optional
	COMPREPLY=()
	_tally_join
	local last=$((${#line[@]} - 1)) cur=${line[${#line[@]} - 1]} command=${line[1]}
	if ((last == 1)); then
		COMPREPLY=($(compgen -W "$(_tally_commands)" -- "$cur"))
		return
	fi
	# Finds where the options end, and with them tally's part of the line.
	local at=2 ended=0
	while ((at < last)); do
		local word=${line[at]}
		[[ $word == -- ]] && { ended=1; ((at++)); break; }
		[[ $word == -?* ]] || { ended=1; break; }
		_tally_argument "$command" "$word"
		if [[ $takes && ! $optional ]]; then
			if ((at + 1 == last)); then _tally_value "$cur"; return; fi
			((at++))
		elif [[ $optional ]] && ((at + 1 == last)) && [[ $cur != -* ]]; then
			_tally_value "$cur"
		fi
		((at++))
	done
	if ((!ended)) && [[ $cur == --*=* ]]; then
		_tally_argument "$command" "${cur%%=*}"
		[[ $takes ]] && _tally_value "${cur#*=}"
	elif ((!ended)) && [[ $cur == -* ]]; then
		_tally_words "$command"
		COMPREPLY=($(compgen -W "$words" -- "$cur"))
	elif _tally_runs "$command"; then
		# Counted from the end: the words before may have been joined.
		local offset=$((COMP_CWORD - (last - at)))
		if declare -F _command_offset >/dev/null; then
			_command_offset "$offset"
		elif ((at == last)); then
			COMPREPLY+=($(compgen -c -- "$cur") $(compgen -f -- "$cur"))
		else
			compopt -o filenames 2>/dev/null
			COMPREPLY+=($(compgen -f -- "$cur"))
		fi
	elif [[ $command == help ]]; then
		COMPREPLY=($(compgen -W "$(_tally_commands)" -- "$cur"))
	elif [[ $command == list ]]; then
		_tally_events "$cur"
	elif _tally_files "$command"; then
		compopt -o filenames 2>/dev/null
		COMPREPLY+=($(compgen -f -- "$cur"))
	fi
}
complete -F _tally tally
