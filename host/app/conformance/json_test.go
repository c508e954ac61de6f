package conformance

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/pdk/abi"
)

// deep is JSON that a parser may refuse, by a limit of its own.
var deep = strings.Repeat("[", 1000) + strings.Repeat("]", 1000)

// jsonTexts are texts about which parsers of JSON differ (RFC 8259), and all that one changed or missing character
// makes of some documents.
func jsonTexts() []string {
	texts := []string{
		"", " ", "\x00", "\ufeff1", "nul", "nulll", "NULL", "True", "undefined", "'a'", "// c\n1", "1 2", "1,", ",1",
		"]", "}",
		"NaN", "nan", "Infinity", "-Infinity", "inf", "-inf", "infinity", "0x10", "-0x1p3", "0b1", "1_000", "1f",
		"1.5d",
		"0", "-0", "00", "01", "-01", "1.", ".5", "-.5", "-", "+1", "--1", "1e", "1e+", "1E-0", "1e5", "0e1",
		"1.0e+10", "1e999", "1.e1",
		"\x0b1", "\f1", "\u00a01", "1\x00", "\t\r\n 1 \t\r\n", "12345678901234567890123",
		`"a`, `a"`, `"\x41"`, `"\'"`, `"\u12"`, `"\u+123"`, `"\u123g"`, `"\U0041"`, `"\0"`, `"\`, `"\"`, `"\\"`,
		`"\ud83d\ude00"`, `"\ud83d"`,
		`"\ud83d\u12"`, `"\"\\\/\b\f\n\r\t\u0000"`, "\"\x00\"", "\"\x01\"", "\"\t\"", "\"a\nb\"", "\"\x1f\"",
		"\"\x7f\"", "\"\u2028\"",
		"\"\\\n\"", "{\"a\tb\":1}", "[]", "{}", "[1,]", "[,1]", "[,]", "[1,,2]", "[1 2]", "[1}", "[", "[1", "[1,",
		`["a"`, "[]]", "[[]",
		`{"a"}`, `{"a":}`, `{"a":1,}`, `{,"a":1}`, `{"a" 1}`, `{"a"::1}`, `{a:1}`, `{'a':1}`, `{1:1}`, `{"a":1]`,
		`{"a":1`, `{"a":`, `{"a"`, `{`,
		`{"a":1 "b":2}`, `{"a":1,"a":2}`, `{"":""}`, `[true,false,null]`, `[truefalse]`, `[1"a"]`, `["a""b"]`,
		`{"a":1{}`, `"a"b`, `[]a`,
		strings.Repeat("[", 500) + strings.Repeat("]", 500), deep,
		strings.Repeat("[", 1e5) + strings.Repeat("]", 1e5), strings.Repeat(`{"a":`, 2e3),
	}
	for _, document := range []string{` [ -0.5e+3 , true,null,{"a":false} ] `, `{"k\u00e9\n":["v",{}],"n":120}`} {
		for i := range len(document) {
			texts = append(texts, document[:i], document[:i]+document[i+1:])
			for _, c := range "01-+.eExnN\"'\\/{}[],: \n\v\x00\x01é" {
				texts = append(texts, document[:i]+string(c)+document[i:], document[:i]+string(c)+document[i+1:])
			}
		}
	}
	return texts
}

// TestJSON: the parsers of the PDKs for C and AssemblyScript, which are hako's own, take what RFC 8259 calls JSON and
// nothing else. For C they also run natively with the sanitizers, where hako_test_call gets memory of an earlier call.
func TestJSON(t *testing.T) {
	t.Parallel()
	texts := jsonTexts()
	arguments, err := json.Marshal(map[string]any{"texts": texts})
	if err != nil {
		t.Fatal(err)
	}
	compare := func(t *testing.T, got string) {
		t.Helper()
		if len(got) != len(texts) {
			t.Fatalf("%d answers for %d texts: %s", len(got), len(texts), short(got))
		}
		for i, text := range texts {
			if want := json.Valid([]byte(text)); text != deep && want != (got[i] == '1') {
				t.Errorf("%s: JSON is %v, want %v", short(text), !want, want)
			}
		}
	}
	languages := strings.Fields(os.Getenv("TEST_TOOLCHAINS"))
	for language, source := range map[string]string{"c": "plugin.c", "assemblyscript": "plugin.ts"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			if !slices.Contains(languages, language) {
				return // the toolchain may be missing
			}
			dir := t.TempDir()
			guest := filepath.Join("testdata", "json"+filepath.Ext(source))
			scaffold(t, dir, "json", language, map[string]string{guest: source})
			wasm := compile(t, dir, "json", language)
			// The interpreter has the smaller stack, 2,000 calls.
			engine, err := sandbox.New(&sandbox.Options{CacheDir: t.TempDir(), Interpret: true})
			if err != nil {
				t.Fatal(err)
			}
			defer engine.Close()
			plugin := engine.Load(sandbox.Spec{Name: "json", Wasm: func() ([]byte, error) { return wasm, nil },
				Limits: manifest.Limits{Time: time.Hour, Input: 8 << 20, Output: 8 << 20}})
			defer plugin.Close()
			response, err := plugin.Call(t.Context(), &catalog.Invocation{
				Request: &abi.Request{Method: abi.CallTool, Name: "json", Arguments: arguments}})
			if err != nil {
				t.Fatal(err)
			}
			if len(response.Content) != 1 || response.IsError {
				t.Fatalf("%+v", response)
			}
			compare(t, textOf(response.Content[0]))
		})
	}
	t.Run("c, natively", func(t *testing.T) {
		t.Parallel()
		if !slices.Contains(languages, "c") {
			return // the toolchain may be missing
		}
		program := filepath.Join(t.TempDir(), "json")
		compiler := exec.CommandContext(t.Context(), testprogram.Find(t, "gcc"), "-std=c11", "-Wall", "-Wextra", "-g",
			"-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I../../../pdk/c",
			"-o", program, "testdata/json.c")
		if output, err := compiler.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		native := exec.CommandContext(t.Context(), program)
		native.Env = append(os.Environ(), "ASAN_OPTIONS=detect_leaks=0") // the memory of the last call
		native.Stdin = strings.NewReader(`{"method":"tools/call","name":"json","arguments":` + string(arguments) + `}`)
		output, err := native.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%.3000s", err, output)
		}
		compare(t, strings.TrimSpace(string(output)))
	})
}
