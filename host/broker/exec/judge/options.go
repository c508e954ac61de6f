package judge

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// program is what this package knows of a program: the options that it takes, and what it starts.
type program struct {
	options []option
	*entry
}

// option is one option with all of its names: letters, and words that follow "--".
type option struct {
	names []string
	value arity
	kind  kind
}

type arity int

const (
	noValue arity = iota
	someValue
	maybeValue // glued to the option, or none
)

type kind byte

// Kinds of options, as the tables mark them.
const (
	plain  kind = 0
	starts kind = '!' // can start other programs, or load code
	line   kind = '$' // the value is a line for a shell
	words  kind = '%' // the value stands for several arguments
)

// text is the option as people write it.
func (o *option) text() string {
	names := make([]string, len(o.names))
	for i, name := range o.names {
		names[i] = dashed(name)
	}
	return strings.Join(names, ", ")
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// compiled holds programs of the table by name, once they were needed.
var compiled sync.Map

// lookUp returns what is known of the program with a name ("git", "git push"); nil if nothing is.
func lookUp(name string) *program {
	if other, ok := aliases[name]; ok {
		name = other
	}
	e, ok := table[name]
	if !ok {
		return nil
	}
	if p, ok := compiled.Load(name); ok {
		return p.(*program)
	}
	p := &program{entry: &e, options: parseOptions(e.options)}
	compiled.Store(name, p)
	return p
}

// parseOptions reads the notation of the table.
func parseOptions(text string) []option {
	var list []option
	for _, word := range strings.Fields(text) {
		var o option
		if strings.ContainsRune("!$%", rune(word[0])) && len(word) > 1 {
			o.kind, word = kind(word[0]), word[1:]
		}
		switch word[len(word)-1] {
		case '=':
			o.value = someValue
		case '?':
			o.value = maybeValue
		}
		o.names = strings.Split(strings.TrimRight(word, "=?"), "|")
		list = append(list, o)
	}
	return list
}

// given is an option as it was given.
type given struct {
	*option
	value string
	has   bool
}

// reading is what a program makes of its arguments.
type reading struct {
	*program
	// name is the program's, with its subcommand: "git push".
	name     string
	given    []given
	operands []string
	// rest is the command that the program starts, if it is one that starts another one.
	rest []string
	// doubts are what keeps the program from being harmless.
	doubts []doubt
	// strange says that some of the options cannot be told.
	strange bool
	// closed says that whatever arguments follow are operands.
	closed bool
}

// doubt is a reason not to start a program without asking.
type doubt struct {
	// words are the spellings of the argument that it is about. A rule that names one of them knows of it.
	words []string
	// text says what about it, for people, with the program as "it".
	text string
}

// read takes the arguments apart as the program with that name does; nil if the program is not known.
func read(name string, arguments []string) *reading {
	p := lookUp(name)
	if p == nil {
		return nil
	}
	r := &reading{program: p, name: name}
	r.words(arguments)
	if p.subcommands {
		r.subcommand()
	}
	if p.check != nil {
		p.check(r)
	}
	if p.asks != "" {
		_, sub, _ := strings.Cut(name, " ")
		r.doubt(p.asks, sub)
	}
	return r
}

// subcommand reads the arguments that follow the name of a subcommand.
func (r *reading) subcommand() {
	if len(r.rest) == 0 {
		return
	}
	name, arguments := r.name+" "+r.rest[0], r.rest[1:]
	sub := read(name, arguments)
	if sub == nil {
		r.name, r.strange = name, true
		r.doubt(fmt.Sprintf("hako does not know what its subcommand %s starts, which may be an alias", quoted(r.rest[0])), r.rest[0])
		return
	}
	sub.given, sub.doubts = append(r.given, sub.given...), append(r.doubts, sub.doubts...)
	sub.strange = sub.strange || r.strange
	*r = *sub
}

func (r *reading) doubt(text string, words ...string) {
	r.doubts = append(r.doubts, doubt{words, text})
}

// has reports whether an option was given, by one of its names.
func (r *reading) has(names ...string) bool {
	return slices.ContainsFunc(r.given, func(g given) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(g.names, name) })
	})
}

// values are the values of an option, by one of its names.
func (r *reading) values(name string) (list []string) {
	for _, g := range r.given {
		if g.has && slices.Contains(g.names, name) {
			list = append(list, g.value)
		}
	}
	return list
}

// risky reports whether some arguments make the program start others, besides the one that it is for.
func (r *reading) risky() bool {
	return r.subcommands || r.check != nil || slices.ContainsFunc(r.options, func(o option) bool { return o.kind == starts })
}

// words reads options and operands.
func (r *reading) words(rest []string) {
	if r.literal {
		r.operands = rest
		return
	}
	if r.bundled && len(rest) > 0 && rest[0] != "" && rest[0][0] != '-' {
		rest = r.oldStyle(rest[0], rest[1:])
	}
	skip := 0
	if r.starter != nil {
		skip = r.starter.skip
	}
	for len(rest) > 0 {
		word := rest[0]
		switch {
		case word == "--" && (r.starter != nil || r.subcommands):
			r.rest = rest[min(1+skip, len(rest)):]
			return
		case word == "--":
			r.operands, r.closed = append(r.operands, rest[1:]...), true
			return
		case len(word) > 1 && (word[0] == '-' || word[0] == '+' && r.plus):
			rest = r.option(word, rest[1:])
		case word == "-" && skip > 0 && r.starter.script:
			rest = rest[1:] // su -
		case r.starter == nil && !r.subcommands:
			r.operands, rest = append(r.operands, word), rest[1:]
		case skip > 0:
			r.operands, rest, skip = append(r.operands, word), rest[1:], skip-1
		default:
			r.rest = rest
			return
		}
	}
}

