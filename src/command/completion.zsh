_tally_events()
{
	compset -P '*[,{]'
	local -a events
	events=(${(f)"$(tally list "$PREFIX*" 2>/dev/null | awk '{ print $1 }')"})
	compadd -a events
}

_tally()
{
	local curcontext=$curcontext state line
	_arguments -C '(- *)--help[help]' '(- *)--version[the version]' '1:command:_tally_commands' '*::argument:->one'
	[[ $state == one ]] && _tally_arguments $line[1]
}

# Found by $fpath, this file is the function's body; read by `source`, it must register the function.
if [[ $funcstack[1] == _tally ]]; then
	_tally "$@"
else
	compdef _tally tally
fi
