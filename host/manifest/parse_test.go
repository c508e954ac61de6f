package manifest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/manifest"
)

// minimal is the smallest manifest there is; cases add to it or replace lines of it.
const minimal = `name: greet
version: 1.0.0
tools:
  - name: greet
    description: Greets a person.
    inputSchema: {type: object}
`

const weather = `$schema: ./manifest.schema.json
name: weather
version: 1.2.0-rc.1+build.5
description: {en: Weather forecasts for Japan., ja: 日本の天気予報。}
license: Apache-2.0
tools:
  - name: get_weather
    title: {en: Weather, ja: 天気}
    description:
      en: |
        Returns the forecast.
        One place at a time.
      ja: 予報を返します。
    inputSchema:
      type: object
      properties:
        location: {type: string, minLength: 1}
        date: {type: string, enum: [today, tomorrow, week], default: today}
        days: {type: integer, minimum: 1e0, maximum: 7}
      required: [location]
      additionalProperties: false
    outputSchema: '{"type": "object", "properties": {"b": {}, "a": {"multipleOf": 0.10}}}'
    annotations: {readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: true}
    icons:
      - {src: "https://example.com/i.png", mimeType: image/png, sizes: [48x48, any]}
    limits: {time: 10s, output: 1MiB}
resources:
  - {uri: "weather://areas", name: areas, title: Areas, description: All areas., mimeType: application/json}
resourceTemplates:
  - {uriTemplate: "weather://{area}", name: area, title: Area, description: One area., mimeType: text/plain}
prompts:
  - name: trip
    title: Trip
    description: Plans a trip.
    arguments:
      - {name: to, description: Where to, required: true}
permissions:
  http:
    - name: jma
      url: https://www.jma.go.jp/bosai/
      configKey: base_url
      methods: [GET, HEAD]
      paths: ["forecast/**", const/area.json]
      credential: jma
      reason: {en: To fetch forecasts., ja: 予報を取得するため。}
  files:
    - {mount: cache, access: read-write, reason: To keep the area table.}
  sql:
    migrations:
      - |
        CREATE TABLE area (code TEXT PRIMARY KEY);
      - ALTER TABLE area ADD COLUMN name TEXT
    quota: 16MiB
    reason: {en: To count what was asked for., ja: 問い合わせを数えるため。}
config:
  base_url: {type: url, description: Another server., default: "https://www.jma.go.jp/bosai/"}
  style: {type: string, enum: [short, long], default: short}
  limit: {type: integer, default: 3}
  key: {type: string, required: true}
limits: {time: 30s, cpu: 10000, memory: 64MiB, input: 4MiB, output: 4MiB, log: 64KiB, concurrency: 16, queue: 256, queueWait: 10s, rate: 6000, openFiles: 64, requests: 100, calls: 50, parallelCalls: 8}
`

func TestParse(t *testing.T) {
	t.Parallel()
	m, err := manifest.Parse([]byte(weather))
	if err != nil {
		t.Fatal(err)
	}
	tool := m.Tools[0]
	for _, c := range []struct{ what, got, want string }{
		{"version", m.Version, "1.2.0-rc.1+build.5"},
		{"description in Japanese", m.Description.In("ja-JP"), "日本の天気予報。"},
		{"plain text", m.Resources[0].Title.In("ja"), "Areas"},
		{"schema keeps order and numbers", string(tool.InputSchema),
			`{"type":"object","properties":{"location":{"type":"string","minLength":1},` +
				`"date":{"type":"string","enum":["today","tomorrow","week"],"default":"today"},"days":{"type":"integer","minimum":1e0,"maximum":7}},` +
				`"required":["location"],"additionalProperties":false}`},
		{"schema as JSON text", string(tool.OutputSchema),
			`{"type": "object", "properties": {"b": {}, "a": {"multipleOf": 0.10}}}`},
		{"configKey", m.Permissions.HTTP[0].ConfigKey, "base_url"},
		{"credential", m.Permissions.HTTP[0].Credential, "jma"},
		{"migrations", strings.Join(m.Permissions.SQL.Migrations, "|"),
			"CREATE TABLE area (code TEXT PRIMARY KEY);\n|ALTER TABLE area ADD COLUMN name TEXT"},
		{"quota", fmt.Sprint(m.Permissions.SQL.Quota), "16777216"},
		{"default", m.Config["limit"].Default.(json.Number).String(), "3"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, c.got, c.want)
		}
	}
	if m.Limits != manifest.DefaultLimits {
		t.Errorf("limits: got %+v", m.Limits)
	}
	if tool.Limits != (manifest.Limits{Time: 10 * time.Second, Output: 1 << 20}) {
		t.Errorf("tool limits: got %+v", tool.Limits)
	}
	if !m.Permissions.Files[0].Write || !*tool.Annotations.ReadOnlyHint || *tool.Annotations.DestructiveHint {
		t.Error("access or annotations are wrong")
	}
	if tool.Input() == nil || tool.Output() == nil {
		t.Error("the schemas are not compiled")
	}
}

