package tool

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/schema"
	"github.com/hako-run/hako/host/wasm/component"
)

func scalar(kind component.Kind) *component.Type { return &component.Type{Kind: kind} }

func listOf(elem *component.Type) *component.Type {
	return &component.Type{Kind: component.KindList, Elem: elem}
}

func option(elem *component.Type) *component.Type {
	return &component.Type{Kind: component.KindOption, Elem: elem}
}

func record(fields ...component.Field) *component.Type {
	return &component.Type{Kind: component.KindRecord, Fields: fields}
}

func tupleOf(types ...*component.Type) *component.Type {
	t := &component.Type{Kind: component.KindTuple}
	for _, elem := range types {
		t.Fields = append(t.Fields, component.Field{Type: elem})
	}
	return t
}

func named(kind component.Kind, names ...string) *component.Type {
	t := &component.Type{Kind: kind}
	for _, name := range names {
		t.Fields = append(t.Fields, component.Field{Name: name})
	}
	return t
}

func mapOf(key, value *component.Type) *component.Type {
	return &component.Type{Kind: component.KindMap, Elem: key, Err: value}
}

func resultOf(ok, failed *component.Type) *component.Type {
	return &component.Type{Kind: component.KindResult, Elem: ok, Err: failed}
}

func field(name string, t *component.Type) component.Field {
	return component.Field{Name: name, Type: t}
}

// function returns a function of one parameter, v.
func function(param, result *component.Type) *component.Func {
	f := &component.Func{Result: result}
	if param != nil {
		f.Params = []component.Field{{Name: "v", Type: param}}
	}
	return f
}

var (
	boolType   = scalar(component.KindBool)
	u8Type     = scalar(component.KindU8)
	s8Type     = scalar(component.KindS8)
	u32Type    = scalar(component.KindU32)
	s64Type    = scalar(component.KindS64)
	u64Type    = scalar(component.KindU64)
	f32Type    = scalar(component.KindF32)
	f64Type    = scalar(component.KindF64)
	charType   = scalar(component.KindChar)
	stringType = scalar(component.KindString)
	shapeType  = &component.Type{Kind: component.KindVariant, Fields: []component.Field{{Name: "point"},
		{Name: "circle", Type: f64Type}, {Name: "named", Type: option(stringType)}}}
)

