package strictyaml

import (
	"bytes"
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
)

// Mapping is a mapping to write, its keys in order. A value is a text, a bool, a []string, a Mapping or a []Mapping.
type Mapping []Entry

// Entry is one key of a Mapping. It is left out where its value is the zero value or empty.
type Entry struct {
	Key   string
	Value any
}

// Write returns m as a YAML document that Read accepts, with comment, if not empty, in front of it. Equal mappings give equal
// bytes. It fails only for a value of a type that a Mapping does not take.
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
		key := &yaml.Node{}
		key.SetString(e.Key)
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
	case string, bool, []string:
		n := &yaml.Node{}
		if err := n.Encode(value); err != nil {
			return nil, err
		}
		if n.Kind == yaml.SequenceNode {
			n.Style = yaml.FlowStyle
		}
		return n, nil
	}
	return nil, fmt.Errorf("a %T cannot be written", value)
}
