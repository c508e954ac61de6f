package mcpclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/schema"
	"github.com/hako-run/hako/host/secret"
)

// TestReadFile: the form of the design, that of MCP clients, and all keys.
func TestReadFile(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want []Spec
	}{
		"the design's": {
			`{"mcpServers": {"weather": {"transport": "stdio", "command": "python", "args": ["mcp-servers/weather/server.py"], "env": {}}}}`,
			[]Spec{{Name: "weather", Command: "python", Args: []string{"mcp-servers/weather/server.py"},
				Env: map[string]Value{}}},
		},
		"other programs' keys": {
			`{"globalShortcut": "", "mcpServers": {"fs": {"command": "npx", "args": ["-y", ""], "env": {"A": "${B}"}}}}`,
			[]Spec{{Name: "fs", Command: "npx", Args: []string{"-y", ""}, Env: map[string]Value{"A": {Text: "${B}"}}}},
		},
		"over HTTP, in YAML": {
			"mcpServers:\n  api:\n    type: http\n    url: https://mcp.example.com/mcp\n    headers:\n      Authorization: {file: token}\n      X-A: {command: [pass, show]}\n" +
				"    prefix: a_\n    timeout: 5\n    limits: {output: 1MiB, rate: 60}\n    tools: {allow: [get_*], deny: [get_all]}\n    tls: {ca: ca.pem}\n" +
				"    startTimeout: 2m\n    protocolVersion: 2025-11-25\n    trustAnnotations: true\n    enabled: false\n    description: words\n",
			[]Spec{{
				Name: "api", URL: "https://mcp.example.com/mcp", Prefix: "a_",
				Headers: map[string]Value{"Authorization": {Secret: secret.Source{File: "/dir/token"}},
					"X-A": {Secret: secret.Source{Command: []string{"pass", "show"}}}},
				Limits: manifest.Limits{Time: 5 * time.Second, Output: 1 << 20, Rate: 60},
				Tools:  Filter{[]string{"get_*"}, []string{"get_all"}},
				TLS:    TLS{CA: "ca.pem"}, StartTimeout: 2 * time.Minute, ProtocolVersion: "2025-11-25",
				TrustAnnotations: true, Disabled: true,
			}},
		},
		"none": {`{"mcpServers": {}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "mcp_servers.json")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := ReadFile(path, "/dir")
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, %v\nwant %+v", got, err, test.want)
			}
		})
	}
}

// TestParseErrors: each names the place, the rule and what was probably meant.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	server := func(entry string) string { return `{"mcpServers": {"a": ` + entry + `}}` }
	for name, test := range map[string]struct{ text, want string }{
		"no servers":          {`{"mcpServer": {}}`, `is "mcpServer" a misspelling of it?`},
		"nothing":             {`{}`, `mcpServers is missing`},
		"a list":              {`[]`, "1:1"},
		"a key":               {server(`{"command": "x", "evn": {}}`), `unknown key "evn": did you mean "env"?`},
		"twice":               {`{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}`, `"a"`},
		"neither":             {server(`{}`), "command or url is missing"},
		"both":                {server(`{"command": "x", "url": "https://a.example/"}`), "exclude each other"},
		"name":                {`{"mcpServers": {"a b": {"command": "x"}}}`, "the name of a server must be"},
		"prefix":              {server(`{"command": "x", "prefix": "a.b"}`), "prefix must be"},
		"transport":           {server(`{"command": "x", "transport": "studio"}`), `did you mean "stdio"?`},
		"other transport":     {server(`{"command": "x", "transport": "http"}`), "transport http needs a url"},
		"sse":                 {server(`{"url": "https://a.example/sse", "type": "sse"}`), "streamable HTTP address"},
		"address":             {server(`{"url": "ftp://a.example/"}`), "url is not an http or https URL"},
		"password in address": {server(`{"url": "https://u:p@a.example/"}`), "use headers"},
		"headers in the open": {server(`{"url": "http://a.example/", "headers": {"X-Key": "secret"}}`), "use https"},
		"header": {server(`{"url": "https://a.example/", "headers": {"a b": "x"}}`),
			`"a b" is not a header name`},
		"env of a url":       {server(`{"url": "https://a.example/", "env": {"A": "b"}}`), "are for a command"},
		"headers of command": {server(`{"command": "x", "headers": {"A": "b"}}`), "are for a url"},
		"variable":           {server(`{"command": "x", "env": {"A=B": "b"}}`), "not the name of a variable"},
		"secret": {server(`{"command": "x", "env": {"A": {"file": "a", "env": "b"}}}`),
			"must be a text, or say where a secret is"},
		"pattern": {server(`{"command": "x", "tools": {"allow": ["[a"]}}`), `"[a" is not a pattern`},
		"version": {server(`{"command": "x", "protocolVersion": "latest"}`), "protocolVersion must be"},
		"client certificate": {server(`{"url": "https://a.example/", "tls": {"cert": "x"}}`),
			"cert and key go together"},
		"equal schemes": {`{"mcpServers": {"a-b": {"command": "x"}, "a_b": {"command": "x"}}}`,
			"differ too little"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parse([]byte(test.text), "")
			if err == nil || !strings.Contains(located(err, "f").Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret\"") {
				t.Errorf("the error shows a value: %v", err)
			}
		})
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	env := newEnvironment([]string{"A=1", "EMPTY=", "REF=${A}"})
	for text, want := range map[string]string{
		"plain": "plain", "${A}": "1", "x${A}y${A}": "x1y1", "${B:-two}": "two", "${EMPTY}": "",
		"${EMPTY:-three}": "three", "${B:-}": "",
		"${REF}": "${A}", "$A": "$A", "${}": "${}",
	} {
		if got, err := env.expand(text); err != nil || got != want {
			t.Errorf("%s became %q, %v; want %q", text, got, err, want)
		}
	}
	if _, err := env.expand("${NOT_THERE}"); err == nil || !strings.Contains(err.Error(), "NOT_THERE is not set") {
		t.Errorf("got %v", err)
	}
}

func TestSafeNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 70)
	got := safeNames([]string{"b", "a.b", "a_b", "ツール", "道具箱", long, long + "y", "c d", "", "b"}, 58)
	want := map[string]string{
		"b": "b", "a_b": "a_b", "a.b": digested("a.b", 58), "ツール": digested("ツール", 58), "道具箱": digested("道具箱", 58),
		"c d": "c_d", long: digested(long, 58), long + "y": digested(long+"y", 58),
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	for _, name := range got {
		if len(name) > 58 {
			t.Errorf("%s is too long", name)
		}
	}
}

// filter passes a stream through lines.
func filter(text string, most int, events bool) (out string, noise []string) {
	l := newLines(context.Background(), strings.NewReader(text), most, rate.NewLimiter(rate.Inf, 1), new(meter),
		new(atomic.Int64), func(line []byte) { noise = append(noise, string(line)) }, events)
	l.source = bufio.NewReaderSize(strings.NewReader(text), 16)
	data, _ := io.ReadAll(l)
	return string(data), noise
}

func TestLines(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("z", 200)
	refused := string(refusal(json.RawMessage("7"), codeTooLarge))
	for name, test := range map[string]struct {
		in, out, noise string
		events         bool
	}{
		"messages": {in: "{\"id\":1}\n{\"id\":2}\n", out: "{\"id\":1}\n{\"id\":2}\n"},
		"no messages": {in: "hello\n\n{broken\n[1]\n{\"id\":1}\n", out: "{\"id\":1}\n",
			noise: "hello|{broken|[1]"},
		"too large, known": {in: `{"jsonrpc":"2.0","id":7,"result":{"x":"` + big + "\"}}\n{\"id\":2}\n",
			out: refused + "{\"id\":2}\n"},
		"too large, unknown": {in: `{"result":{"x":"` + big + "\"},\"id\":7}\n{\"id\":2}\n", out: "{\"id\":2}\n"},
		"without an end":     {in: `{"id":1}`, out: `{"id":1}`},
		"events": {in: "event: message\ndata: {\"id\":1}\n\n: ping\n",
			out: "event: message\ndata: {\"id\":1}\n\n: ping\n", events: true},
		"an event in parts": {in: "data: {\ndata: \"id\":1}\n\n", out: "data: {\ndata: \"id\":1}\n\n",
			events: true},
		"a large event": {in: `data: {"id":7,"result":"` + big + "\"}\n\n", out: "data:" + refused + "\n",
			events: true},
		"a large line of another": {in: ":" + big + "\ndata: {\"id\":1}\n", out: "data: {\"id\":1}\n", events: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, noise := filter(test.in, 100, test.events)
			if out != test.out || strings.Join(noise, "|") != test.noise {
				t.Errorf("got %q and %q, want %q and %q", out, noise, test.out, test.noise)
			}
		})
	}
}