// option reads one word of options, and returns what follows it and its value.
func (r *reading) option(word string, rest []string) []string {
	if strings.HasPrefix(word, "--") {
		return r.long(word, rest)
	}
	if r.numbers && strings.Trim(word[1:], "0123456789") == "" {
		return rest
	}
	for letters := word[1:]; letters != ""; {
		letter := letters[:1]
		letters = letters[1:]
		o := r.named(letter)
		switch {
		case o == nil && r.numbers && strings.Contains("0123456789", letter):
		case o == nil:
			r.unknown("-"+letter, word)
			return rest
		case o.value != noValue && letters != "":
			return r.take(o, letters, true, rest)
		default:
			rest = r.take(o, "", false, rest)
		}
	}
	return rest
}

// oldStyle reads letters without a dash, whose values are the words that follow, one after the other.
func (r *reading) oldStyle(letters string, rest []string) []string {
	for i := range len(letters) {
		o := r.named(letters[i : i+1])
		if o == nil {
			r.unknown("-"+letters[i:i+1], letters)
			return rest
		}
		if o.value == maybeValue {
			r.take(o, "", false, nil)
			continue
		}
		rest = r.take(o, "", false, rest)
	}
	return rest
}

// long reads "--name" or "--name=value". Programs that use getopt take any beginning of a name that only one option
// has.
func (r *reading) long(word string, rest []string) []string {
	name, value, has := strings.Cut(word[2:], "=")
	o := r.named(name)
	if len(name) == 1 {
		o = nil
	}
	if o == nil && r.exact {
		if positive, ok := strings.CutPrefix(name, "no-"); ok && !has {
			if o := r.named(positive); o != nil && len(positive) > 1 {
				r.given = append(r.given, given{option: &option{names: []string{name}}})
				return rest
			}
		}
	}
	if o == nil {
		candidates := r.beginWith(name)
		if len(candidates) != 1 {
			if len(candidates) > 1 {
				r.doubt(fmt.Sprintf("its option %s can mean %s", quoted(word), candidates[0].text()+" or "+candidates[1].text()), word)
				r.strange = true
			} else {
				r.unknown("--"+name, word)
			}
			return rest
		}
		o = candidates[0]
		if r.exact {
			r.doubt(fmt.Sprintf("its option %s is not spelled out", quoted(word)), word)
		}
	}
	if o.value == noValue && has {
		r.unknown("--"+name, word)
		return rest
	}
	return r.take(o, value, has, rest)
}

// take notes an option. One that needs a value and has none takes the next word.
func (r *reading) take(o *option, value string, has bool, rest []string) []string {
	if o.value == someValue && !has {
		if len(rest) == 0 {
			r.doubt(fmt.Sprintf("its option %s has no value", o.text()), o.spellings("", false)...)
			r.strange = true
			return nil
		}
		value, has, rest = rest[0], true, rest[1:]
	}
	g := given{o, value, has}
	r.given = append(r.given, g)
	switch o.kind {
	case starts:
		r.doubt(fmt.Sprintf("its option %s can start other programs or load code", o.text()), o.spellings(value, has)...)
	case words:
		fields, ok := splitWords(value)
		if !ok {
			r.doubt(fmt.Sprintf("what its option %s stands for cannot be told", o.text()), o.spellings(value, has)...)
			r.strange = true
		}
		return append(fields, rest...)
	}
	return rest
}

func (r *reading) unknown(name, word string) {
	r.strange = true
	r.doubt(fmt.Sprintf("hako does not know its option %s, which may start other programs", quoted(name)), word, name)
}

// named returns the option with a name.
func (r *reading) named(name string) *option {
	for i := range r.options {
		if slices.Contains(r.options[i].names, name) {
			return &r.options[i]
		}
	}
	return nil
}

// beginWith returns the options of which a long name begins with text.
func (r *reading) beginWith(text string) (list []*option) {
	for i := range r.options {
		if slices.ContainsFunc(r.options[i].names, func(name string) bool { return len(name) > 1 && strings.HasPrefix(name, text) }) {
			list = append(list, &r.options[i])
		}
	}
	return list
}

// spellings are all ways to write an option with its value, and the value itself.
func (o *option) spellings(value string, has bool) []string {
	var list []string
	for _, name := range o.names {
		list = append(list, dashed(name))
		if has && len(name) == 1 {
			list = append(list, "-"+name+value)
		} else if has {
			list = append(list, "--"+name+"="+value)
		}
	}
	if has {
		list = append(list, value)
	}
	return list
}

// spellings are those of all options that were given.
func (r *reading) spellings() (list []string) {
	if r == nil {
		return nil
	}
	for _, g := range r.given {
		list = append(list, g.option.spellings(g.value, g.has)...)
	}
	return list
}

// splitWords takes apart what stands for several arguments, if it has nothing but words and plain quotes: programs
// have escapes of their own.
func splitWords(text string) ([]string, bool) {
	if strings.ContainsAny(text, "\\$#`;&|<>()*?[]{}~!\n") {
		return strings.Fields(text), false
	}
	return fieldsOf(text)
}

func quoted(word string) string { return quoteAll([]string{word}) }
