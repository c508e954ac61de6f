package manifest

import (
	_ "embed" // for the published schema
)

//go:embed manifest.schema.json
var published string

// JSONSchema returns the published JSON Schema of manifests, draft 2020-12, for editors: in YAML, point to it with
// $schema or with "# yaml-language-server: $schema=...". It states what a schema can; Parse checks more.
func JSONSchema() string { return published }