// badManifests are manifests that Parse refuses, each with lines of the error. Cases whose name ends in "*" break a
// rule that a JSON Schema cannot state, so that the published schema accepts them.
var badManifests = []struct {
	name string
	yaml string
	want []string
}{
	{"empty", "", []string{"the document is empty"}},
	{"not a mapping", "- a\n", []string{"1:1: must be a mapping (key: value), not a list"}},
	{"syntax", "name: a\n\tb: c\n", []string{"line 2: YAML syntax: "}},
	{"not UTF-8", "name: a\nversion: \"\xff\"\n", []string{"2:11: the document is not valid UTF-8"}},
	{"two documents", minimal + "---\nname: b\n", []string{"there is more than one document"}},
	{"unknown key", minimal + "desciption: Hello\n",
		[]string{`7:1: unknown key "desciption": did you mean "description"?`}},
	{"unknown key without a near one", minimal + "zzz: 1\n",
		[]string{`7:1: unknown key "zzz": known are $schema, config, description, license`}},
	{"unknown key in a tool", strings.Replace(minimal, "description:", "desciption:", 1),
		[]string{`5:5: tools[0]: unknown key "desciption": did you mean "description"?`}},
	{"repeated key", minimal + "name: again\n",
		[]string{`7:1: the key "name" already occurs in line 1: remove one`}},
	{"repeated key in a schema", strings.Replace(minimal, "{type: object}", "{type: object, type: object}", 1),
		[]string{`6:33: tools[0].inputSchema: the key "type" already occurs in line 6`}},
	{"anchor", strings.Replace(minimal, "greet\n", "&a greet\n", 1),
		[]string{"1:7: name: anchors and aliases are not allowed"}},
	{"merge key", minimal + "<<: {license: MIT}\n", []string{"7:1: a key must be plain text"}},
	{"tag", strings.Replace(minimal, "1.0.0", "!!str 1.0.0", 1),
		[]string{`2:10: version: tags are not allowed: remove "!!str"`}},
	{"number for text", strings.Replace(minimal, "1.0.0", "1.0", 1),
		[]string{`2:10: version: must be text, not a number: for a text write "1.0"`}},
	{"bool for text", strings.Replace(minimal, "name: greet\nv", "name: true\nv", 1),
		[]string{`1:7: name: must be text, not true or false`}},
	{"nothing for text", minimal + "license:\n",
		[]string{"7:9: license: must be text, not empty: give a value or leave the key out"}},
	{"empty text", minimal + "license: ''\n", []string{"7:10: license: must not be empty"}},
	{"text for bool", minimal + "    annotations: {readOnlyHint: yes}\n",
		[]string{"tools[0].annotations.readOnlyHint: must be true or false, not text"}},
	{"mapping for list", minimal + "prompts: {a: b}\n", []string{"prompts: must be a list, not a mapping"}},
	{"no name", strings.Replace(minimal, "name: greet\nv", "v", 1), []string{"name: is missing: it must be 1 to 40"}},
	{"name", strings.Replace(minimal, "name: greet\nv", "name: Greet\nv", 1),
		[]string{`1:7: name: must be 1 to 40 of a-z, 0-9 and "-", starting with a letter`}},
	{"version", strings.Replace(minimal, "1.0.0", "v1.0.0", 1), []string{"2:10: version: must be a semantic version"}},
	{"version with zeros", strings.Replace(minimal, "1.0.0", "1.01.0", 1),
		[]string{"2:10: version: must be a semantic version"}},
	{"license", minimal + "license: «MIT»\n", []string{"license: must be an SPDX expression"}},
	{"nothing offered", "name: a\nversion: 1.0.0\n", []string{"tools: the manifest offers nothing"}},
	{"nothing offered but an empty list", "name: a\nversion: 1.0.0\ntools: []\n",
		[]string{"3:8: tools: the manifest offers nothing"}},
	{"language", minimal + "description: {English: Hello}\n", []string{"description.English: is not a language tag"}},
	{"empty description", minimal + "description: ''\n", []string{"description.en: is empty"}},
	{"no language", minimal + "description: {}\n", []string{"7:14: description: must not be empty"}},
	{"long title", minimal + "    title: " + strings.Repeat("x", 201) + "\n",
		[]string{"tools[0].title.en: has 201 characters; at most 200"}},
	{"hidden text*", minimal + "description: \"a\\U000E0041\"\n",
		[]string{"description.en: contains the invisible character U+E0041"}},
	{"terminal escape*", minimal + "description: \"a\\e[2J\"\n",
		[]string{"description.en: contains the invisible character U+001B"}},
	{"two lines in a title*", minimal + "    title: \"a\\nb\"\n",
		[]string{"tools[0].title.en: contains the invisible character U+000A"}},
	{"tool name", strings.Replace(minimal, "- name: greet", "- name: greet.me", 1),
		[]string{`4:11: tools[0].name: must be 1 to 64 of A-Z`}},
	{"same tool twice*", minimal + minimal[strings.Index(minimal, "  - name"):],
		[]string{"7:11: tools[1].name: is the same as in tools[0]"}},
	{"no tool description", strings.Replace(minimal, "    description: Greets a person.\n", "", 1),
		[]string{"4:5: tools[0].description: is missing"}},
	{"no input schema", strings.Replace(minimal, "    inputSchema: {type: object}\n", "", 1),
		[]string{`tools[0].inputSchema: is missing: for a tool without arguments write {"type": "object"}`}},
	{"root type", strings.Replace(minimal, "{type: object}", "{type: array}", 1),
		[]string{`6:25: tools[0].inputSchema.type: the root's type must be "object"`}},
	{"schema type", strings.Replace(minimal, "{type: object}", "{type: object, properties: {a: {type: strng}}}", 1),
		[]string{"6:56: tools[0].inputSchema.properties.a.type: ", `did you mean "string"?`}},
	{"schema as bad JSON*", strings.Replace(minimal, "{type: object}", "'{\"type\": }'", 1),
		[]string{"6:18: tools[0].inputSchema.type: is not valid JSON: missing value"}},
	{"required not in properties*", strings.Replace(minimal, "{type: object}",
		"{type: object, properties: {location: {}}, required: [locaton]}", 1),
		[]string{`6:72: tools[0].inputSchema.required[0]: unknown property "locaton": did you mean "location"?`}},
	{"number form*", strings.Replace(minimal, "{type: object}", "{type: object, minProperties: 0x1}", 1),
		[]string{`6:48: tools[0].inputSchema.minProperties: "0x1" is not a number in JSON`}},
	{"hints", minimal + "    annotations: {readOnlyHint: true, destructiveHint: true}\n",
		[]string{"7:18: tools[0].annotations: a tool cannot be both"}},
	{"icon", minimal + "    icons: [{src: 'file:///etc/passwd'}]\n",
		[]string{"tools[0].icons[0].src: must be a URI that starts with"}},
	{"icon size", minimal + "    icons: [{src: 'https://a.example/i.png', sizes: [big]}]\n",
		[]string{"tools[0].icons[0].sizes[0]: must be"}},
	{"tool memory", minimal + "    limits: {memory: 64MiB}\n",
		[]string{"7:22: tools[0].limits.memory: applies to the whole plugin"}},
	{"size without unit", minimal + "limits: {memory: 64}\n",
		[]string{`7:18: limits.memory: must be a size above zero with its unit`}},
	{"size in decimal unit", minimal + "limits: {memory: 64MB}\n",
		[]string{`limits.memory: must be a size above zero with its unit`}},
	{"small memory*", minimal + "limits: {memory: 64KiB}\n", []string{`limits.memory: must be between 1MiB and 4GiB`}},
	{"huge size*", minimal + "limits: {memory: 999999999999TiB}\n",
		[]string{`limits.memory: must be a size above zero`}},
	{"duration without unit", minimal + "limits: {time: 30}\n",
		[]string{`limits.time: must be a duration above zero with its unit`}},
	{"long time*", minimal + "limits: {time: 2h}\n", []string{`limits.time: must be between 1ms and 1h0m0s`}},
	{"no queue", minimal + "limits: {queue: 0}\n", []string{`limits.queue: must be a whole number from 1`}},
	{"rate", minimal + "limits: {rate: 1.5}\n", []string{`limits.rate: must be a whole number from 1`}},
	{"concurrency", minimal + "limits: {concurrency: 5000}\n",
		[]string{`limits.concurrency: must be between 1 and 1024`}},
	{"resource", minimal + "resources: [{uri: notes, name: n}]\n",
		[]string{`resources[0].uri: must be an absolute URI in ASCII`}},
	{"resource not ASCII", minimal + "resources: [{uri: 'notes://今日', name: n}]\n",
		[]string{`resources[0].uri: must be an absolute URI in ASCII`}},
	{"resource name", minimal + "resources: [{uri: 'notes://a'}]\n", []string{`resources[0].name: is missing`}},
	{"same resource*", minimal + "resources: [{uri: 'notes://a', name: n}, {uri: 'notes://a', name: m}]\n",
		[]string{`resources[1].uri: is the same as in resources[0]`}},
	{"media type", minimal + "resources: [{uri: 'notes://a', name: n, mimeType: text}]\n",
		[]string{`resources[0].mimeType: must be a media type`}},
	{"template syntax*", minimal + "resourceTemplates: [{uriTemplate: 'notes://{a,,}', name: n}]\n",
		[]string{`resourceTemplates[0].uriTemplate: must be an absolute URI template`}},
	{"template without variable", minimal + "resourceTemplates: [{uriTemplate: 'notes://a', name: n}]\n",
		[]string{`resourceTemplates[0].uriTemplate: has no variable`}},
	{"same prompt argument*", minimal + "prompts: [{name: p, arguments: [{name: a}, {name: a}]}]\n",
		[]string{`prompts[0].arguments[1].name: is the same as in prompts[0].arguments[0]`}},
	{"retired on offer*", minimal + "retired: [{tool: greet, instead: i}]\n",
		[]string{`retired[0]: is also in tools: remove it in one of them`}},
	{"retired twice*", minimal + "retired: [{tool: a, instead: i}, {tool: a, instead: j}]\n",
		[]string{`retired[1]: is the same as in retired[0]`}},
	{"retired in two ways", minimal + "retired: [{tool: a, prompt: a, instead: i}]\n",
		[]string{`retired[0]: names 2 things: name one tool, prompt or resource`}},
	{"retired nothing", minimal + "retired: [{instead: i}]\n", []string{`retired[0]: names 0 things`}},
	{"retired name", minimal + "retired: [{tool: a b, instead: i}]\n", []string{`retired[0].tool: must be 1 to 64 of`}},
	{"retired resource", minimal + "retired: [{resource: a, instead: i}]\n",
		[]string{`retired[0].resource: must be an absolute URI in ASCII`}},
	{"retired without a substitute", minimal + "retired: [{tool: a}]\n", []string{`retired[0].instead: is missing`}},
	{"permission without reason", minimal + "permissions: {files: [{mount: w, access: read-only}]}\n",
		[]string{`permissions.files[0].reason: is missing`}},
	{"access", minimal + "permissions: {files: [{mount: w, access: write, reason: r}]}\n",
		[]string{`permissions.files[0].access: must be "read-only" or "read-write"`}},
	{"two with roots*",
		minimal +
			"permissions: {files: [{mount: w, access: read-only, roots: true, reason: r}, {mount: v, access: read-only, roots: true, reason: r}]}\n", []string{`permissions.files[1].roots: another mount asks for roots already`}},
	{"no access", minimal + "permissions: {files: [{mount: w, reason: r}]}\n",
		[]string{`permissions.files[0]: access is missing`}},
	{"mount", minimal + "permissions: {files: [{mount: ../w, access: read-only, reason: r}]}\n",
		[]string{`permissions.files[0].mount: must be`}},
	{"url scheme", minimal + "permissions: {http: [{name: a, url: 'ftp://a.example', reason: r}]}\n",
		[]string{`permissions.http[0].url: must start with "https://"`}},
	{"method", minimal + "permissions: {http: [{name: a, url: 'https://a.example', methods: [get], reason: r}]}\n",
		[]string{`permissions.http[0].methods[0]: unknown method "get": did you mean "GET"?`}},
	{"same method", minimal + "permissions: {http: [{name: a, url: 'https://a.example', methods: [GET, GET], reason: r}]}\n", []string{`permissions.http[0].methods[1]: is the same as`}},
	{"path", minimal + "permissions: {http: [{name: a, url: 'https://a.example', paths: [/data], reason: r}]}\n",
		[]string{`permissions.http[0].paths[0]: must be a glob relative to url`}},
	{"path out*", minimal + "permissions: {http: [{name: a, url: 'https://a.example', paths: [a/../../b], reason: r}]}\n", []string{`permissions.http[0].paths[0]: must be a glob`}},
	{"glob syntax*", minimal + "permissions: {http: [{name: a, url: 'https://a.example', paths: ['a[b'], reason: r}]}\n", []string{`permissions.http[0].paths[0]: must be a glob`}},
	{"unknown configKey*", minimal +
		"permissions: {http: [{name: a, url: 'https://a.example', configKey: bas_url, reason: r}]}\nconfig: {base_url: {type: url}}\n",
		[]string{`7:69: permissions.http[0].configKey: unknown configuration key "bas_url": did you mean "base_url"?`}},
	{"configKey of another type*",
		minimal + "permissions: {http: [{name: a, url: 'https://a.example', configKey: b, reason: r}]}\nconfig: {b: {type: string}}\n",
		[]string{`permissions.http[0].configKey: must name a configuration key of type url`}},
	{"default outside of url*", minimal +
		"permissions: {http: [{name: a, url: 'https://a.example/v1', configKey: b, reason: r}]}\nconfig: {b: {type: url, default: 'https://evil.example/v1'}}\n",
		[]string{`permissions.http[0].configKey: the key's default "https://evil.example/v1" is not under the permission's url`}},
	{"credential's name", minimal +
		"permissions: {http: [{name: a, url: 'https://a.example', credential: A key, reason: r}]}\n",
		[]string{`permissions.http[0].credential: must be 1 to 40`}},
	{"credential for any host*", minimal +
		"permissions: {http: [{name: a, url: 'https://*', credential: c, reason: r}]}\n",
		[]string{`permissions.http[0].url: must name the host that gets the credential`}},
	{"credential for a top-level domain*",
		minimal + "permissions: {http: [{name: a, url: 'https://*.jp', credential: c, reason: r}]}\n",
		[]string{`permissions.http[0].url: must name the host that gets the credential`}},
	{"credential in plain text*", minimal +
		"permissions: {http: [{name: a, url: 'http://a.example', credential: c, reason: r}]}\n",
		[]string{`permissions.http[0].url: must start with "https://", because a credential is sent along`}},
	{"sql without migrations", minimal + "permissions: {sql: {reason: r}}\n",
		[]string{`permissions.sql.migrations: lists no SQL`}},
	{"sql without reason", minimal + "permissions: {sql: {migrations: [CREATE TABLE a (b)]}}\n",
		[]string{`permissions.sql.reason: is missing`}},
	{"empty migration", minimal + "permissions: {sql: {migrations: ['a', ' '], reason: r}}\n",
		[]string{`permissions.sql.migrations[1]: must be one or more SQL statements`}},
	{"migration not text", minimal + "permissions: {sql: {migrations: [{up: a}], reason: r}}\n",
		[]string{`permissions.sql.migrations[0]: must be text`}},
	{"exec without programs", minimal + "permissions: {exec: {reason: r}}\n",
		[]string{`permissions.exec.programs: lists none: name them, or write ["*"]`}},
	{"exec without reason", minimal + "permissions: {exec: {programs: [git]}}\n",
		[]string{`permissions.exec.reason: is missing`}},
	{"a path for a program", minimal + "permissions: {exec: {programs: [/bin/ls], reason: r}}\n",
		[]string{`permissions.exec.programs[0]: must be a program's name without its directory`}},
	{"a pattern for a program", minimal + "permissions: {exec: {programs: ['git*'], reason: r}}\n",
		[]string{`permissions.exec.programs[0]: must be a program's name`}},
	{"a program twice", minimal + "permissions: {exec: {programs: [git, git], reason: r}}\n",
		[]string{`permissions.exec.programs[1]: is the same as in`}},
	{"any program and one", minimal + "permissions: {exec: {programs: [git, '*'], reason: r}}\n",
		[]string{`permissions.exec.programs[1]: "*" stands alone`}},
	{"small database*", minimal + "permissions: {sql: {migrations: [a], quota: 4KiB, reason: r}}\n",
		[]string{`permissions.sql.quota: must be between 1MiB and 1TiB`}},
	{"config type", minimal + "config: {a: {type: int}}\n", []string{`config.a.type: unknown type "int": known are`}},
	{"config key", minimal + "config: {a-b: {type: string}}\n", []string{`config.a-b: a key must be 1 to 64`}},
	{"config key without type", minimal + "config: {a: {}}\n", []string{`config.a.type: unknown type ""`}},
	{"config default*", minimal + "config: {a: {type: integer, default: x}}\n",
		[]string{`config.a.default: must be a whole number`}},
	{"config default not in enum*", minimal + "config: {a: {type: integer, default: 3, enum: [1, 2]}}\n",
		[]string{`config.a.default: must be one of 1, 2`}},
	{"config enum*", minimal + "config: {a: {type: integer, enum: [1, b]}}\n",
		[]string{`config.a.enum[1]: must be a whole number`}},
	{"config required with default", minimal + "config: {a: {type: integer, required: true, default: 1}}\n",
		[]string{`config.a: a key with a default need not be required`}},
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range badManifests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := manifest.Parse([]byte(c.yaml))
			var problems *manifest.Error
			if !errors.As(err, &problems) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if len(problems.Problems) != 1 {
				t.Errorf("got %d problems, want one", len(problems.Problems))
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got  %s\nwant %s", err, want)
				}
			}
		})
	}
}

