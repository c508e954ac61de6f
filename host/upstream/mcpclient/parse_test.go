package mcpclient

import (
	"bufio"
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
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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
		"the design's type, dumped": {
			`{"mcpServers": {"weather": {"name": "weather", "transport": "stdio", "command": "python", "args": [], "env": {}, "url": ""},` +
				`"api": {"name": "api", "transport": "http", "command": "", "args": [], "env": {}, "url": "https://mcp.example.com/mcp"},` +
				`"nulls": {"command": "x", "args": null, "env": null, "url": null, "cwd": null, "headers": null, "timeout": null, "type": null}}}`,
			[]Spec{{Name: "weather", Command: "python", Env: map[string]Value{}},
				{Name: "api", URL: "https://mcp.example.com/mcp", Env: map[string]Value{}}, {Name: "nulls", Command: "x"}},
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
		"an empty command":    {server(`{"command": "", "url": null}`), "command or url is missing"},
		"another name":        {server(`{"name": "b", "command": "x"}`), `name: must be "a"`},
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
			_, err := parse([]byte(test.text), "", "f")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret\"") {
				t.Errorf("the error shows a value: %v", err)
			}
		})
	}
}

// TestPasted: what has a meaning in an entry of another client is used, and the rest is refused by name, without the
// server beside it.
func TestPasted(t *testing.T) {
	t.Parallel()
	const note = "the policy decides which calls need an approval (docs/policy.md)"
	for name, test := range map[string]struct {
		entry string
		want  Spec
		// problem is in Invalid. Empty means that there is none.
		problem string
	}{
		"VS Code": {entry: `{"type": "stdio", "command": "x", "args": ["${input:level}", 8080], "cwd": "~", "env": {"A": "${env:B}"}, "gallery": true}`,
			want: Spec{Command: "x", Args: []string{"info", "8080"}, Dir: "~", Env: map[string]Value{"A": {Text: "${env:B}"}}}},
		"Cline": {entry: `{"command": "x", "autoApprove": ["a"], "alwaysAllow": [], "disabled": false}`,
			want: Spec{Command: "x", Notes: []string{"autoApprove: " + note}}},
		"Claude Code": {entry: `{"type": "streamable-http", "url": "https://a.example/mcp"}`, want: Spec{URL: "https://a.example/mcp"}},
		"Windsurf": {entry: `{"serverUrl": "https://a.example/mcp", "disabledTools": ["b"]}`,
			want: Spec{URL: "https://a.example/mcp", Tools: Filter{Deny: []string{"b"}}}},
		"Gemini": {entry: `{"httpUrl": "https://a.example/mcp", "trust": true, "includeTools": ["a"], "excludeTools": ["b"]}`,
			want: Spec{URL: "https://a.example/mcp", Tools: Filter{[]string{"a"}, []string{"b"}}, Notes: []string{"trust: " + note}}},
		"Copilot": {entry: `{"type": "local", "command": "x", "tools": ["*"]}`, want: Spec{Command: "x", Tools: Filter{Allow: []string{"*"}}}},
		"numbers": {entry: `{"command": "x", "env": {"A": 8080, "B": true, "C": 9007199254740993, "D": null, "E": 1.50}}`,
			want: Spec{Command: "x", Env: map[string]Value{"A": {Text: "8080"}, "B": {Text: "true"},
				"C": {Text: "9007199254740993"}, "E": {Text: "1.50"}}}},
		"comments": {entry: "{ // a \"program\"\n\"command\": \"http://x/*y*/\", /* as\n it is */ \"args\": [\"a\\\"//b\",],\n}",
			want: Spec{Command: "http://x/*y*/", Args: []string{`a"//b`}}},
		"a password":        {entry: `{"command": "x", "env": {"A": "${input:token}"}}`, problem: "env.A: nobody can be asked for ${input:token}: write ${NAME}"},
		"an unknown input":  {entry: `{"url": "https://a.example/${input:x}"}`, problem: "url: nobody can be asked for ${input:x}"},
		"another variable":  {entry: `{"command": "${command:pick}"}`, problem: "${command:pick} has no meaning here"},
		"two addresses":     {entry: `{"url": "https://a.example/", "httpUrl": "https://b.example/"}`, problem: "keep url alone"},
		"a file of secrets": {entry: `{"command": "x", "envFile": ".env"}`, problem: "envFile: is a setting of another client: name the variables in env"},
		"a misspelt key":    {entry: `{"command": "x", "evn": {}}`, problem: `did you mean "env"?`},
		"a name":            {entry: `"x"`, problem: "must be a mapping"},
	} {
		for _, key := range []string{"mcpServers", "servers"} {
			text := `{"inputs": [{"id": "level", "default": "info"}, {"id": "token", "default": "t", "password": true}, 7], "` +
				key + `": {"a": ` + test.entry + `, "beside": {"command": "y"}}} // end`
			got, err := parse([]byte(text), "", "f")
			if err != nil || len(got) != 2 || !reflect.DeepEqual(got[1], Spec{Name: "beside", Command: "y"}) {
				t.Errorf("%s: %s: got %+v, %v", name, key, got, err)
				continue
			}
			if test.want.Name = "a"; test.problem != "" {
				if !strings.Contains(got[0].Invalid, test.problem) {
					t.Errorf("%s: got %q, want %q", name, got[0].Invalid, test.problem)
				}
			} else if !reflect.DeepEqual(got[0], test.want) {
				t.Errorf("%s: got %+v\nwant %+v", name, got[0], test.want)
			}
		}
	}
	const plain = "mcpServers: {a: {url: https://a.example/mcp}}"
	if got := withoutComments([]byte(plain)); string(got) != plain {
		t.Errorf("YAML became %s", got)
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	env := newEnvironment([]string{"A=1", "EMPTY=", "REF=${A}", "HOME=/home/u"})
	env.addDefaults("/dir")
	for text, want := range map[string]string{"~": "/home/u", "~/x": "/home/u/x", "~x": "~x", "a/~": "a/~", "": ""} {
		if got, err := env.path(text); err != nil || got != want {
			t.Errorf("%s became the path %q, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"plain": "plain", "${A}": "1", "x${A}y${A}": "x1y1", "${B:-two}": "two", "${EMPTY}": "",
		"${EMPTY:-three}": "three", "${B:-}": "", "${env:A}": "1", "${env:B:-two}": "two",
		"${workspaceFolder}/x": "/dir/x", "${userHome}": "/home/u",
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

// newReader is a reader of lines or events with open requests.
func newReader(ctx context.Context, source io.Reader, most, free int, events bool, noise func([]byte),
	open ...int64) (io.Reader, *stream) {
	in := inbound{requests: new(requests), noise: noise}
	for _, id := range open {
		in.requests.add(id, &exchange{method: "tools/call"})
	}
	s := newStream(ctx, source, most, rate.NewLimiter(0, free), new(meter), in)
	if events {
		e := &eventReader{stream: s}
		return e, &e.stream
	}
	l := &lineReader{s}
	return l, &l.stream
}

// filter passes a stream through a reader.
func filter(text string, most int, events bool, open ...int64) (out string, noise []string) {
	r, s := newReader(context.Background(), nil, most, 1<<20, events,
		func(line []byte) { noise = append(noise, string(line)) }, open...)
	s.source = bufio.NewReaderSize(strings.NewReader(text), 16)
	data, _ := io.ReadAll(r)
	return string(data), noise
}

func TestStreams(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("z", 200)
	refused := string(refusal(7, codeTooLarge, refusalText[codeTooLarge]))
	ping := `{"jsonrpc":"2.0","method":"ping","id":1}`
	note := `{"jsonrpc":"2.0","method":"note"}`
	for name, test := range map[string]struct {
		in, out, noise string
		events         bool
	}{
		"messages":       {in: ping + "\n" + note + "\r\n", out: ping + "\n" + note + "\n"},
		"no messages":    {in: "hello\n\n{broken\n[1]\n" + ping + "\n", out: ping + "\n", noise: "hello|{broken|[1]"},
		"batch":          {in: "[" + ping + ", " + note + ",7]\n", out: ping + "\n" + note + "\n", noise: "7"},
		"several":        {in: ping + note + "end\n", out: ping + "\n" + note + "\n", noise: "end"},
		"without an end": {in: ping, out: ping + "\n"},
		"too large, known": {in: `{"jsonrpc":"2.0","id":7,"result":{"x":"` + big + "\"}}\n" + ping + "\n",
			out: refused + "\n" + ping + "\n"},
		"too large, of unknown id": {in: `{"result":{"x":"` + big + "\"},\"id\":7}\n" + ping + "\n", out: ping + "\n",
			noise: `{"result":`},
		"too large, no response": {in: `{"method":"x` + big + "\",\"id\":7}\n" + ping + "\n", out: ping + "\n",
			noise: `{"method":`},
		"events": {in: "\ufeffevent: message\nid: 3\ndata: " + note + "\n\n: ping\n",
			out: "id: 3\ndata: " + note + "\n\n", events: true},
		"an event in parts": {in: "data: {\"jsonrpc\":\ndata:\"2.0\",\ndata: \"method\":\"x\"}\n\n",
			out: "data: {\"jsonrpc\": \"2.0\",  \"method\":\"x\"}\n\n", events: true},
		"carriage returns": {in: "data: " + note + "\r\rdata:" + note + "\r\n\r\n",
			out: "data: " + note + "\n\ndata: " + note + "\n\n", events: true},
		"only an id": {in: "id: 4\nretry: 9\ndata:\n\n", out: "id: 4\nretry: 9\n\n", events: true},
		"another event, and no field": {in: "event: ping\ndata: x\n\nwhat\ndata: " + note + "\n\n",
			out: "data: " + note + "\n\n", events: true},
		"an event without an end": {in: "data: " + note, out: "data: " + note + "\n\n", events: true},
		"a batch in an event": {in: "data: [" + ping + "," + note + "]\n\n",
			out: "data: " + ping + "\n\ndata: " + note + "\n\n", events: true},
		"a large event": {in: `data: {"jsonrpc":"2.0","id":7,"result":"` + big + "\"}\n\n",
			out: "data: " + refused + "\n\n", events: true},
		"a large line of another": {in: ":" + big + "\ndata: " + note + "\n\n", out: "data: " + note + "\n\n",
			events: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, noise := filter(test.in, 100, test.events, 7, 8)
			logged := strings.Join(noise, "|")
			if out != test.out || !strings.HasPrefix(logged, test.noise) || test.noise == "" && logged != "" {
				t.Errorf("got %q and %q, want %q and %q", out, noise, test.out, test.noise)
			}
		})
	}
}

// TestResponses: what a server sends in the place of a response becomes the response to that request, which says what
// was wrong. Nothing else does.
func TestResponses(t *testing.T) {
	t.Parallel()
	const good = `{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`
	for name, test := range map[string]struct {
		in string
		// want is in the message of the error. Empty means that there is no error, and none that nothing passes.
		want string
		// alone reports whether no other request is open.
		alone bool
	}{
		"good":                       {in: good},
		"id as text":                 {in: strings.Replace(good, "7", `"7"`, 1)},
		"id with a fraction":         {in: strings.Replace(good, "7", "7.0", 1)},
		"after a byte order mark":    {in: "\ufeff" + good},
		"in color":                   {in: "\x1b[2K\x1b[32m" + good + "\x1b[0m"},
		"after text":                 {in: "Starting ... " + good},
		"after text with a brace":    {in: "{starting} " + good},
		"after a log record":         {in: `{"level":30,"msg":"x"} ` + good},
		"result and null":            {in: good[:len(good)-1] + `,"error":null}`},
		"not a number":               {in: `{"jsonrpc":"2.0","id":7,"result":{"structuredContent":{"m":NaN}}}`, want: "invalid character 'N'"},
		"not a number, id last":      {in: `{"result":{"structuredContent":{"m":NaN}},"jsonrpc":"2.0","id":7}`, want: "not valid JSON"},
		"not a number, after text":   {in: `INFO {"jsonrpc":"2.0","id":7,"result":NaN}`, want: "not valid JSON"},
		"raw control character":      {in: "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"text\":\"a\x1bb\"}}", want: `a\u001bb`},
		"cut off":                    {in: `{"jsonrpc":"2.0","id":7,"result":{"content":[`, want: "it ends early"},
		"cut off in the id":          {in: `{"jsonrpc":"2.0","id":7`, want: "none"},
		"without jsonrpc":            {in: `{"id":7,"result":{}}`, want: `"jsonrpc": "2.0"`},
		"other version":              {in: `{"jsonrpc":"1.0","id":7,"result":{}}`, want: `"jsonrpc": "2.0"`},
		"a log record with an id":    {in: `{"level":50,"id":7,"error":"x"}`, want: "none"},
		"a log record in jsonrpc":    {in: `{"jsonrpc":"2.0","msg":"x"}`, want: "none"},
		"neither result nor error":   {in: `{"jsonrpc":"2.0","id":7}`, want: "neither a result nor an error"},
		"an error as text":           {in: `{"jsonrpc":"2.0","id":7,"error":"plain text"}`, want: `"plain text"`},
		"an error without a message": {in: `{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":null}}`, want: `"message":null`},
		"an error's code as text":    {in: `{"jsonrpc":"2.0","id":7,"error":{"code":"E1","message":"m"}}`, want: `"E1"`},
		"result as text":             {in: `{"jsonrpc":"2.0","id":7,"result":"done"}`, want: `a text, not an object: "done"`},
		"content as text":            {in: `{"jsonrpc":"2.0","id":7,"result":{"content":"plain"}}`, want: `its content is a text, not a list of blocks: "plain"`},
		"unknown content": {in: `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a"},{"type":"video"}]}}`,
			want: `content[1] has the type "video", not one of`},
		"content without a type": {in: `{"jsonrpc":"2.0","id":7,"result":{"content":[{"text":"a"}]}}`, want: "content[0] has no type"},
		"content as strings":     {in: `{"jsonrpc":"2.0","id":7,"result":{"content":["a"]}}`, want: `content[0] is a text, not an object: "a"`},
		"text as a number":       {in: `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":42}]}}`, want: "content[0] has a number as its text"},
		"null text":              {in: `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":null}]}}`},
		"one block":              {in: `{"jsonrpc":"2.0","id":7,"result":{"content":{"type":"text","text":"a"}}}`},
		"duplicate key":          {in: `{"jsonrpc":"2.0","id":7,"result":{"a":1,"a":2}}`, want: "duplicate key"},
		"too deep":               {in: `{"jsonrpc":"2.0","id":7,"result":{"a":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}}`, want: "cannot be decoded"},
		"deeper":                 {in: `{"jsonrpc":"2.0","id":7,"result":{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}}`, want: "not valid JSON"},
		"an error for null":      {in: `{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"boom"}}`, want: "=boom", alone: true},
		"for null of two":        {in: `{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"boom"}}`, want: "none"},
		"an error of no request": {in: `{"jsonrpc":"2.0","id":"server-error","error":{"code":-1,"message":"boom"}}`, want: "=boom", alone: true},
		"a result without an id": {in: `{"jsonrpc":"2.0","result":{}}`, want: "does not have the id 7", alone: true},
		"another id":             {in: `{"jsonrpc":"2.0","id":99,"result":{}}`, want: "does not have the id 7", alone: true},
		"another id of two":      {in: `{"jsonrpc":"2.0","id":99,"result":{}}`, want: "none"},
		"an earlier id":          {in: `{"jsonrpc":"2.0","id":3,"result":{}}`, want: "none", alone: true},
		"the copy of a request":  {in: `got {"jsonrpc":"2.0","id":7,"method":"tools/call"}`, want: "none"},
		"a request of a server with a duplicate key": {in: `{"jsonrpc":"2.0","id":7,"method":"ping","method":"ping"}`, want: "none", alone: true},
		"a broken notification":                      {in: `{"jsonrpc":"2.0","method":"x","params":NaN}`, want: "none", alone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, events := range []bool{false, true} {
				begin, open := "", []int64{7, 8}
				if events {
					begin = "data: "
				}
				if test.alone {
					open = open[:1]
				}
				out, _ := filter(begin+test.in+"\n\n", 1<<20, events, open...)
				out = strings.TrimPrefix(out, begin)
				if test.want == "none" {
					if out != "" {
						t.Errorf("events %t: got %q", events, out)
					}
					continue
				}
				message, err := jsonrpc.DecodeMessage([]byte(out))
				response, ok := message.(*jsonrpc.Response)
				if err != nil || !ok || response.ID.Raw() != int64(7) {
					t.Errorf("events %t: got %q, %v", events, out, err)
				} else if (response.Error != nil) != (test.want != "") ||
					test.want != "" && !strings.Contains("="+response.Error.Error(), test.want) {
					t.Errorf("events %t: got %v, want %q", events, response.Error, test.want)
				}
				if len(out) > 2000 {
					t.Errorf("%d bytes", len(out))
				}
			}
		})
	}
}

// TestOddResponses: a response that belongs to no request is in the error of the call that waited in vain, unless it
// came before it or is the late one of an earlier request.
func TestOddResponses(t *testing.T) {
	t.Parallel()
	in := inbound{requests: new(requests), noise: func([]byte) {}}
	odd := []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"boom"}}`)
	in.read(odd)
	in.requests.add(1, &exchange{method: "tools/call"})()
	in.requests.add(2, &exchange{method: "tools/call"})
	in.requests.add(3, &exchange{method: "tools/call"})
	in.read([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	if got := in.requests.takeOdd(); got != "" {
		t.Errorf("got %q", got)
	}
	in.read(odd)
	late := newLimitError("s", "time", "1s")
	late.odd = in.requests.takeOdd()
	if got := late.Error(); !strings.HasSuffix(got, "belongs to no request: "+string(odd)) || in.requests.takeOdd() != "" {
		t.Errorf("got %q", got)
	}
}

// FuzzStreams: whatever a server writes, the SDK can decode all that passes, each request gets at most one response, and
// the errors are bounded.
func FuzzStreams(f *testing.F) {
	for _, seed := range []string{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n", "data: {}\n", "[{},{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":1,\"message\":\"\"}}]",
		"{\"id\":7,\"jsonrpc\":\"2.0\",\"result\":\"" + strings.Repeat("x", 300) + "\"}\n", "{\"jsonrpc\":\"2.0\",\"id\":\"a\\ud800\",\"error\":1",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"structuredContent\":1e999,\"content\":[{\"type\":\"text\"}]}}\v\n", "id: 1\r\rdata: x\r\n\ndata:\n",
		"{\"jsonrpc\":\"2.0\",\"id\":1e999,\"method\":7}{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":NaN}"} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, events bool) {
		const most = 256
		out, _ := filter(string(data), most, events, 7, 8)
		answered := map[any]bool{}
		for line := range strings.Lines(out) {
			line = strings.TrimSuffix(line, "\n")
			if len(line) > most+headLength {
				t.Fatalf("a line of %d bytes", len(line))
			}
			if events {
				var ok bool
				if line, ok = strings.CutPrefix(line, "data: "); !ok {
					continue
				}
			}
			message, err := jsonrpc.DecodeMessage([]byte(line))
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if response, ok := message.(*jsonrpc.Response); ok {
				if id := response.ID.Raw(); answered[id] || id != int64(7) && id != int64(8) {
					t.Fatalf("response %v", id)
				}
				answered[response.ID.Raw()] = true
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
		m := *newOffer(&spec, l, nil).manifest
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
		specs, err := parse(data, "", "f")
		if err != nil {
			return
		}
		for _, s := range specs {
			if err := s.Check(); err != nil && s.Invalid == "" {
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
		"lines of one event":      {"data: x\n", true, errEndless, 80 << 20},
		"carriage returns for it": {"data: x\r", true, errEndless, 80 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := &endless{text: test.text}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // longer than which the limiter refuses to wait
			defer cancel()
			l, s := newReader(ctx, source, most, free, test.events, func([]byte) {}, 1)
			if _, err := io.Copy(io.Discard, l); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if source.read > test.bytes || cap(s.buffer) > 4*most {
				t.Errorf("%d bytes were read, and the buffer has %d", source.read, cap(s.buffer))
			}
		})
	}
	t.Run("an event in many lines", func(t *testing.T) {
		t.Parallel()
		text := "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[{}\n" + strings.Repeat("data: ,{},{},{},{},{},{},{},{}\n",
			20_000) + "data: ]}}\n\n"
		out, _ := filter(text, most, true, 1)
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