// FuzzLines: whatever a server writes, what comes out is bounded, and over stdio each line is JSON.
func FuzzLines(f *testing.F) {
	for _, seed := range []string{"{\"id\":1}\n", "data: {}\n", "{\"id\":1,\"result\":\"" + strings.Repeat("x", 300) + "\"}\n", "{\"id\":\"a\\ud800\",\"error\":1",
		"{\"id\":1}\v\n"} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, events bool) {
		const most = 256
		out, _ := filter(string(data), most, events)
		for line := range bytes.Lines([]byte(out)) {
			if len(line) > most+headLength {
				t.Fatalf("a line of %d bytes", len(line))
			}
			if !events && !json.Valid(line) {
				t.Fatalf("no JSON: %q", line)
			}
		}
	})
}

// FuzzOffer: whatever a server lists, what is offered of it is good, and its names are unique and short enough.
func FuzzOffer(f *testing.F) {
	f.Add([]byte(`[{"name":"a.b","inputSchema":{"type":"object"}},{"name":"a_b","inputSchema":{}}]`),
		[]byte(`[{"name":"p","arguments":[{"name":"x y"}]}]`), []byte(`[{"uri":"a://b"}]`))
	f.Fuzz(func(t *testing.T, tools, prompts, resources []byte) {
		l := new(listing)
		_ = json.Unmarshal(tools, &l.tools) // as far as they go
		_ = json.Unmarshal(prompts, &l.prompts)
		_ = json.Unmarshal(resources, &l.resources)
		_ = json.Unmarshal(resources, &l.templates)
		l.tools = slices.DeleteFunc(l.tools, func(t *mcp.Tool) bool { return t == nil })
		l.prompts = slices.DeleteFunc(l.prompts, func(p *mcp.Prompt) bool { return p == nil })
		l.resources = slices.DeleteFunc(l.resources, func(r *mcp.Resource) bool { return r == nil })
		l.templates = slices.DeleteFunc(l.templates, func(r *mcp.ResourceTemplate) bool { return r == nil })
		spec := Spec{Name: "s"}
		m := *newOffer(&spec, l).manifest
		if len(m.Tools)+len(m.Prompts)+len(m.Resources)+len(m.ResourceTemplates) == 0 {
			return
		}
		m.Name, m.Version = "s", "1.0.0"
		if err := m.Validate(); err != nil {
			t.Error(err)
		}
		for _, tool := range m.Tools {
			if len(spec.prefix()+tool.Name) > maxName {
				t.Errorf("%s is too long", tool.Name)
			}
		}
	})
}