// forms are values of all types: as JSON, and what else is read as the same value.
var forms = []struct {
	name  string
	t     *component.Type
	value any
	json  string
	also  []string
}{
	{"bool", boolType, true, `true`, nil},
	{"u8", u8Type, uint64(255), `255`, []string{`255.0`, `2.55e2`, `25500E-2`, `0.255e+3`}},
	{"s8", s8Type, int64(-128), `-128`, nil},
	{"u32", u32Type, uint64(math.MaxUint32), `4294967295`, nil},
	{"zero", s64Type, int64(0), `0`, []string{`-0`, `0.0`, `"0"`}},
	{"largest exact integer", u64Type, uint64(1 << 53), `9007199254740992`, []string{`"9007199254740992"`, `9.007199254740992e15`}},
	{"u64", u64Type, uint64(math.MaxUint64), `"18446744073709551615"`, []string{`18446744073709551615`, `1844674407370955161.5e1`}},
	{"s64", s64Type, int64(math.MinInt64), `"-9223372036854775808"`, []string{`-9223372036854775808`}},
	{"f32", f32Type, float32(0.1), `0.1`, nil},
	{"f64", f64Type, 1e300, `1e+300`, nil},
	{"char", charType, '箱', `"箱"`, []string{`"\u7bb1"`}},
	{"string", stringType, "a\"b\n\x00é", `"a\"b\n\u0000é"`, nil},
	{"bytes", listOf(u8Type), []byte{0, 1, 255}, `"AAH/"`, []string{`[0,1,255]`}},
	{"no bytes", listOf(u8Type), []byte{}, `""`, []string{`[]`}},
	{"list", listOf(u32Type), []any{uint64(1), uint64(2)}, `[1,2]`, nil},
	{"fixed list", &component.Type{Kind: component.KindList, Elem: boolType, Length: 2}, []any{true, false}, `[true,false]`, nil},
	{"tuple", tupleOf(u8Type, stringType), []any{uint64(1), "a"}, `[1,"a"]`, nil},
	{"record", record(field("a", u8Type), field("b-c", option(stringType))),
		[]any{uint64(1), component.None}, `{"a":1,"b-c":null}`, []string{`{"a":1}`, `{"b-c":null,"a":1}`}},
	{"map", mapOf(stringType, u8Type), []any{[]any{"a", uint64(1)}, []any{"b", uint64(2)}}, `{"a":1,"b":2}`, nil},
	{"map of numbers", mapOf(u8Type, stringType), []any{[]any{uint64(1), "a"}}, `[[1,"a"]]`, nil},
	{"enum", named(component.KindEnum, "red", "green"), component.Case{Number: 1}, `"green"`, nil},
	{"flags", named(component.KindFlags, "read", "write", "run"), uint32(5), `["read","run"]`, []string{`["run","read"]`}},
	{"no flags", named(component.KindFlags, "read"), uint32(0), `[]`, nil},
	{"some", option(u8Type), component.Some(uint64(1)), `1`, nil},
	{"none", option(u8Type), component.None, `null`, nil},
	{"option of options: none", option(option(u8Type)), component.None, `null`, nil},
	{"option of options: some none", option(option(u8Type)), component.Some(component.None), `{"some":null}`, []string{`{}`}},
	{"option of options", option(option(u8Type)), component.Some(component.Some(uint64(1))), `{"some":1}`, nil},
	{"variant without value", shapeType, component.Case{Number: 0}, `{"tag":"point"}`, []string{`{"tag":"point","val":null}`}},
	{"variant", shapeType, component.Case{Number: 1, Value: 2.5}, `{"tag":"circle","val":2.5}`, []string{`{"val":2.5,"tag":"circle"}`}},
	{"variant with option", shapeType, component.Case{Number: 2, Value: component.None}, `{"tag":"named","val":null}`, []string{`{"tag":"named"}`}},
	{"ok", resultOf(u8Type, stringType), component.OK(uint64(1)), `{"ok":1}`, nil},
	{"error", resultOf(u8Type, stringType), component.Failed("no"), `{"err":"no"}`, nil},
	{"ok without value", resultOf(nil, stringType), component.OK(nil), `{"ok":null}`, nil},
}

// Each value has one JSON form in results. Arguments may be written in others, and all fit the schema.
func TestForms(t *testing.T) {
	for _, test := range forms {
		t.Run(test.name, func(t *testing.T) {
			e := encoder{limit: 1 << 20}
			if err := e.value(test.t, test.value); err != nil || string(e.out) != test.json {
				t.Errorf("encoded: %s, %v", e.out, err)
			}
			f := function(test.t, tupleOf(test.t))
			input, output := schemasOf(t, f)
			if err := output.Validate([]byte(`{"result":[` + test.json + `]}`)); err != nil {
				t.Errorf("the output schema: %v", err)
			}
			for _, form := range append([]string{test.json}, test.also...) {
				object := []byte(`{"v":` + form + `}`)
				args, err := decodeArguments(f, object)
				if err != nil || !reflect.DeepEqual(args, []any{test.value}) {
					t.Errorf("decoded %s: %#v, %v", form, args, err)
				}
				// An empty variant's null value and a missing {some} are read but not documented.
				if err := input.Validate(object); err != nil && form != `{"tag":"point","val":null}` && form != `{}` &&
					form != `{"tag":"named"}` {
					t.Errorf("the input schema and %s: %v", form, err)
				}
			}
		})
	}
}

func schemasOf(t *testing.T, f *component.Func) (input, output *schema.Schema) {
	t.Helper()
	in, err := inputSchema(f)
	if err != nil {
		t.Fatal(err)
	}
	if input, err = schema.Compile(in); err != nil {
		t.Fatal(err)
	}
	out, err := outputSchema(f)
	if err != nil || out == nil {
		return input, nil
	}
	if output, err = schema.Compile(out); err != nil {
		t.Fatal(err)
	}
	return input, output
}

