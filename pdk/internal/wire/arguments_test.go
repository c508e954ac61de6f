package wire_test

import (
	"encoding/json"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/hako-run/hako/pdk/internal/wire"
)

type name string

// shout is a string that decodes itself.
type shout string

func (s *shout) UnmarshalText(text []byte) error {
	*s = shout(strings.ToUpper(string(text)))
	return nil
}

type embedded struct {
	Inner string `json:"inner"`
}

type arguments struct {
	Text    string  `json:"text"`
	Name    name    `json:"name,omitempty"`
	Pointer *string `json:"pointer"`
	List    []string
	Number  json.Number `json:"number"`
	Shout   shout       `json:"shout"`
	Quoted  string      `json:"quoted,string"`
	Raw     json.RawMessage
	Any     any
	Twice   string
	Twice2  string `json:"Twice"`
	Skipped string `json:"-"`
	hidden  string
	embedded
}

var decoder = wire.NewArgumentDecoder(reflect.TypeFor[arguments]())

// checkArguments compares the decoder with encoding/json.
func checkArguments(t *testing.T, data []byte) {
	t.Helper()
	got, want := arguments{hidden: "x"}, arguments{hidden: "x"}
	err, wantErr := decoder.Decode(data, &got), json.Unmarshal(data, &want)
	if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
		t.Errorf("%.80q: error %v, want %v", data, err, wantErr)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%.80q gives %.200v, want %.200v", data, got, want)
	}
}

// long are JSON texts that the decoder handles, or almost.
func long() map[string]string {
	filling := strings.Repeat("some text, ", 60)
	return map[string]string{
		"plain": filling, "Japanese": filling + "日本語のテキスト", "not UTF-8": filling + "\xff" + filling,
		"escapes": filling + `\"\\\/\b\f\n\r\t` + filling, "at the ends": `\n` + filling + `\\`,
		"code points": filling + `\u003c\u65E5\u0000\ud83d\ude00\uD83D\uDE00` + filling,
		"surrogates":  filling + `\ud83d\u0041\ude00\ud83d\ud83d\ude00\ud83dx\ud83d\n\ud83d`, "unknown escape": filling + `\x`,
		"short code point": filling + `\u12`, "bad code point": filling + `\u12g4`, "control": filling + "\n",
		"open": filling + `\`, "brackets": filling + `}]{[,:`,
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for name, text := range long() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, form := range []string{
				`{"text":"%"}`, ` { "text" : "%" , "name" : "%" } `, `{"text":"%","List":["%"],"Any":{"text":["%"]}}`,
				`{"TEXT":"%"}`, `{"text":"%","Text":"x"}`, `{"text":"x","text":"%"}`, `{"te\u0078t":"x","text":"%"}`,
				`{"pointer":"%","number":"%"}`, `{"number":"%"}`, `{"number":1,"text":"%"}`, `{"shout":"%"}`,
				`{"quoted":"%"}`, `{"quoted":"\"%\"","text":"%"}`, `{"Raw":"%"}`, `{"Raw":{"text":"%"},"text":"%"}`,
				`{"Twice":"%"}`, `{"-":"%"}`, `{"Skipped":"%"}`, `{"hidden":"%"}`, `{"inner":"%","text":"%"}`,
				`{"text":"%"`, `{"text":"%",}`, `{"text":"%"}}`, `{"text":"%"} x`, `{"text":"%" "name":"x"}`, `["%"]`,
				`"%"`, `null`, `{"text":null,"name":"%"}`, `{"List":"%","text":"%"}`, `{"unknown":1.5e3,"text":"%"}`,
				`{"unknown":tru,"text":"%"}`, `{"unknown":[1,{]},"text":"%"}`, `{"unknown":"\ud800","text":"%"}`,
				`{"text":"%","名前":"x"}`, `{,"text":"%"}`, `{"text","%"}`,
			} {
				checkArguments(t, []byte(strings.ReplaceAll(form, "%", text)))
			}
		})
	}
}

// TestArgumentsOfOtherTypes decodes into types whose fields the decoder must not set.
func TestArgumentsOfOtherTypes(t *testing.T) {
	t.Parallel()
	data := []byte(`{"text":"` + strings.Repeat("x", 2000) + `"}`)
	for _, into := range []any{new(map[string]string), new(any), new(*arguments), new(json.RawMessage), new(struct{})} {
		want := reflect.New(reflect.TypeOf(into).Elem()).Interface()
		err := wire.NewArgumentDecoder(reflect.TypeOf(into).Elem()).Decode(data, into)
		if wantErr := json.Unmarshal(data, want); err != nil || wantErr != nil || !reflect.DeepEqual(into, want) {
			t.Errorf("%T: %v, want %v (%v, %v)", into, into, want, err, wantErr)
		}
	}
}

// TestArgumentsAreNotCopied checks that a long text is part of its JSON, or copied once if it has escapes.
func TestArgumentsAreNotCopied(t *testing.T) {
	for name, test := range map[string]struct {
		text   string
		copies uint64
	}{"plain": {strings.Repeat("x", 1<<20), 0}, "escapes": {strings.Repeat(`line\n`, 1<<18), 1}} {
		data := []byte(`{"text":"` + test.text + `","name":"x"}`)
		var into arguments
		allocated := bytesAllocated(func() {
			if err := decoder.Decode(data, &into); err != nil {
				t.Fatal(err)
			}
		})
		if allocated > test.copies*uint64(len(data))+64<<10 {
			t.Errorf("%s: %d bytes are allocated for %d bytes of JSON", name, allocated, len(data))
		}
	}
}

func bytesAllocated(run func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func FuzzArguments(f *testing.F) {
	for _, text := range long() {
		f.Add([]byte(`{"name":"x","text":"`+text+`","List":[]}`), `"TEXT":1`)
	}
	f.Fuzz(func(t *testing.T, data []byte, member string) {
		checkArguments(t, data)
		checkArguments(t, []byte(`{"text":"`+strings.Repeat("x", 600)+string(data)+`",`+member+`}`))
	})
}
