package terminal

import (
	"slices"
	"strings"
	"testing"
)

const argumentsSchema = `{"type":"object","required":["location"],"properties":{
	"location":{"type":"string","description":"A place."},"count":{"type":"integer"},"share":{"type":["number","null"]},
	"deep":{"type":"boolean"},"unit":{"enum":["c","f"]},"tags":{"type":"array","items":{"type":"string"}},
	"ids":{"$ref":"#/$defs/ids"},"either":{"anyOf":[{"type":"string"},{"type":"integer"}]},
	"filter":{"type":"object"},"note":{"type":["string","null"]},"loop":{"$ref":"#/$defs/loop"}},
	"$defs":{"ids":{"type":"array","items":{"type":"integer"}},"loop":{"$ref":"#/$defs/loop"}}}`

func TestArguments(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"location=東京 count=3":          `{"count":3,"location":"東京"}`,
		"location=12":                  `{"location":"12"}`,
		"location=a=b":                 `{"location":"a=b"}`,
		"location=":                    `{"location":""}`,
		`location={"a":1}`:             `{"location":"{\"a\":1}"}`,
		"count=9007199254740993":       `{"count":9007199254740993}`,
		"count=-1 share=0.5 deep=true": `{"count":-1,"deep":true,"share":0.5}`,
		"share=null note=null":         `{"note":"null","share":null}`,
		"unit=c":                       `{"unit":"c"}`,
		"tags=a tags=1":                `{"tags":["a","1"]}`,
		`tags=["a","b"]`:               `{"tags":["a","b"]}`,
		"ids=1 ids=2":                  `{"ids":[1,2]}`,
		"either=5":                     `{"either":5}`,
		"either=five":                  `{"either":"five"}`,
		`filter={"a":[1]}`:             `{"filter":{"a":[1]}}`,
		"unknown=5":                    `{"unknown":5}`,
		"unknown=five":                 `{"unknown":"five"}`,
		"loop=x":                       `{"loop":"x"}`,
		"count=three":                  `error: count: "three" is no integer`,
		"count=":                       `error: count: "" is no integer`,
		"deep=yes":                     `error: deep: unknown value "yes": known are false, true`,
		"deep=treu":                    `error: deep: unknown value "treu": did you mean "true"?`,
		"filter=a":                     `error: filter: the value has to be JSON`,
		"ids=1 ids=x":                  `error: ids: "x" is no integer`,
		"location=a location=b":        `error: location is given twice`,
		"tags=a tags=[]":               `error: tags is given as a JSON list and by its elements`,
		"location=a date":              `error: "date" is not of the form NAME=VALUE`,
		"location=\xff":                `error: "location=\xff" is not of the form`,
	} {
		got, err := Arguments([]byte(argumentsSchema), strings.Fields(words))
		text := string(got)
		if err != nil {
			text = "error: " + err.Error()
		}
		if text != want && (err == nil || !strings.HasPrefix(text, want)) {
			t.Errorf("%s: %s, want %s", words, text, want)
		}
	}
	for _, schema := range []string{"", "null", "[]", `{"properties":[]}`, `{"properties":{"a":true}}`} {
		if got, err := Arguments([]byte(schema), []string{"a=1", "b=x"}); string(got) != `{"a":1,"b":"x"}` {
			t.Errorf("with the schema %q: %s, %v", schema, got, err)
		}
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	var names []string
	for _, p := range Parameters([]byte(argumentsSchema)) {
		names = append(names, strings.Join(append([]string{p.Name}, p.Values...), " "))
	}
	want := []string{"location", "count", "deep true false", "either", "filter", "ids", "loop", "note", "share", "tags", "unit c f"}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}
