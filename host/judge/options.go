package judge

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// program is a compiled entry of the table.
type program struct {
	options []option
	*entry
}

// option is one option with all of its names: letters, and long names without "--".
type option struct {
	names []string
	value arity
	kind  kind
}

type arity int

const (
	noValue arity = iota
	someValue
	maybeValue // attached to the option, or none
)

type kind byte

// Kinds of options, with their marks in the table.
const (
	plain  kind = 0
	starts kind = '!' // can start other programs, or load code
	line   kind = '$' // the value is a line for a shell
	words  kind = '%' // the value is split into several arguments
)

// text returns the option as people write it.
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

// compiled caches programs by name.
var compiled sync.Map

// lookUp returns the program with a name ("git", "git push"), or nil if it is not in the table.
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

// givenOption is an option in the arguments.
type givenOption struct {
	*option
	value string
	has   bool
}

// parsedArgs are the arguments as the program parses them.
type parsedArgs struct {
	*program
	// name is the program's name with its subcommand: "git push".
	name     string
	given    []givenOption
	operands []string
	// rest is the command that a wrapper starts.
	rest []string
	// risks are the reasons to ask before the program starts.
	risks []risk
	// unparsed reports that some options could not be parsed.
	unparsed bool
	// closed reports that all further arguments are operands.
	closed bool
}

// risk is a reason to ask before a program starts.
type risk struct {
	// words are the spellings of the argument. A rule that names one of them covers the risk.
	words []string
	// text explains the risk to people; "it" is the program.
	text string
}

// read parses arguments like the program with that name. It returns nil if the program is not known.
func read(name string, arguments []string) *parsedArgs {
	p := lookUp(name)
	if p == nil {
		return nil
	}
	r := &parsedArgs{program: p, name: name}
	r.words(arguments)
	if p.subcommands {
		r.subcommand()
	}
	if p.check != nil {
		p.check(r)
	}
	if p.asks != "" {
		_, sub, _ := strings.Cut(name, " ")
		r.addRisk(p.asks, sub)
	}
	return r
}

// subcommand parses the arguments after the name of a subcommand.
func (r *parsedArgs) subcommand() {
	if len(r.rest) == 0 {
		return
	}
	name, arguments := r.name+" "+r.rest[0], r.rest[1:]
	sub := read(name, arguments)
	if sub == nil {
		r.name, r.unparsed = name, true
		r.addRisk(fmt.Sprintf("hako does not know what its subcommand %s starts, which may be an alias",
			quoted(r.rest[0])), r.rest[0])
		return
	}
	sub.given, sub.risks = append(r.given, sub.given...), append(r.risks, sub.risks...)
	sub.unparsed = sub.unparsed || r.unparsed
	*r = *sub
}

func (r *parsedArgs) addRisk(text string, words ...string) {
	r.risks = append(r.risks, risk{words, text})
}

// has reports whether an option with one of names was given.
func (r *parsedArgs) has(names ...string) bool {
	return slices.ContainsFunc(r.given, func(g givenOption) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(g.names, name) })
	})
}

// values returns the values of an option by one of its names.
func (r *parsedArgs) values(name string) (list []string) {
	for _, g := range r.given {
		if g.has && slices.Contains(g.names, name) {
			list = append(list, g.value)
		}
	}
	return list
}

// risky reports whether arguments make the program start others, apart from a wrapper's own command.
func (r *parsedArgs) risky() bool {
	return r.subcommands || r.check != nil || slices.ContainsFunc(r.options,
		func(o option) bool { return o.kind == starts })
}

// words parses options and operands.
func (r *parsedArgs) words(rest []string) {
	if r.literal {
		r.operands = rest
		return
	}
	if r.bundled && len(rest) > 0 && rest[0] != "" && rest[0][0] != '-' {
		rest = r.oldStyle(rest[0], rest[1:])
	}
	skip := 0
	if r.wrapper != nil {
		skip = r.wrapper.skip
	}
	for len(rest) > 0 {
		word := rest[0]
		switch {
		case word == "--" && (r.wrapper != nil || r.subcommands):
			r.rest = rest[min(1+skip, len(rest)):]
			return
		case word == "--":
			r.operands, r.closed = append(r.operands, rest[1:]...), true
			return
		case len(word) > 1 && (word[0] == '-' || word[0] == '+' && r.plus):
			rest = r.option(word, rest[1:])
		case word == "-" && skip > 0 && r.wrapper.script:
			rest = rest[1:] // su -
		case r.wrapper == nil && !r.subcommands:
			r.operands, rest = append(r.operands, word), rest[1:]
		case skip > 0:
			r.operands, rest, skip = append(r.operands, word), rest[1:], skip-1
		default:
			r.rest = rest
			return
		}
	}
}