func TestNumbersThatJSONDoesNotHave(t *testing.T) {
	for text, value := range map[string]any{`"NaN"`: math.NaN(), `"Infinity"`: math.Inf(1),
		`"-Infinity"`: float32(math.Inf(-1))} {
		e := encoder{limit: 100}
		if err := e.value(f64Type, value); err != nil || string(e.out) != text {
			t.Errorf("%s, %v, want %s", e.out, err, text)
		}
		_, output := schemasOf(t, function(nil, f64Type))
		if err := output.Validate([]byte(`{"result":` + text + `}`)); err != nil {
			t.Error(err)
		}
	}
}

// An error names the place, and says what fits there.
func TestWrongArguments(t *testing.T) {
	point := record(field("x", u8Type), field("y", option(u8Type)))
	for _, test := range []struct {
		t    *component.Type
		json string
		want string
	}{
		{u8Type, `{"v":256}`, "v: must be an integer from 0 to 255"},
		{u8Type, `{"v":"1"}`, "v: must be an integer from 0 to 255"},
		{u8Type, `{"v":1.5}`, "v: must be an integer from 0 to 255"},
		{s8Type, `{"v":-129}`, "v: must be an integer from -128 to 127"},
		{s64Type, `{"v":1e300}`, "v: must be an integer from -9223372036854775808 to 9223372036854775807"},
		{u64Type, `{"v":"18446744073709551616"}`, "v: must be an integer from 0 to 18446744073709551615"},
		{u64Type, `{"v":1e-1}`, "v: must be an integer from 0"},
		{u64Type, `{"v":1e99999999999999999999}`, "v: must be an integer from 0"},
		{u64Type, `{"v":-1.0}`, "v: must be an integer from 0"},
		{u64Type, `{"v":" 1"}`, "v: must be an integer"},
		{f32Type, `{"v":1e300}`, "v: must be a number that 32 bits can hold"},
		{f64Type, `{"v":"NaN"}`, "v: must be a number"},
		{charType, `{"v":"ab"}`, "v: must be a text of one character"},
		{charType, `{"v":""}`, "v: must be a text of one character"},
		{stringType, `{"v":1}`, "v: must be a text"},
		{boolType, `{"v":0}`, "v: must be true or false"},
		{listOf(point), `{"v":[{"x":1},{"x":-1}]}`, "v[1].x: must be an integer from 0 to 255"},
		{listOf(point), `{"v":[{"y":1}]}`, "v[0]: x is missing"},
		{point, `{"v":{"x":1,"z":1}}`, "v.z: is unknown: remove it"},
		{point, `{"v":[]}`, "v: must be an object"},
		{point, `{}`, "v is missing"},
		{point, `[]`, "must be an object"},
		{point, `{"v":{"x":1,"x":2}}`, `the property "x" occurs twice`},
		{point, `{"v":{"x":1}`, "it is not valid JSON"},
		{point, `{"v":{"x":1}} {}`, "unexpected data after"},
		{tupleOf(u8Type, u8Type), `{"v":[1]}`, "v: must have 2 elements, and has 1"},
		{tupleOf(u8Type, u8Type), `{"v":[1,2,3]}`, "v[2]: is one element too many: 2 are expected"},
		{listOf(u8Type), `{"v":"a b"}`, "v: must be base64"},
		{listOf(u8Type), `{"v":[1,300]}`, "v[1]: must be an integer from 0 to 255"},
		{named(component.KindEnum, "red", "green"), `{"v":"blue"}`, "v: must be one of red, green"},
		{named(component.KindFlags, "read", "write"), `{"v":["run"]}`, "v[0]: must be one of read, write"},
		{shapeType, `{"v":{"tag":"square"}}`, "v.tag: must be one of point, circle, named"},
		{shapeType, `{"v":{}}`, "v.tag: must be one of point, circle, named"},
		{shapeType, `{"v":{"tag":"circle"}}`, "v: val is missing"},
		{shapeType, `{"v":{"tag":"circle","val":"x"}}`, "v.val: must be a number"},
		{shapeType, `{"v":{"tag":"point","val":1}}`, "v: the case has no value: remove val"},
		{resultOf(u8Type, nil), `{"v":{"ok":1,"err":null}}`, "v: must have either ok or err"},
		{resultOf(u8Type, nil), `{"v":{"err":1}}`, "v: the case has no value: remove err"},
		{mapOf(stringType, u8Type), `{"v":{"a":"b"}}`, "v.a: must be an integer from 0 to 255"},
		{mapOf(u8Type, u8Type), `{"v":[[1]]}`, "v[0]: must have 2 elements"},
	} {
		_, err := decodeArguments(function(test.t, nil), []byte(test.json))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.json, err, test.want)
		}
	}
	if args, err := decodeArguments(function(nil, nil), nil); err != nil || len(args) != 0 {
		t.Errorf("no arguments: %v, %v", args, err)
	}
}

