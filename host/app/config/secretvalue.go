package config

import (
	"context"

	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/internal/strictyaml"
)

// secretValue reads a value of a plugin's configuration that says where it is: {env: NAME}, {file: PATH} or
// {command: [PROGRAM, ARGUMENT]}.
func (r reader) secretValue(key string, v strictyaml.Value) string {
	var source secret.Source
	r.source(&source)(v)
	r.note(key, source.String(), v)
	err := source.Check()
	if err != nil {
		v.Problem("%v", err)
		return ""
	}
	value, err := source.Read(context.Background())
	if err != nil {
		v.Problem("%v", err)
	}
	return value
}