// FuzzParse: no file makes the reader panic, and what it takes is good.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"mcpServers": {"a": {"command": "x", "env": {"A": {"file": "b"}}, "tools": {"allow": ["[a"]}}}}`))
	f.Add([]byte("mcpServers:\n  a: {url: 'https://a.example/${B}', timeout: 5}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		specs, err := parse(data, "")
		if err != nil {
			return
		}
		for _, s := range specs {
			if err := s.Check(); err != nil {
				t.Errorf("%+v: %v", s, err)
			}
		}
	})
}

// TestExact: numbers in structured content stay as the server wrote them.
func TestExact(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		`{"id":9007199254740993,"x":1.0}`: `{"id":9007199254740993,"x":1.0}`, `"text"`: `"text"`,
		`[1, "a\"b"]`: `[1, "a\"b"]`, "7": "7", "null": "",
	} {
		answer := exact([]byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"structuredContent"}],"structuredContent": ` + content + ` }}`))
		var read struct {
			Result struct{ StructuredContent any }
		}
		if err := json.Unmarshal(answer, &read); err != nil {
			t.Fatalf("%s became %s: %v", content, answer, err)
		}
		if got, err := unquoted(read.Result.StructuredContent); err != nil || string(got) != want {
			t.Errorf("%s became %s, %v", content, got, err)
		}
	}
	for _, other := range []string{`{"id":1,"result":{}}`, `{"id":1,"structuredContent":1}`, `structuredContent`, `{"result":["structuredContent"]}`} {
		if got := exact([]byte(other)); string(got) != other {
			t.Errorf("%s became %s", other, got)
		}
	}
}

// TestExactSchemas: numbers in the schemas of tools stay as the server wrote them.
func TestExactSchemas(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"properties":{"id":{"enum":[9007199254740993, -9223372036854775808]}}}`: `{"properties":{"id":{"enum":[9007199254740993,-9223372036854775808]}},"type":"object"}`,
		`{"maxProperties":3,"default":{"a":[0.1,1e400,12345678901234567890.5]}}`:  `{"default":{"a":[0.1,1e400,12345678901234567890.5]},"maxProperties":3,"type":"object"}`,
		`{"default":"hako.run/number:1x"}`:                                        `{"default":"hako.run/number:1x","type":"object"}`,
	} {
		for _, member := range []string{"inputSchema", "outputSchema"} {
			answer := exact([]byte(`{"jsonrpc":"2.0","id":9007199254740993,"result":{"ttl":9007199254740993,"tools":[{"name":"a"},{"name":"b","` +
				member + `":` + text + `,"size":9007199254740993}]}}`))
			var read struct {
				ID     int64
				Result struct{ Tools []map[string]any }
			}
			if err := json.Unmarshal(answer, &read); err != nil || read.ID != 9007199254740993 {
				t.Fatalf("%s: %v", answer, err)
			}
			if got, _, err := schemaJSON(read.Result.Tools[1][member]); err != nil || string(got) != want {
				t.Errorf("%s became %s, %v", text, got, err)
			}
			if _, number := read.Result.Tools[1]["size"].(float64); !number {
				t.Errorf("another member became %v", read.Result.Tools[1]["size"])
			}
		}
	}
	for _, other := range []string{`{"result":{"tools":[{"inputSchema":{"a":`, `{"result":{"tools":7,"inputSchema":12345678901234567}}`,
		`["inputSchema"]`, ``} {
		if got := exact([]byte(other)); string(got) != other {
			t.Errorf("%s became %s", other, got)
		}
	}
}

