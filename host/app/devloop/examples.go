package devloop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/hako-run/hako/host/frontend/terminal"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/internal/wholefile"
	"github.com/hako-run/hako/pdk/abi"
)

// examplesFile has the examples of a plugin, in its folder. examples.json may have them instead: JSON is YAML.
const examplesFile = "examples.yaml"

// maxExamples bounds the file, in bytes.
const maxExamples = 1 << 20

// example is a call and what comes of it.
type example struct {
	Tool      string
	Arguments json.RawMessage
	// Result is the text of the result as a JSON string, or its structured content. Nil expects any success.
	Result json.RawMessage
	// Error, if not empty, is a part of the text with which the tool fails.
	Error string
}

// readExamples reads the examples in dir, and returns the name of their file. Both are empty if there is none.
func readExamples(dir string) (list []example, name string, err error) {
	for _, name := range []string{examplesFile, "examples.json"} {
		data, err := wholefile.ReadAtMost(filepath.Join(dir, name), maxExamples)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			list, err = parseExamples(data)
		}
		if err != nil {
			return nil, name, fmt.Errorf("%s:\n%w", name, err)
		}
		return list, name, nil
	}
	return nil, "", nil
}

func parseExamples(data []byte) (list []example, err error) {
	err = strictyaml.Read(data, maxExamples, func(root strictyaml.Value) {
		root.List(func(_ int, item strictyaml.Value) {
			e := example{Arguments: json.RawMessage("{}")}
			item.Object(strictyaml.Fields{
				"tool":      func(v strictyaml.Value) { e.Tool, _ = v.Text() },
				"arguments": func(v strictyaml.Value) { e.Arguments = v.JSON() },
				"result":    func(v strictyaml.Value) { e.Result = v.JSON() },
				"error":     func(v strictyaml.Value) { e.Error, _ = v.Text() },
			})
			if e.Tool == "" {
				item.Problem("needs a tool: write tool: and a name from the manifest")
			}
			if e.Result != nil && e.Error != "" {
				item.Problem("has result and error: a call has one of them")
			}
			list = append(list, e)
		})
	}, nil)
	return list, err
}

// check returns how a response differs from what the example expects.
func (e *example) check(r *abi.Response) error {
	text := textOf(r)
	switch {
	case r.IsError && e.Error == "":
		return errors.New("the tool says that it failed")
	case e.Error != "" && (!r.IsError || !strings.Contains(text, e.Error)):
		return fmt.Errorf("expected a failure with %q", e.Error)
	case e.Result == nil:
		return nil
	}
	var want, got any
	if err := decodeNumbers(e.Result, &want); err != nil {
		return err
	}
	if want, ok := want.(string); ok {
		if strings.TrimSpace(want) != strings.TrimSpace(text) {
			return fmt.Errorf("expected %q", want)
		}
		return nil
	}
	if len(r.StructuredContent) == 0 {
		return fmt.Errorf("expected the structured content %s, and there is none", clipped(e.Result))
	}
	if err := decodeNumbers(r.StructuredContent, &got); err != nil {
		return err
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("expected the structured content %s, got %s", clipped(e.Result), clipped(r.StructuredContent))
	}
	return nil
}

// decodeNumbers decodes JSON with numbers as they are written.
func decodeNumbers(data []byte, into *any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into)
}

// textOf returns the texts of a result.
func textOf(r *abi.Response) string {
	var b strings.Builder
	_ = terminal.WriteContent(&b, r.Content) // a Builder takes everything
	return b.String()
}