// option parses one word of options and returns the words after it and its value.
func (r *parsedArgs) option(word string, rest []string) []string {
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
			return r.addOption(o, letters, true, rest)
		default:
			rest = r.addOption(o, "", false, rest)
		}
	}
	return rest
}

// oldStyle parses option letters without a dash. Their values are the following words, in order.
func (r *parsedArgs) oldStyle(letters string, rest []string) []string {
	for i := range len(letters) {
		o := r.named(letters[i : i+1])
		if o == nil {
			r.unknown("-"+letters[i:i+1], letters)
			return rest
		}
		if o.value == maybeValue {
			r.addOption(o, "", false, nil)
			continue
		}
		rest = r.addOption(o, "", false, rest)
	}
	return rest
}

// long parses "--name" or "--name=value". Programs that use getopt accept any unambiguous prefix of a name.
func (r *parsedArgs) long(word string, rest []string) []string {
	name, value, has := strings.Cut(word[2:], "=")
	o := r.named(name)
	if len(name) == 1 {
		o = nil
	}
	if o == nil && r.exact {
		if positive, ok := strings.CutPrefix(name, "no-"); ok && !has {
			if o := r.named(positive); o != nil && len(positive) > 1 {
				r.given = append(r.given, givenOption{option: &option{names: []string{name}}})
				return rest
			}
		}
	}
	if o == nil {
		candidates := r.beginWith(name)
		if len(candidates) != 1 {
			if len(candidates) > 1 {
				r.addRisk(fmt.Sprintf("its option %s can mean %s", quoted(word),
					candidates[0].text()+" or "+candidates[1].text()), word)
				r.unparsed = true
			} else {
				r.unknown("--"+name, word)
			}
			return rest
		}
		o = candidates[0]
		if r.exact {
			r.addRisk(fmt.Sprintf("its option %s is not spelled out", quoted(word)), word)
		}
	}
	if o.value == noValue && has {
		r.unknown("--"+name, word)
		return rest
	}
	return r.addOption(o, value, has, rest)
}

// addOption records an option. If it needs a value and has none, the next word is its value.
func (r *parsedArgs) addOption(o *option, value string, has bool, rest []string) []string {
	if o.value == someValue && !has {
		if len(rest) == 0 {
			r.addRisk(fmt.Sprintf("its option %s has no value", o.text()), o.spellings("", false)...)
			r.unparsed = true
			return nil
		}
		value, has, rest = rest[0], true, rest[1:]
	}
	g := givenOption{o, value, has}
	r.given = append(r.given, g)
	switch o.kind {
	case starts:
		r.addRisk(fmt.Sprintf("its option %s can start other programs or load code", o.text()),
			o.spellings(value, has)...)
	case words:
		fields, ok := splitWords(value)
		if !ok {
			r.addRisk(fmt.Sprintf("what its option %s expands to is not known", o.text()), o.spellings(value, has)...)
			r.unparsed = true
		}
		return append(fields, rest...)
	}
	return rest
}

func (r *parsedArgs) unknown(name, word string) {
	r.unparsed = true
	r.addRisk(fmt.Sprintf("hako does not know its option %s, which may start other programs", quoted(name)), word, name)
}

func (r *parsedArgs) named(name string) *option {
	for i := range r.options {
		if slices.Contains(r.options[i].names, name) {
			return &r.options[i]
		}
	}
	return nil
}

// beginWith returns the options with a long name that starts with text.
func (r *parsedArgs) beginWith(text string) (list []*option) {
	for i := range r.options {
		if slices.ContainsFunc(r.options[i].names, func(name string) bool {
			return len(name) > 1 &&
				strings.HasPrefix(name, text)
		}) {
			list = append(list, &r.options[i])
		}
	}
	return list
}

// spellings returns all spellings of an option with its value, and the value itself.
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

// spellings returns the spellings of all options that were given.
func (r *parsedArgs) spellings() (list []string) {
	if r == nil {
		return nil
	}
	for _, g := range r.given {
		list = append(list, g.option.spellings(g.value, g.has)...)
	}
	return list
}

// splitWords splits a value into arguments. It reports false for anything but words and plain quotes, because the
// escapes differ between programs.
func splitWords(text string) ([]string, bool) {
	if strings.ContainsAny(text, "\\$#`;&|<>()*?[]{}~!\n") {
		return strings.Fields(text), false
	}
	return fieldsOf(text)
}

func quoted(word string) string { return quoteAll([]string{word}) }
