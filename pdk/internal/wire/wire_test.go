package wire_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/internal/wire"
)

var requests = []string{
	`{"method":"tools/call","name":"greet","arguments":{"name":"Aki"},"config":{"word":"\"}"},"locale":"ja","deadlineMs":30000}`,
	`{"method":"tools/call","name":"gr\u0065et","arguments":{}}`,
	`{"method":"resources/read","uri":"x://7","template":"x://{id}","variables":{"id":"7"},"deadlineMs":1}`,
	`{"method":"completion/complete","ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"}}`,
	` {"method" : "tools/call"}`,
	`{"method":"tools/call","arguments":null,"unknown":[1,{"a":"}"}]}`,
	`{"method":"tools/call","arguments":[1]}`,
	`{"method":"x","deadlineMs":01}`, `{"method":"x","deadlineMs":-1}`, `{"method":"x","method":"y"}`,
	`{}`, `{"method":"x"`, `{"method":"x"}}`, `{"method":"x",}`, `[]`, ``, `{"arguments":{"a":"}`,
	`{"method":"x","arguments":{"a":[{"b":"]"},[1.5e3,true,null]]} ,"locale":"ja"}`, `{"arguments":{"a":[}}`,
	"{\"arguments\":{\"a\":\"\n\"}}", "{\"arguments\":{\"a\": 1,\n\"b\" : [ ] }}",
}

// checkRequest compares Request with encoding/json.
func checkRequest(t *testing.T, data []byte) {
	t.Helper()
	got, err := wire.Request(data)
	want := new(abi.Request)
	wantErr := json.Unmarshal(data, want)
	if wantErr != nil {
		// The content of arguments and config is not validated.
		if err == nil && json.Valid(got.Arguments) == (got.Arguments != nil) &&
			json.Valid(got.Config) == (got.Config != nil) {
			t.Errorf("%q is accepted, but encoding/json says: %v", data, wantErr)
		}
		return
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q\ngives %+v, %v\nwant  %+v", data, got, err, want)
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	for _, data := range requests {
		checkRequest(t, []byte(data))
	}
}

// TestTexts puts quotes, backslashes and the end of the data at every position of a text.
func TestTexts(t *testing.T) {
	t.Parallel()
	for length := range 20 {
		for at := range length + 1 {
			for _, special := range []string{``, `\"`, `\\`, `\\\"`, `"`, `\`, `{`, `}`, "\x80", `!`, `]`, `#`} {
				text := strings.Repeat("a", at) + special + strings.Repeat("b", length-at)
				whole := `{"method":"x","arguments":{"text":"` + text + `"},"locale":"ja"}`
				checkRequest(t, []byte(whole))
				checkRequest(t, []byte(whole[:len(whole)-len(`"},"locale":"ja"}`)])) // ends inside
			}
		}
	}
}

func FuzzRequest(f *testing.F) {
	for _, data := range requests {
		f.Add([]byte(data))
	}
	f.Fuzz(checkRequest)
}

// checkResponse compares Response with encoding/json.
func checkResponse(t *testing.T, response *abi.Response) {
	t.Helper()
	data, err := wire.Response(response)
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(response)
	if err != nil {
		t.Fatal(err)
	}
	var got, expected abi.Response
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	if err := json.Unmarshal(want, &expected); err != nil {
		t.Fatal(err)
	}
	if len(got.Content) == 0 {
		got.Content = nil
	}
	if !reflect.DeepEqual(got, expected) {
		t.Errorf("%s\nis not %s", data, want)
	}
}

func TestResponse(t *testing.T) {
	t.Parallel()
	blob := 3
	for _, response := range []*abi.Response{
		{},
		{Content: []abi.Content{{Type: abi.Text, Text: "a \"quoted\" \\ \n\t\x00\x7f 日本語 <&> \u2028"}}},
		{Content: []abi.Content{{Type: abi.Text}, {Type: abi.Text, Blob: &blob}}, IsError: true},
		{Content: []abi.Content{{Type: abi.Text, Text: "\xff"}}},
		{StructuredContent: json.RawMessage(`{"a":[1,"x"]}`)},
		{Content: []abi.Content{{Type: abi.Image, MIMEType: "image/png", Blob: &blob}}},
		{Content: []abi.Content{{Type: abi.Text, Text: "x",
			Annotations: &abi.Annotations{Audience: []string{"user"}}}}},
		{Error: &abi.Error{Code: "x", Message: "y"}},
		{Description: "d", Messages: []abi.PromptMessage{{Role: "user"}}},
		{Completion: &abi.Completion{Values: []string{"a"}}},
	} {
		checkResponse(t, response)
	}
}

func FuzzResponseText(f *testing.F) {
	f.Add("a \"b\" \\ \x01", true)
	f.Fuzz(func(t *testing.T, text string, failed bool) {
		checkResponse(t, &abi.Response{Content: []abi.Content{{Type: abi.Text, Text: text}}, IsError: failed})
	})
}
