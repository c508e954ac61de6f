// Package strictyaml reads YAML that people write: strictly, with every problem at its line and column, and with
// suggestions for misspelled names.
//
// Read parses a document and passes its root to a function; Fields, List, String and the like read its values into Go
// variables. Aliases, anchors, merge keys, tags, repeated keys and further documents are refused, so that the
// text that a reviewer reads is the whole configuration.
package strictyaml

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/hako-run/hako/internal/lazyregexp"
)

// maxDepth bounds the nesting of lists and mappings.
const maxDepth = 64

// Read parses data, one YAML document of at most limit bytes, and hands its root to read, which takes the values out
// and reports what is wrong with them. Then it calls check, if not nil, for rules that span several values; the
// problems of an *Error that check returns are given their positions by their paths, and dropped where read reported on
// that place already.
//
// The error is an *Error with all problems in the order of the document, or what else check returned.
func Read(data []byte, limit int, read func(Value), check func() error) error {
	d := &document{places: map[string]place{}}
	root := d.parse(data, limit)
	if root != nil {
		d.screen(root, "", 1)
	}
	if len(d.err.Problems) == 0 {
		read(Value{doc: d, node: root})
		if err := d.check(check); err != nil {
			return err
		}
	}
	d.err.sort()
	return d.err.Err()
}

type place struct{ line, column int }

// document collects what is found out while a document is read.
type document struct {
	err    Error
	places map[string]place
	// reported are the paths that have a problem already.
	reported []string
}

func (d *document) problem(n *yaml.Node, path, format string, args ...any) {
	d.err.add(newProblem(n.Line, n.Column, path, format, args...))
	d.reported = append(d.reported, path)
}

// parse returns the root of the document, or nil after reporting why there is none.
func (d *document) parse(data []byte, limit int) *yaml.Node {
	if len(data) > limit {
		d.err.Add("", "the document has %d bytes; at most %d are allowed", len(data), limit)
		return nil
	}
	if line, column, ok := invalidUTF8(data); ok {
		d.err.add(newProblem(line, column, "", "the document is not valid UTF-8: save it as UTF-8"))
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var root, more yaml.Node
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		d.err.Add("", "the document is empty")
		return nil
	} else if err != nil {
		d.err.add(syntaxProblem(err))
		return nil
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		d.err.add(newProblem(more.Line, more.Column, "",
			`there is more than one document: remove what follows "---" or "..."`))
		return nil
	}
	return root.Content[0]
}

// invalidUTF8 returns the position of the first byte that is not UTF-8.
func invalidUTF8(data []byte) (line, column int, found bool) {
	line, column = 1, 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && size == 1:
			return line, column, true
		case r == '\n':
			line, column = line+1, 1
		default:
			column++
		}
		data = data[size:]
	}
	return 0, 0, false
}

var syntaxError = lazyregexp.New(`^yaml: (?:line (\d+): )?(?s:(.*))$`)

func syntaxProblem(err error) Problem {
	line, message := 0, err.Error()
	if m := syntaxError().FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = m[2]
	}
	format := "YAML syntax: %s"
	if strings.HasSuffix(message, "found character that cannot start any token") {
		format = "YAML syntax: %s: indent with spaces, not with tabs, and put texts that start with @ or ` in quotes"
	}
	return newProblem(line, 0, "", format, message)
}

// screen refuses what makes a document more than a plain tree with unique text keys.
func (d *document) screen(n *yaml.Node, path string, depth int) {
	d.places[path] = place{n.Line, n.Column}
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.problem(n, path, "anchors and aliases are not allowed: write the value out")
	case n.Style&yaml.TaggedStyle != 0:
		d.problem(n, path, "tags are not allowed: remove %s", quote(n.Tag))
	case depth > maxDepth:
		d.problem(n, "", "lists and mappings nest deeper than %d", maxDepth)
	case n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			d.screen(item, Index(path, i), depth+1)
		}
	case n.Kind == yaml.MappingNode:
		d.screenMapping(n, path, depth)
	}
}

func (d *document) screenMapping(n *yaml.Node, path string, depth int) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		first, repeated := seen[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || !isText(key) || key.Anchor != "" || key.Style&yaml.TaggedStyle != 0:
			d.problem(key, path, "a key must be plain text: write it in quotes")
		case repeated:
			d.problem(key, path, "the key %s already occurs in line %d: remove one", quote(key.Value), first)
		default:
			seen[key.Value] = key.Line
			d.screen(value, Key(path, key.Value), depth+1)
		}
	}
}

// check runs the check across values and takes over its problems.
func (d *document) check(check func() error) error {
	if check == nil {
		return nil
	}
	err := check()
	var list *Error
	if !errors.As(err, &list) {
		return err
	}
	for _, p := range list.Problems {
		if !d.isReported(p.Path) {
			at := d.locate(p.Path)
			p.Line, p.Column = at.line, at.column
			d.err.add(p)
		}
	}
	d.err.Omitted += list.Omitted
	return nil
}

// isReported reports whether a problem at path follows from one that is known: at the same value, within it or around
// it. A problem of the whole document follows from none.
func (d *document) isReported(path string) bool {
	return slices.ContainsFunc(d.reported, func(r string) bool {
		return below(path, r) || path != "" && below(r, path)
	})
}

// locate returns the position of path, or of the innermost value around it that is in the document.
func (d *document) locate(path string) place {
	for {
		if at, ok := d.places[path]; ok || path == "" {
			return at
		}
		path = parent(path)
	}
}