func TestParseReportsEverything(t *testing.T) {
	t.Parallel()
	_, err := manifest.Parse([]byte(`name: Greet
tools:
  - name: greet
    desciption: Hi
    inputSchema: {type: object}
license: 5
permissions:
  http: [{name: a}]
`))
	want := `1:1: version: is missing: it must be a semantic version such as "1.0.0"
1:7: name: must be 1 to 40 of a-z, 0-9 and "-", starting with a letter
4:5: tools[0]: unknown key "desciption": did you mean "description"?
6:10: license: must be text, not a number: for a text write "5"
8:10: permissions.http[0].url: is missing: it must be a URL such as "https://api.example.com/v1/"
8:10: permissions.http[0].reason: is missing: write a text, or one by language (en: ..., ja: ...)`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestParseBounds(t *testing.T) {
	t.Parallel()
	laughs := minimal + "x: &a [" + strings.Repeat("l,", 10) + "]\n"
	for name := 'b'; name < 'k'; name++ {
		laughs += string(name) + ": &" + string(name) + " [" + strings.Repeat("*"+string(name-1)+",", 10) + "]\n"
	}
	many := minimal
	for range 300 {
		many += "  - {name: Bad Name, description: d, inputSchema: {type: object}}\n"
	}
	for name, c := range map[string]struct{ yaml, want string }{
		"too large":      {minimal + "#" + strings.Repeat("x", manifest.MaxBytes), "at most 1048576 are allowed"},
		"too deep":       {"name: " + strings.Repeat("[", 100) + strings.Repeat("]", 100), "nest deeper than 64"},
		"far too deep":   {"name: " + strings.Repeat("[", 20_000), "YAML syntax: "},
		"billion laughs": {laughs, "anchors and aliases are not allowed"},
		"many problems":  {many, "more"},
		"too many tools": {many, "tools: lists 301; at most 256 are allowed"},
		"long schema": {strings.Replace(minimal, "{type: object}", "{type: object, title: '"+strings.Repeat("x",
			257<<10)+"'}", 1), "at most 262144 are allowed"},
		"many subschemas": {strings.Replace(minimal, "{type: object}", "{type: object, allOf: ["+strings.Repeat("{},",
			3000)+"]}", 1), "has more than 2000 subschemas"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := manifest.Parse([]byte(c.yaml)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := manifest.Parse([]byte(weather)); err != nil {
			b.Fatal(err)
		}
	}
}
