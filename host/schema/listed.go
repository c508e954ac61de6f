package schema

import (
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/hako-run/hako/internal/jsonread"
	"github.com/hako-run/hako/internal/toolschema"
)

// listedNames are the names under which clients are shown properties, where they differ (toolschema.Names).
type listedNames struct {
	listed, declared toolschema.Names
	// schema is the same schema with the listed names, compiled when it is first used.
	schema func() (*Schema, error)
}

func newListedNames(names toolschema.Names, source []byte) *listedNames {
	if len(names) == 0 {
		return nil
	}
	return &listedNames{listed: names, declared: names.Reversed(), schema: sync.OnceValues(func() (*Schema, error) {
		doc, err := decodeSchema(source)
		if err != nil {
			return nil, err
		}
		names.Rename(doc)
		data, err := json.Marshal(doc)
		if err != nil {
			return nil, err
		}
		return Compile(data)
	})}
}

// Declared returns arguments with the names that the schema declares, for a caller that has seen those of
// toolschema.Listed. Either may be used. Arguments that are not valid are returned unchanged: Arguments says what is
// wrong.
func (s *Schema) Declared(arguments json.RawMessage) json.RawMessage {
	if s.names == nil {
		return arguments
	}
	renamed, _ := s.renamed(arguments, s.names.declared)
	return renamed
}

// Explain returns the error of Arguments with the names that the caller has seen: those of toolschema.Listed, unless
// the arguments that it gave have a declared one in its place. declared are the arguments to which the error belongs.
func (s *Schema) Explain(err error, given, declared json.RawMessage) error {
	if s.names == nil {
		return err
	}
	if _, own := s.renamed(given, s.names.listed); own {
		return err
	}
	listed, failed := s.names.schema()
	if failed != nil {
		return err // its patterns of names, for example, do not fit the listed ones
	}
	arguments, _ := s.renamed(declared, s.names.listed)
	if _, other := listed.Arguments(arguments); other != nil {
		return other
	}
	return err
}

// renamed returns arguments with other names, and reports whether there were any to replace.
func (s *Schema) renamed(arguments json.RawMessage, names toolschema.Names) (json.RawMessage, bool) {
	r := rewriter{tokens: jsonread.Reader{Data: arguments, Lenient: true, MaxDepth: maxDepth + 1}, names: names}
	renamed, err := r.document(s.compiled)
	if err != nil || !r.renamed {
		return arguments, false
	}
	if _, err := r.tokens.Next(); !errors.Is(err, io.EOF) { // more follows the value
		return arguments, false
	}
	return renamed, true
}
