package sandbox_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/hako-run/hako/host/sandbox"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/pdk/abi"
)

func TestDecodeStructuredText(t *testing.T) {
	t.Parallel()
	blobs := [][]byte{[]byte("いろは"), {0xff}}
	for name, c := range map[string]struct{ response, want string }{
		"one text": {`{"structuredContent":{"a":1},"structuredText":[{"name":"b","blob":0}]}`,
			`{"b":"いろは","a":1}`},
		"shared":         {`{"content":[{"type":"text","blob":0}],"structuredContent":{},"structuredText":[{"name":"b","blob":0}]}`, `{"b":"いろは"}`},
		"no object":      {`{"structuredContent":[],"structuredText":[{"name":"b","blob":0}]}`, ""},
		"no blob":        {`{"structuredContent":{},"structuredText":[{"name":"b"}]}`, ""},
		"a missing blob": {`{"structuredContent":{},"structuredText":[{"name":"b","blob":2}]}`, ""},
		"not UTF-8":      {`{"structuredContent":{},"structuredText":[{"name":"b","blob":1}]}`, ""},
		"there already":  {`{"structuredContent":{"b":1},"structuredText":[{"name":"b","blob":0}]}`, ""},
		"blown up texts": {`{"content":[` + strings.Repeat(`{"type":"text","blob":0},`,
			50) + `{"type":"text","text":""}]}`, ""},
		"blown up members": {`{"contents":[` + strings.Repeat(`{"uri":"a:b","blob":0},`,
			50) + `{"uri":"a:b","text":""}]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response, err := sandbox.Decode("p", []byte(c.response), blobs)
			switch {
			case c.want == "" && err == nil:
				t.Errorf("no error, and %s", response.StructuredContent)
			case c.want != "" && (err != nil || string(response.StructuredContent) != c.want):
				t.Errorf("%v, %v; want %s", response, err, c.want)
			}
		})
	}
}

// TestEncode: a guest gets the arguments as they are, within the JSON of the request.
func TestEncode(t *testing.T) {
	t.Parallel()
	for _, arguments := range []string{"", "{}", "{ \"a\":\"<&>\u2028\\u0041\" ,\n\"b\":1e3}"} {
		want := abi.Request{Method: abi.CallTool, Name: "echo", Locale: "ja", DeadlineMS: 7,
			Arguments: json.RawMessage(arguments)}
		parts, err := sandbox.Encode(want)
		data := bytes.Join(parts, nil)
		if err != nil || !strings.Contains(string(data), arguments) {
			t.Errorf("%s: %s, %v", arguments, data, err)
		}
		var got abi.Request
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if string(got.Arguments) != arguments || got.Name != want.Name || got.DeadlineMS != want.DeadlineMS {
			t.Errorf("%s: %+v", arguments, got)
		}
	}
}

// FuzzDecodeText: a response that is decoded in place is what strictjson decodes.
func FuzzDecodeText(f *testing.F) {
	for _, response := range []string{
		`{"content":[{"type":"text","text":"a\n\u00e9 日本"},{"text":"b","type":"text"}],"structuredContent":{"a":[1]},"isError":true}`,
		`{"content":[{"type":"text","text":"a\n"},{"type":"text","text":"\"","more":1}]}`,
		`{"content":[],"isError":false}`, `{"content":[{}]}`, `{}`, `{"content":null}`, `{"structuredContent": null }`,
		`{"content":[{"type":"text","text":"a","text":"b"}]}`, `{"isError":false,"content":[{"type":"image"}]} `,
	} {
		f.Add([]byte(response))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		given := slices.Clone(data)
		got, ok := sandbox.DecodeText(given)
		if !ok {
			if !bytes.Equal(given, data) {
				t.Errorf("%q is changed to %q", data, given)
			}
			return
		}
		var want abi.Response
		if err := strictjson.Unmarshal(data, &want); err != nil || !reflect.DeepEqual(got, &want) {
			t.Errorf("%q: %+v, want %+v, %v", data, got, want, err)
		}
	})
}

// TestDecodeTextKeeps: what records keep of a response does not keep the whole.
func TestDecodeTextKeeps(t *testing.T) {
	t.Parallel()
	kind, whole := func() (string, weak.Pointer[byte]) {
		data := []byte(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 1<<20) + `"}]}`)
		response, ok := sandbox.DecodeText(data)
		if !ok {
			t.Fatal("not decoded")
		}
		return response.Content[0].Type, weak.Make(&data[0])
	}()
	runtime.GC()
	if whole.Value() != nil {
		t.Error("the type keeps the response")
	}
	runtime.KeepAlive(kind)
}

// TestHostileTexts: broken and repeated texts are refused or decoded as strictjson does, and a response that is not
// decoded in place is unchanged.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	texts := []string{`\`, `\u`, `\u12`, `\u123`, `\u00zz`, `\x41`, `\ud800`, `\udc00`, `\ud800\u0041`, `\ud800\ud800`,
		`\udbff\udfff`, `\ud83d\ude00`, `\ud83d\ude0`, `\ud83d\`, "\xff", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\xaf",
		"a\nb", "a\x00b", `\u0000`, `a\u0061\ud800`, `\\\"\/\b\f\n\r\t`, strings.Repeat(`\u0061`, 1000),
		strings.Repeat("\\ud800", 1000), strings.Repeat(`\"`, 1000) + "\xff"}
	for _, text := range texts {
		for _, document := range []string{
			`{"content":[{"type":"text","text":"%s"}]}`,
			`{"content":[{"type":"text","text":"%s"}],"structuredContent":{"%[1]s":"%[1]s"}}`,
			`{"content":[{"type":"%s","text":"a"},{"type":"text","text":"\n%[1]s"}]}`,
			`{"content":[{"type":"text","text":"\u0041","text":"%s"}]}`,
			`{"content":[{"type":"text","te\u0078t":"%s","text":"b\n"}]}`,
			`{"content":[{"type":"text","%s":"b"}]}`, `{"%s":1,"content":[]}`,
			`{"content":[{"type":"text","text":"%s"}],"content":[]}`,
			`{"content":[{"type":"text","text":"%s"}]} x`, `{"content":[{"type":"text","text":"%s`,
			`{"content":[{"type":"text","text":"a\n"}],"isError":"%s"}`,
		} {
			data := fmt.Sprintf(document, text)
			given := []byte(data)
			got, decoded := sandbox.DecodeText(given)
			if !decoded {
				if string(given) != data {
					t.Errorf("%q is changed to %q", data, given)
				}
				continue
			}
			var want abi.Response
			if err := strictjson.Unmarshal([]byte(data), &want); err != nil || !reflect.DeepEqual(got, &want) {
				t.Errorf("%q: %+v, want %+v, %v", data, got, want, err)
			}
		}
	}
}