// TestRepairedSchemas: a keyword that hako does not take does not cost the tool.
func TestRepairedSchemas(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ schema, dropped string }{
		`{"properties":{"a":{"items":[{"type":"string"}],"additionalItems":false}}}`: {`{"properties":{"a":{"items":false,"prefixItems":[{"type":"string"}]}},"type":"object"}`, ""},
		`{"properties":{"a":{"pattern":"^(?!x).*$"},"b":{"pattern":"^b$"}}}`:         {`{"properties":{"a":{},"b":{"pattern":"^b$"}},"type":"object"}`, "pattern"},
		`{"properties":{"a":{"type":"string","required":false}}}`:                    {`{"properties":{"a":{"type":"string"}},"type":"object"}`, "required"},
		`{"properties":{"a":{"description":null,"default":null,"items":null}}}`:      {`{"properties":{"a":{"default":null}},"type":"object"}`, ""},
		`{"properties":{"a":{}},"required":["a","b"]}`:                               {`{"properties":{"a":{}},"required":["a"],"type":"object"}`, "required"},
		`{"properties":null,"required":null,"additionalProperties":null}`:            {`{"type":"object"}`, ""},
	} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		got, dropped, err := schemaJSON(value)
		if err != nil || string(got) != want.schema || strings.Join(dropped, ",") != want.dropped {
			t.Errorf("%s became %s without %v, %v", text, got, dropped, err)
		}
		if _, err := schema.Compile(got); err != nil {
			t.Errorf("%s: %v", got, err)
		}
	}
}

