package strictyaml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Mapping is a mapping to write, its keys in order. A value is a text, a bool, an int, a []string, a Mapping, a
// []Mapping, a []any of these, or JSON.
type Mapping []Entry

// Entry is one key of a Mapping. It is left out where its value is the zero value or empty.
type Entry struct {
	Key   string
	Value any
}

// Write returns m as a YAML document that Read accepts, with comment, if not empty, in front of it. Equal mappings give
// equal bytes. It fails for a text that is not valid UTF-8, and for a value of a type that a Mapping does not take.
func Write(m Mapping, comment string) ([]byte, error) {
	root, err := m.node()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(comment)
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return b.Bytes(), encoder.Close()
}

func (m Mapping) node() (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, e := range m {
		if v := reflect.ValueOf(e.Value); v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
			continue
		}
		value, err := node(e.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Key, err)
		}
		key, err := text(e.Key)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, key, value)
	}
	return n, nil
}

func node(value any) (*yaml.Node, error) {
	switch value := value.(type) {
	case Mapping:
		return value.node()
	case []Mapping:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, m := range value {
			item, err := m.node()
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, item)
		}
		return list, nil
	case string:
		return text(value)
	case []string:
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, s := range value {
			item, err := text(s)
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, item)
		}
		return list, nil
	case []any:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, v := range value {
			item, err := node(v)
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, item)
		}
		return list, nil
	case json.RawMessage:
		decoder := json.NewDecoder(bytes.NewReader(value))
		decoder.UseNumber() // preserves the digits of numbers
		var decoded any
		if err := decoder.Decode(&decoded); err != nil {
			return nil, err
		}
		return jsonNode(decoded)
	case []uint16:
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, n := range value {
			list.Content = append(list.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.Itoa(int(n))})
		}
		return list, nil
	case int:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.Itoa(value)}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatBool(value)}, nil
	}
	return nil, fmt.Errorf("a %T cannot be written", value)
}

// jsonNode returns a decoded JSON value, on one line.
func jsonNode(value any) (*yaml.Node, error) {
	list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	switch value := value.(type) {
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}, nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: value.String()}, nil
	case []any:
		for _, v := range value {
			item, err := jsonNode(v)
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, item)
		}
		return list, nil
	case map[string]any:
		list.Kind = yaml.MappingNode
		for _, name := range slices.Sorted(maps.Keys(value)) {
			key, err := text(name)
			if err != nil {
				return nil, err
			}
			item, err := jsonNode(value[name])
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, key, item)
		}
		return list, nil
	}
	return node(value)
}

func text(s string) (*yaml.Node, error) {
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("%s is not valid UTF-8", quote(s))
	}
	if isPlain(s) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}, nil
	}
	n := &yaml.Node{}
	return n, n.Encode(s)
}

// isPlain reports whether YAML writes a text as it is, whatever stands around it. Node.Encode finds that for every
// text, but starts an encoder and a parser for it.
func isPlain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
		case i == 0 || i == len(s)-1 && c == ':':
			return false
		case !('0' <= c && c <= '9') && !strings.ContainsRune("-_./:", rune(c)):
			return false
		}
	}
	switch strings.ToLower(s) {
	case "", "y", "n", "yes", "no", "on", "off", "true", "false",
		"null": // other types, in one version of YAML or another
		return false
	}
	return true
}
