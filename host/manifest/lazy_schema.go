package manifest

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/hako-run/hako/host/schema"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/internal/strictyaml"
)

// lazySchema is a schema that is compiled when it is validated or first used.
type lazySchema struct {
	data json.RawMessage

	once     sync.Once
	compiled *schema.Schema
}

// get returns the compiled schema, or nil if there is none. It panics if the schema is invalid.
func (s *lazySchema) get() *schema.Schema {
	if s == nil {
		return nil
	}
	s.once.Do(func() {
		if s.compiled != nil {
			return
		}
		var err error
		if s.compiled, err = schema.Compile(s.data); err != nil {
			panic(fmt.Sprintf("manifest: a schema that was validated is invalid: %v", err))
		}
	})
	return s.compiled
}

// ParseValidated parses the manifest in a module as ParseModule does, without validating it: ParseModule must have
// accepted it before. The schemas of tools are compiled at their first use.
func ParseValidated(m *wasmfile.Module) (*Manifest, error) {
	parsed := &Manifest{}
	valid := func() error { return nil }
	if err := strictyaml.Read(m.Manifest, MaxBytes, parsed.read, valid); err != nil {
		return nil, err
	}
	for i := range parsed.Tools {
		t := &parsed.Tools[i]
		t.input = &lazySchema{data: t.InputSchema}
		if t.OutputSchema != nil {
			t.output = &lazySchema{data: t.OutputSchema}
		}
	}
	return parsed, nil
}