// randomType returns a type that has a JSON form.
func randomType(r *rand.Rand, depth int) *component.Type {
	t := *forms[r.IntN(len(forms))].t
	if depth == 0 {
		return &t
	}
	sub := func() *component.Type { return randomType(r, depth-1) }
	switch t.Kind {
	case component.KindList:
		t.Elem = sub()
	case component.KindOption:
		t.Elem = sub()
	case component.KindTuple, component.KindRecord:
		t.Fields = []component.Field{{Name: "a", Type: sub()}, {Name: "b", Type: sub()}}
	case component.KindMap:
		t.Err = sub()
	case component.KindResult:
		t.Elem, t.Err = sub(), sub()
	}
	return &t
}

// FuzzArguments decodes JSON as random types. What is accepted fits the schema, and its value encodes to JSON that is
// read as the same value.
func FuzzArguments(f *testing.F) {
	for seed, form := range forms {
		f.Add(uint64(seed), []byte(`{"v":`+form.json+`}`))
	}
	f.Fuzz(func(t *testing.T, seed uint64, data []byte) {
		types := []*component.Type{forms[seed%uint64(len(forms))].t, randomType(rand.New(rand.NewPCG(seed, 1)), 3)}
		for _, typ := range types {
			fn := function(typ, tupleOf(typ))
			args, err := decodeArguments(fn, data)
			if err != nil {
				continue
			}
			e := encoder{limit: 1 << 20}
			if err := e.value(typ, args[0]); err != nil {
				t.Fatal(err)
			}
			again, err := decodeArguments(fn, []byte(`{"v":`+string(e.out)+`}`))
			if err != nil || !reflect.DeepEqual(again, args) {
				t.Fatalf("%s: %#v, %v, want %#v", e.out, again, err, args)
			}
			_, output := schemasOf(t, fn)
			if err := output.Validate([]byte(`{"result":[` + string(e.out) + `]}`)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A mebibyte of text or bytes is converted without copies of its parts.
func BenchmarkMebibyte(b *testing.B) {
	text := strings.Repeat("0123456789abcde\n", 1<<16)
	arguments := map[string][]byte{}
	arguments["string"], _ = json.Marshal(map[string]string{"v": text})
	arguments["bytes"], _ = json.Marshal(map[string]string{"v": base64.StdEncoding.EncodeToString([]byte(text))})
	for name, t := range map[string]*component.Type{"string": stringType, "bytes": listOf(u8Type)} {
		f := function(t, nil)
		value := any(text)
		if name == "bytes" {
			value = bytes.Clone([]byte(text))
		}
		b.Run(name+"/decode", func(b *testing.B) {
			b.SetBytes(1 << 20)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decodeArguments(f, arguments[name]); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/encode", func(b *testing.B) {
			b.SetBytes(1 << 20)
			b.ReportAllocs()
			for b.Loop() {
				e := encoder{limit: 1 << 22}
				if err := e.value(t, value); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
