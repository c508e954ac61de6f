package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/hako-run/hako/dev/kit/pdksqltest"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk"
	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/pdktest"
)

const manifestPath = "../../manifests/tasks.yaml"

// shipped is the manifest that the plugin ships with.
var shipped = func() *manifest.Manifest {
	data, err := os.ReadFile(manifestPath)
	if err != nil {
		panic(err)
	}
	m, err := manifest.Parse(data)
	if err != nil {
		panic(err)
	}
	return m
}()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type args map[string]any

// office makes a database in which agt_ann and agt_bob share the project proj_login with the task task_ui, which is in
// progress.
func office(t testing.TB) {
	t.Helper()
	pdksqltest.Database(t, manifestPath)
	call(t, "en", "register_agent", args{"agent_id": "agt_ann", "name": "frontend-dev", "role": "frontend developer",
		"expertise": "React"})
	call(t, "en", "register_agent", args{"agent_id": "agt_bob", "name": "tester", "role": "tester"})
	call(t, "en", "create_project", args{"project_id": "proj_login", "name": "Login"})
	call(t, "en", "create_task", args{"project_id": "proj_login", "task_id": "task_ui", "title": "ログイン画面",
		"description": "UIを実装する",
		"assignee_id": "agt_ann", "status": inProgress})
}

// call calls a tool as the host does: arguments and result must match the schemas of the shipped manifest.
func call(t testing.TB, locale, tool string, in args) *abi.Response {
	t.Helper()
	i := slices.IndexFunc(shipped.Tools, func(x manifest.Tool) bool { return x.Name == tool })
	data, err := json.Marshal(in)
	must(t, err)
	if err := shipped.Tools[i].Input().Validate(data); err != nil {
		t.Fatalf("%s: arguments: %v", tool, err)
	}
	response := pdktest.CallTool(t, tool, in, pdktest.Options{Locale: locale})
	if response.IsError {
		return response
	}
	if err := shipped.Tools[i].Output().Validate(response.StructuredContent); err != nil {
		t.Errorf("%s: result: %v\n%s", tool, err, response.StructuredContent)
	}
	return response
}

// result calls a tool that must succeed and decodes its structured content.
func result[T any](t testing.TB, tool string, in args) (out T) {
	t.Helper()
	response := call(t, "en", tool, in)
	if response.IsError {
		t.Fatalf("%s(%v): %s", tool, in, response.Content[0].Text)
	}
	must(t, json.Unmarshal(response.StructuredContent, &out))
	return out
}

// refused calls a tool that must fail, in both languages, with a text that holds all of the words.
func refused(t testing.TB, tool string, in args, words ...string) {
	t.Helper()
	for _, locale := range []string{"en", "ja-JP"} {
		response := call(t, locale, tool, in)
		if !response.IsError {
			t.Errorf("%s(%v) succeeds with %s", tool, in, response.StructuredContent)
			return
		}
		checkRefusal(t, locale, response.Content[0].Text, words...)
	}
}

func checkRefusal(t testing.TB, locale, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%s: %q lacks %q", locale, text, w)
		}
	}
	if strings.Contains(text, "%!") {
		t.Errorf("%s: %q is badly formatted", locale, text)
	}
	if japanese := strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Hiragana) }); japanese != (locale != "en") {
		t.Errorf("%s: %q is in the other language", locale, text)
	}
}

// serve sends a request that is not a tool's.
func serve(t testing.TB, locale string, request *abi.Request) *abi.Response {
	t.Helper()
	request.Locale = locale
	return pdk.Handle(pdktest.Context(t, pdktest.Options{Locale: locale}), request)
}

// read reads a resource through the template that it matches.
func read(t testing.TB, locale, template, variable, id string) *abi.Response {
	t.Helper()
	return serve(t, locale, &abi.Request{Method: abi.ReadResource, Template: template,
		Variables: map[string]string{variable: id},
		URI:       strings.ReplaceAll(template, "{"+variable+"}", id)})
}

func getPrompt(t testing.TB, locale, name string, arguments map[string]string) *abi.Response {
	t.Helper()
	data, err := json.Marshal(arguments)
	must(t, err)
	return serve(t, locale, &abi.Request{Method: abi.GetPrompt, Name: name, Arguments: data})
}