// endless repeats a text for ever.
type endless struct {
	text string
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[(e.read+i)%len(e.text)]
	}
	e.read += len(p)
	return len(p), nil
}

// TestHostileStreams: what a server sends without end costs it time, or the connection.
func TestHostileStreams(t *testing.T) {
	t.Parallel()
	const most, free = 1 << 20, 50
	for name, test := range map[string]struct {
		text   string
		events bool
		want   error
		bytes  int // that may be read of it
	}{
		"notifications":           {`{"method":"a"}` + "\n", false, nil, 64 << 10},
		"answers to nothing":      {`{"id":1,"result":{}}` + "\n", false, nil, 64 << 10},
		"empty lines":             {"\n", false, nil, 64 << 10},
		"noise":                   {"starting ...\n", false, nil, 64 << 10},
		"a line":                  {"x", false, errEndless, 80 << 20},
		"a line of JSON":          {`{"id":[`, false, errEndless, 80 << 20},
		"events":                  {"data: {\"method\":\"a\"}\n\n", true, nil, 64 << 10},
		"comments":                {": wait\n", true, nil, 64 << 10},
		"empty lines of events":   {"\n", true, nil, 64 << 10},
		"names of events":         {"event: message\n", true, nil, 64 << 10},
		"answers in one stream":   {"data: {\"id\":1,\"result\":{}}\n\n", true, nil, 64 << 10},
		"a line of an event":      {"data: x", true, errEndless, 80 << 20},
		"a comment without end":   {":x", true, errEndless, 80 << 20},
		"lines of one event":      {"data: x\n", true, nil, 64 << 10},
		"carriage returns for it": {"data: x\r", true, errEndless, 80 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := &endless{text: test.text}
			owed := new(atomic.Int64)
			owed.Store(1)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // longer than which the limiter refuses to wait
			defer cancel()
			l := newLines(ctx, source, most, rate.NewLimiter(0, free), new(meter), owed, func([]byte) {}, test.events)
			if _, err := io.Copy(io.Discard, l); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if source.read > test.bytes || cap(l.buffer) > 4*most {
				t.Errorf("%d bytes were read, and the buffer has %d", source.read, cap(l.buffer))
			}
		})
	}
	t.Run("an event in many lines", func(t *testing.T) {
		t.Parallel()
		text := "data: {\"id\":1,\"result\":{\"tools\":[{}\n" + strings.Repeat("data: ,{},{},{},{},{},{},{},{}\n",
			20_000) + "data: ]}}\n\n"
		out, _ := filter(text, most, true)
		if n := strings.Count(out, "{}"); n > maxItems+8 {
			t.Errorf("%d entries passed", n)
		}
	})
}

// TestRestartDelays: the time before an attempt grows until the server has been connected for long or was not used.
func TestRestartDelays(t *testing.T) {
	t.Parallel()
	died, long := errors.New("died"), stable+time.Second
	var f failures
	for i, step := range []struct {
		err       error
		connected bool
		took      time.Duration
		longest   time.Duration // of the delay; at least half of it is waited
	}{
		{died, true, 0, firstDelay},
		{died, true, 0, 2 * firstDelay},
		{died, false, long, 4 * firstDelay}, // it took long to find that there is no answer
		{died, true, long, firstDelay},
		{died, false, 0, 2 * firstDelay},
		{errIdle, true, 0, 0},
		{died, true, 0, firstDelay},
	} {
		if got := f.delay(step.err, step.connected, step.took); got > step.longest || got < step.longest/2 {
			t.Errorf("step %d: %v, want %v to %v", i, got, step.longest/2, step.longest)
		}
	}
}
