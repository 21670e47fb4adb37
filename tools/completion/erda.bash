# shellcheck shell=bash
# Completion of Erda's programs in bash. It asks the program itself, by --help, each time. So it fits the installed
# version, and takes some milliseconds. The installation puts it once under the name of each program.

# _erda_offer <prefix> <word...>: offers the words that begin with the prefix.
_erda_offer() {
  local word
  for word in "${@:2}"; do
    if [[ $word == "$1"* ]]; then COMPREPLY+=("$word"); fi
  done
}

# _erda_files <prefix> [sockets]: offers files, or sockets and the folders on the way to them.
_erda_files() {
  local file
  compopt -o filenames 2> /dev/null
  while IFS= read -r file; do
    if [[ -z ${2:-} || -S $file || -d $file ]]; then COMPREPLY+=("$file"); fi
  done < <(compgen -f -- "$1")
}

# _erda_value <type, as in KIND:{a,b}> <the help of the option> <prefix>: offers values of an option.
_erda_value() {
  local set=${1#*:\{} values
  case $1 in
    *':{'*'}'*)
      IFS=, read -ra values <<< "${set%%\}*}"
      _erda_offer "$3" "${values[@]}"
      ;;
    FILE* | PATH* | POOL*) _erda_files "$3" ;;
    ADDRESS*)
      if [[ $3 == shm:* ]]; then
        _erda_files "${3#shm:}" sockets
        # Bash replaces the text after the last colon, or the whole word.
        if [[ $COMP_WORDBREAKS != *:* ]]; then COMPREPLY=("${COMPREPLY[@]/#/shm:}"); fi
        return
      fi
      compopt -o nospace 2> /dev/null
      if [[ $2 == *shm:* ]]; then _erda_offer "$3" shm:; fi
      if [[ $2 == *verbs:* ]]; then _erda_offer "$3" verbs://; fi
      ;;
  esac
}

# _erda_read_help <program> [command]: fills `commands`, `positionals`, and by the option's name `types` and `helps`.
_erda_read_help() {
  local line section='' names='' name rest
  while IFS= read -r line; do
    if [[ $line =~ ^[A-Z][a-z]+:$ ]]; then
      section=$line
    elif [[ $line == [!\ ]* ]]; then
      section=
    elif [[ -n $section && $line =~ ^\ \ ([^\ ]+)(.*)$ ]]; then
      names=${BASH_REMATCH[1]}
      rest=${BASH_REMATCH[2]}
      case $section in
        Subcommands:) commands+=("$names") ;;
        Positionals:) positionals+=("$names") ;;
        *)
          for name in ${names//,/ }; do
            types[$name]=
            if [[ $rest =~ ^\ ([A-Z]+(:[^\ ]+)?)(\ |=|$) && ${BASH_REMATCH[1]} != REQUIRED && ${BASH_REMATCH[1]} != *s: ]]; then
              types[$name]=${BASH_REMATCH[1]}
            fi
            helps[$name]=$rest
          done
          ;;
      esac
    elif [[ -n $section && $line == *[!\ ]* ]]; then
      for name in ${names//,/ }; do helps[$name]+=$line; done
    fi
  done < <("$@" --help 2> /dev/null)
}

_erda() {
  COMPREPLY=()
  local program=${1/#\~\//$HOME/} rest=${COMP_LINE:0:COMP_POINT} words=() piece
  # The words before the cursor. Bash also splits words at colons and equal signs: join the parts without space between.
  for piece in "${COMP_WORDS[@]:0:COMP_CWORD}"; do
    if [[ ${#words[@]} == 0 || $rest == [[:space:]]* ]]; then words+=(""); fi
    rest=${rest#"${rest%%[![:space:]]*}"}
    words[-1]+=$piece
    rest=${rest#"$piece"}
  done
  if [[ $rest == [[:space:]]* ]]; then words+=(""); fi
  words[-1]+=${rest#"${rest%%[![:space:]]*}"}
  local current=${words[-1]}

  local -a commands=() positionals=()
  local -A types=() helps=()
  _erda_read_help "$program"
  local all=" ${commands[*]} " has_commands=${#commands[@]} command='' option='' only_words='' file_flag='' word
  for word in "${words[@]:1:${#words[@]}-2}"; do
    if [[ -n $option ]]; then
      option=  # the word was the value of that option
    elif [[ -z $only_words && $word == -- ]]; then
      only_words=yes
    elif [[ -z $only_words && $word == -* ]]; then
      if [[ -n ${types[$word]:-} ]]; then option=$word; fi
      if [[ $word == --*-file && -z ${types[$word]:-} ]]; then file_flag=yes; fi
    elif [[ -z $command && $all == *" $word "* ]]; then
      command=$word
      _erda_read_help "$program" "$command"
    fi
  done

  if [[ -n $option ]]; then
    _erda_value "${types[$option]}" "${helps[$option]}" "$current"
  elif [[ -z $only_words && $current == --*=* ]]; then
    option=${current%%=*}
    _erda_value "${types[$option]:-}" "${helps[$option]:-}" "${current#*=}"
    if [[ $COMP_WORDBREAKS != *=* ]]; then COMPREPLY=("${COMPREPLY[@]/#/$option=}"); fi
  elif [[ -z $only_words && $current == -* ]]; then
    _erda_offer "$current" "${!types[@]}"
  elif ((has_commands)) && [[ -z $command ]]; then
    _erda_offer "$current" "${commands[@]}"
  elif [[ -n $file_flag || " ${positionals[*]} " =~ \ (FILE|POOL)\  ]]; then
    _erda_files "$current"
  fi
}

complete -F _erda erda-{bench,cli,inspect,pool,scheme-server,server,ycsb}
