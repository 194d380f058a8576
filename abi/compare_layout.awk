# Compares two tables of layout.sh: awk -f compare_layout.awk COMMITTED NOW
# Prints "break: TEXT", "added: TEXT" and "grown: STRUCT" for what differs. A struct that begins with struct_size may
# grow: fields after all that was there, its padding included, since a caller of the old one leaves that unset.

function word_after(line, key) {
  return match(line, key " [0-9]+") ? substr(line, RSTART + length(key) + 1, RLENGTH - length(key) - 1) + 0 : -1
}

# The struct of "rdm_error.status".
function struct_of(name) {
  sub(/\..*/, "", name)
  return name
}

FNR == NR {
  order[++count] = $1 " " $2
  old[$1 " " $2] = $0
  next
}
{
  new_order[++new_count] = $1 " " $2
  new[$1 " " $2] = $0
}

END {
  for (i = 1; i <= count; i++) {
    key = order[i]
    split(key, word, " ")
    if (!(key in new)) {
      print "break: " key " is gone"
    } else if (old[key] != new[key]) {
      if (word[1] == "struct" && ("field " word[2] ".struct_size") in old && word_after(new[key], "size") > \
          word_after(old[key], "size") && word_after(new[key], "align") == word_after(old[key], "align")) {
        print "grown: " word[2]
      } else {
        print "break: " old[key] ", now " new[key]
      }
    }
  }
  for (i = 1; i <= new_count; i++) {
    key = new_order[i]
    if (key in old) continue
    split(key, word, " ")
    owner = "struct " struct_of(word[2])
    if (word[1] == "field" && owner in old) {
      if (!(("field " struct_of(word[2]) ".struct_size") in old)) {
        print "break: " key " is new in a struct that does not tell its size"
      } else if (word_after(new[key], "offset") < word_after(old[owner], "size")) {
        print "break: " key " is new inside what callers of the old struct know of, its padding perhaps"
      } else {
        print "added: " key
      }
    } else {
      print "added: " key
    }
  }
}
