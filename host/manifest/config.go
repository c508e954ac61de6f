package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"

	"github.com/hako-run/hako/host/schema"
	"github.com/hako-run/hako/internal/lazyregexp"
	"github.com/hako-run/hako/internal/strictyaml"
)

var configName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// configTypes are the types of configuration keys, with what a value must be.
var configTypes = map[string]string{
	"string":  "a text",
	"integer": "a whole number",
	"number":  "a number",
	"boolean": "true or false",
	"url":     `a URL that starts with "https://" or "http://"`,
	"array":   "a list of texts",
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func (v *validation) config(config map[string]ConfigKey) {
	if len(config) > maxItems {
		v.Add("config", "declares %d keys; at most %d are allowed", len(config), maxItems)
	}
	for _, name := range keys(config) {
		path, k := strictyaml.Key("config", name), config[name]
		if !configName().MatchString(name) {
			v.Add(path, `a key must be 1 to 64 of A-Z, a-z, 0-9 and "_", starting with a letter`)
		}
		v.text(path+".description", k.Description, maxDescription)
		if k.Required && k.Default != nil {
			v.Add(path, "a key with a default need not be required: remove one of the two")
		}
		v.configType(path, k)
	}
}

func (v *validation) configType(path string, k ConfigKey) {
	words, ok := configTypes[k.Type]
	if !ok {
		v.Add(path+".type", "%s", strictyaml.Unknown("type", k.Type, keys(configTypes)))
		return
	}
	for i, value := range k.Enum {
		if _, ok := configValue(k.Type, value); !ok {
			v.Add(strictyaml.Index(path+".enum", i), "must be %s", words)
		}
	}
	if k.Default == nil {
		return
	}
	if value, ok := configValue(k.Type, k.Default); !ok {
		v.Add(path+".default", "must be %s", words)
	} else if !k.allows(value) {
		v.Add(path+".default", "must be one of %s", schema.Constants(k.Enum))
	}
}

// allows reports whether value, as configValue returns it, is one of the enum.
func (k ConfigKey) allows(value any) bool {
	return len(k.Enum) == 0 || slices.ContainsFunc(k.Enum, func(e any) bool {
		e, _ = configValue(k.Type, e)
		return reflect.DeepEqual(e, value)
	})
}

// Configure returns the plugin's configuration as the guest gets it: the values that an operator set, and the defaults
// of the other keys. It is an *Error if a value is of the wrong type or not one of the enum, or if a key is unknown or
// required and missing. Numbers may be of any Go type that encoding/json or a YAML decoder produces.
func (m *Manifest) Configure(values map[string]any) (json.RawMessage, error) {
	var e Error
	config := map[string]any{}
	for _, name := range keys(values) {
		k, ok := m.Config[name]
		if !ok {
			e.Add("", "%s", strictyaml.Unknown("configuration key", name, keys(m.Config)))
			continue
		}
		value, ok := configValue(k.Type, values[name])
		if k.Credential != "" {
			e.Add(name, "is a placeholder for the credential %s, and has no value: remove it and set credentials.%[1]s",
				k.Credential)
		} else if !ok {
			e.Add(name, "must be %s", configTypes[k.Type])
		} else if !k.allows(value) {
			e.Add(name, "must be one of %s", schema.Constants(k.Enum))
		}
		config[name] = value
	}
	for _, name := range keys(m.Config) {
		k := m.Config[name]
		if _, set := values[name]; set {
			continue
		}
		if k.Required {
			e.Add(name, "is missing: plugin %s needs %s", m.Name, configTypes[k.Type])
		}
		if k.Default != nil {
			config[name] = k.Default
		}
	}
	if err := e.Err(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode the configuration of plugin %s: %w", m.Name, err)
	}
	return data, nil
}

// configValue returns value in the one form that its type has here, or false if it is not of that type.
func configValue(kind string, value any) (any, bool) {
	switch kind {
	case "string":
		s, ok := value.(string)
		return s, ok
	case "boolean":
		b, ok := value.(bool)
		return b, ok
	case "url":
		return configURL(value)
	case "array":
		return configArray(value)
	}
	return configNumber(kind, value)
}

func configURL(value any) (any, bool) {
	s, ok := value.(string)
	if !ok {
		return nil, false
	}
	u, err := url.Parse(s)
	return s, err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && isASCII(s)
}

func configArray(value any) (any, bool) {
	if texts, ok := value.([]string); ok {
		return texts, true
	}
	list, ok := value.([]any)
	texts := make([]string, len(list))
	for i, item := range list {
		s, isText := item.(string)
		texts[i], ok = s, ok && isText
	}
	return texts, ok
}

// configNumber returns an integer as int64 and a number as float64.
func configNumber(kind string, value any) (any, bool) {
	var f float64
	switch v := reflect.ValueOf(value); {
	case v.IsValid() && v.CanInt():
		f = float64(v.Int())
		if kind == "integer" {
			return v.Int(), true
		}
	case v.IsValid() && v.CanUint():
		f = float64(v.Uint())
	case v.IsValid() && v.CanFloat():
		f = v.Float()
	default:
		number, ok := value.(json.Number)
		parsed, err := strconv.ParseFloat(string(number), 64)
		if !ok || err != nil {
			return nil, false
		}
		f = parsed
		if i, err := number.Int64(); err == nil && kind == "integer" {
			return i, true
		}
	}
	if kind == "integer" {
		return int64(f), f == math.Trunc(f) && math.Abs(f) < 1<<53
	}
	return f, !math.IsNaN(f) && !math.IsInf(f, 0)
}

// ConfigTexts returns the values of a configuration, a JSON object as Configure makes it, as texts: strings as they
// are, others as JSON.
func ConfigTexts(config []byte) (map[string]string, error) {
	texts := map[string]string{}
	if len(config) == 0 {
		return texts, nil
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(config, &values); err != nil {
		return nil, fmt.Errorf("the plugin's configuration: %w", err)
	}
	for name, raw := range values {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		texts[name] = text
	}
	return texts, nil
}
