package canon

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hako-run/hako/host/wasm/component"
)

// fakeMemory is a guest's memory with a bump allocator.
type fakeMemory struct {
	data []byte
	next uint64
}

func newFakeMemory(size int) *fakeMemory { return &fakeMemory{make([]byte, size), 64} }

func (m *fakeMemory) Read(offset, length uint32) ([]byte, bool) {
	end := uint64(offset) + uint64(length)
	if end > uint64(len(m.data)) {
		return nil, false
	}
	return m.data[offset:end:end], true
}

func (m *fakeMemory) realloc(align, size uint32) (uint32, error) {
	pointer := alignTo(m.next, align)
	m.next = pointer + uint64(size)
	if m.next > uint64(len(m.data)) {
		return 0, errors.New("out of memory")
	}
	return uint32(pointer), nil
}

func (m *fakeMemory) frame(encoding component.Encoding) *Frame {
	return &Frame{Memory: m, Realloc: m.realloc, Encoding: encoding}
}

func (m *fakeMemory) put(offset uint32, data ...byte) { copy(m.data[offset:], data) }

func scalar(kind component.Kind) *component.Type { return &component.Type{Kind: kind} }

func listOf(elem *component.Type) *component.Type {
	return &component.Type{Kind: component.KindList, Elem: elem}
}

func fixed(elem *component.Type, length uint32) *component.Type {
	return &component.Type{Kind: component.KindList, Elem: elem, Length: length}
}

func tupleOf(types ...*component.Type) *component.Type {
	t := &component.Type{Kind: component.KindTuple}
	for _, elem := range types {
		t.Fields = append(t.Fields, component.Field{Type: elem})
	}
	return t
}

func variantOf(types ...*component.Type) *component.Type {
	t := tupleOf(types...)
	t.Kind = component.KindVariant
	return t
}

func option(elem *component.Type) *component.Type {
	return &component.Type{Kind: component.KindOption, Elem: elem}
}

func labels(kind component.Kind, n int) *component.Type {
	return &component.Type{Kind: kind, Fields: make([]component.Field, n)}
}

func function(result *component.Type, params ...*component.Type) *component.Func {
	return &component.Func{Params: tupleOf(params...).Fields, Result: result}
}

var (
	u8Type     = scalar(component.KindU8)
	u32Type    = scalar(component.KindU32)
	u64Type    = scalar(component.KindU64)
	f32Type    = scalar(component.KindF32)
	f64Type    = scalar(component.KindF64)
	charType   = scalar(component.KindChar)
	stringType = scalar(component.KindString)
)

// randomType returns a type without handles, nested at most depth deep.
func randomType(r *rand.Rand, depth int) *component.Type {
	kinds := []component.Kind{component.KindBool, component.KindS8, component.KindU8, component.KindS16,
		component.KindU16, component.KindS32, component.KindU32, component.KindS64, component.KindU64,
		component.KindF32, component.KindF64, component.KindChar, component.KindString, component.KindFlags,
		component.KindEnum}
	if depth > 0 {
		kinds = append(kinds, component.KindRecord, component.KindVariant, component.KindList, component.KindTuple,
			component.KindOption, component.KindResult, component.KindMap, component.KindRecord)
	}
	t := &component.Type{Kind: kinds[r.IntN(len(kinds))]}
	sub := func() *component.Type { return randomType(r, depth-1) }
	maybe := func() *component.Type {
		if r.IntN(3) == 0 {
			return nil
		}
		return sub()
	}
	switch t.Kind {
	case component.KindFlags:
		t.Fields = make([]component.Field, 1+r.IntN(32))
	case component.KindEnum:
		t.Fields = make([]component.Field, 1+r.IntN(300))
	case component.KindRecord, component.KindTuple:
		for range 1 + r.IntN(6) {
			t.Fields = append(t.Fields, component.Field{Name: "field", Type: sub()})
		}
	case component.KindVariant:
		for range 1 + r.IntN(5) {
			t.Fields = append(t.Fields, component.Field{Name: "case", Type: maybe()})
		}
	case component.KindList:
		t.Elem = sub()
		if r.IntN(3) == 0 {
			t.Length = uint32(1 + r.IntN(5))
		}
	case component.KindOption:
		t.Elem = sub()
	case component.KindResult:
		t.Elem, t.Err = maybe(), maybe()
	case component.KindMap:
		t.Elem, t.Err = scalar(component.KindString), sub()
	}
	return t
}

var texts = []string{"", "a", "grüße", "箱", "a\x00b", "🙂箱é", strings.Repeat("é", 40), "\ufffd", "\U0010ffff"}

// randomValue returns a value of the type.
func randomValue(r *rand.Rand, t *component.Type) any {
	switch t.Kind {
	case component.KindBool:
		return r.IntN(2) == 0
	case component.KindU8:
		return uint64(uint8(r.Uint64()))
	case component.KindU16:
		return uint64(uint16(r.Uint64()))
	case component.KindU32:
		return uint64(uint32(r.Uint64()))
	case component.KindU64:
		return r.Uint64()
	case component.KindS8:
		return int64(int8(r.Uint64()))
	case component.KindS16:
		return int64(int16(r.Uint64()))
	case component.KindS32:
		return int64(int32(r.Uint64()))
	case component.KindS64:
		return int64(r.Uint64())
	case component.KindF32:
		return []float32{0, -1.5, math.MaxFloat32, float32(math.Inf(1)), math.SmallestNonzeroFloat32}[r.IntN(5)]
	case component.KindF64:
		return []float64{0, -1.5, math.MaxFloat64, math.Inf(-1), math.Pi}[r.IntN(5)]
	case component.KindChar:
		return []rune{0, 'a', 0xd7ff, 0xe000, utf8.MaxRune}[r.IntN(5)]
	case component.KindString:
		return texts[r.IntN(len(texts))]
	case component.KindFlags:
		return r.Uint32() & allFlags(t)
	case component.KindList:
		n := int(t.Length)
		if n == 0 {
			n = r.IntN(5)
		}
		if t.Elem.Kind == component.KindU8 {
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			return data
		}
		values := make([]any, n)
		for i := range values {
			values[i] = randomValue(r, t.Elem)
		}
		return values
	case component.KindMap:
		values := make([]any, r.IntN(4))
		for i := range values {
			values[i] = []any{randomValue(r, t.Elem), randomValue(r, t.Err)}
		}
		return values
	case component.KindRecord, component.KindTuple:
		values := make([]any, len(t.Fields))
		for i := range values {
			values[i] = randomValue(r, t.Fields[i].Type)
		}
		return values
	}
	payloads := casePayloads(t)
	c := component.Case{Number: uint32(r.IntN(len(payloads)))}
	if p := payloads[c.Number]; p != nil {
		c.Value = randomValue(r, p)
	}
	return c
}

// What one side lowers, the other lifts: as arguments and as a result, from core values and from memory.
func TestRoundTrips(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		f := &component.Func{Result: randomType(r, 3)}
		args := []any{}
		for range r.IntN(5) {
			p := randomType(r, 3)
			f.Params = append(f.Params, component.Field{Name: "p", Type: p})
			args = append(args, randomValue(r, p))
		}
		result := randomValue(r, f.Result)
		for _, encoding := range []component.Encoding{component.UTF8, component.UTF16, component.Latin1OrUTF16} {
			memory := newFakeMemory(256 << 10)
			frame := memory.frame(encoding)
			flat, err := frame.LowerParams(f, args)
			if err != nil {
				t.Fatal(err)
			}
			if params, _ := (&component.Func{Params: f.Params}).CoreSignature(); len(params) != len(flat) {
				t.Fatalf("%d core arguments for the signature %x", len(flat), params)
			}
			got, err := frame.LiftParams(f, flat)
			if err != nil || !reflect.DeepEqual(got, args) {
				t.Fatalf("got %#v, %v, want %#v", got, err, args)
			}
			checkResult(t, memory, frame, f, flat, result)
		}
	}
}

func checkResult(t *testing.T, memory *fakeMemory, frame *Frame, f *component.Func, flat []uint64, result any) {
	t.Helper()
	params, results := f.CoreSignature()
	stack := append(make([]uint64, 0, 20), flat...)
	lifted := []uint64{0}
	if len(results) == 0 { // the caller gives the address, as the last argument
		pointer, err := memory.realloc(8, 4096)
		if err != nil {
			t.Fatal(err)
		}
		stack, lifted[0] = append(stack, uint64(pointer)), uint64(pointer)
	}
	if len(stack) != len(params) {
		t.Fatalf("%d core arguments for the signature %x", len(stack), params)
	}
	stack = append(stack, 0)
	if err := frame.LowerResult(f, result, stack); err != nil {
		t.Fatal(err)
	}
	if len(results) == 1 {
		lifted[0] = stack[0]
	}
	got, err := frame.LiftResult(f, lifted)
	if err != nil || !reflect.DeepEqual(got, result) {
		t.Fatalf("got %#v, %v, want %#v", got, err, result)
	}
}

func TestCoreSignature(t *testing.T) {
	join := variantOf(f32Type, u64Type, tupleOf(u32Type, f32Type), nil, tupleOf(f64Type, f32Type))
	for _, test := range []struct {
		name            string
		f               *component.Func
		params, results string
	}{
		{"nothing", function(nil), "", ""},
		{"scalars", function(f64Type, u8Type, u64Type, f32Type), "\x7f\x7e\x7d", "\x7c"},
		{"string result", function(stringType, stringType), "\x7f\x7f\x7f", ""},
		{"16 parameters", function(nil, fixed(u64Type, 16)), strings.Repeat("\x7e", 16), ""},
		{"17 parameters", function(nil, fixed(u64Type, 17)), "\x7f", ""},
		{"17 parameters and a result in memory", function(stringType, fixed(u64Type, 17)), "\x7f\x7f", ""},
		{"joined cases", function(nil, join), "\x7f\x7e\x7d", ""},
		{"joined f32 and i32", function(nil, variantOf(f32Type, u32Type)), "\x7f\x7f", ""},
		{"result without payload", function(scalar(component.KindResult)), "", "\x7f"},
		{"flags", function(labels(component.KindFlags, 32)), "", "\x7f"},
		{"a huge list of fixed length", function(nil, fixed(u8Type, 1<<27)), "\x7f", ""},
	} {
		params, results := test.f.CoreSignature()
		if string(params) != test.params || string(results) != test.results {
			t.Errorf("%s: %x, %x, want %x, %x", test.name, params, results, test.params, test.results)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, test := range []struct {
		typ         *component.Type
		size, align uint32
	}{
		{tupleOf(u8Type, u64Type, u8Type), 24, 8},
		{tupleOf(u8Type, scalar(component.KindU16), u8Type), 6, 2},
		{labels(component.KindEnum, 256), 1, 1},
		{labels(component.KindEnum, 257), 2, 2},
		{labels(component.KindEnum, 1<<16), 2, 2},
		{labels(component.KindEnum, 1<<16+1), 4, 4},
		{labels(component.KindFlags, 8), 1, 1},
		{labels(component.KindFlags, 9), 2, 2},
		{labels(component.KindFlags, 17), 4, 4},
		{option(u8Type), 2, 1},
		{option(u64Type), 16, 8},
		{variantOf(nil, u8Type, scalar(component.KindU16)), 4, 2},
		{variantOf(tupleOf(u32Type, u8Type), u64Type), 16, 8},
		{fixed(tupleOf(u32Type, u8Type), 3), 24, 4},
		{&component.Type{Kind: component.KindMap, Elem: stringType, Err: u8Type}, 8, 4},
	} {
		l, err := new(Layouts).of(test.typ)
		if err != nil || l.size != test.size || l.align != test.align {
			t.Errorf("%+v: %+v, %v, want %d, %d", test.typ, l, err, test.size, test.align)
		}
	}
}

// A core value of a joined case is read as the case's own type, and written with its other bits zero.
func TestJoinedCases(t *testing.T) {
	f := function(nil, variantOf(f32Type, u64Type, u32Type, f64Type))
	for _, test := range []struct {
		value any
		flat  []uint64
	}{
		{component.Case{Number: 0, Value: float32(1.5)}, []uint64{0, 0x3fc00000}},
		{component.Case{Number: 1, Value: uint64(math.MaxUint64)}, []uint64{1, math.MaxUint64}},
		{component.Case{Number: 2, Value: uint64(7)}, []uint64{2, 7}},
		{component.Case{Number: 3, Value: 1.5}, []uint64{3, 0x3ff8 << 48}},
	} {
		var frame Frame
		flat, err := frame.LowerParams(f, []any{test.value})
		if err != nil || !reflect.DeepEqual(flat, test.flat) {
			t.Errorf("%v: %#x, %v", test.value, flat, err)
		}
		if test.flat[0] == 0 || test.flat[0] == 2 {
			test.flat[1] |= 0xdead << 32 // a 32-bit case ignores the upper bits
		}
		args, err := frame.LiftParams(f, test.flat)
		if err != nil || args[0] != test.value {
			t.Errorf("%v: %v, %v", test.value, args, err)
		}
	}
}

func TestNaNsAreCanonical(t *testing.T) {
	f := function(nil, f32Type, f64Type)
	var frame Frame
	args, err := frame.LiftParams(f, []uint64{0xff800001, 0xfff0000000000001})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := math.Float32bits(args[0].(float32)), math.Float64bits(args[1].(float64)); a != 0x7fc00000 || b != 0x7ff8<<48 {
		t.Errorf("%#x, %#x", a, b)
	}
	flat, err := frame.LowerParams(f, []any{float32(math.NaN()), math.Float64frombits(0xfff0000000000001)})
	if err != nil || flat[0] != 0x7fc00000 || flat[1] != 0x7ff8<<48 {
		t.Errorf("%#x, %v", flat, err)
	}
	args, err = frame.LiftParams(f, []uint64{0xff800000, 0xfff << 52})
	if err != nil || args[0] != float32(math.Inf(-1)) || args[1] != math.Inf(-1) {
		t.Errorf("%v, %v", args, err)
	}
}

// What a guest passes wrongly is an error that says what is wrong.
func TestHostileArguments(t *testing.T) {
	const page = 1 << 16
	for _, test := range []struct {
		name     string
		encoding component.Encoding
		param    *component.Type
		memory   []byte // at 64
		flat     []uint64
		want     string
	}{
		{"string outside", 0, stringType, nil, []uint64{page - 1, 2}, "outside of the guest's memory"},
		{"string that wraps around", 0, stringType, nil, []uint64{0xffffffff, 0xffffffff}, "more than a value can have"},
		{"string of the rest of memory", 0, stringType, nil, []uint64{64, page}, "outside of the guest's memory"},
		{"invalid UTF-8", 0, stringType, []byte("a\xffb"), []uint64{64, 3}, "not valid UTF-8"},
		{"surrogate in UTF-8", 0, stringType, []byte("\xed\xa0\x80"), []uint64{64, 3}, "not valid UTF-8"},
		{"odd address of UTF-16", component.UTF16, stringType, nil, []uint64{65, 1}, "not a multiple of 2"},
		{"UTF-16 of 4 GiB", component.UTF16, stringType, nil, []uint64{0, 1 << 31}, "more than a value can have"},
		{"high surrogate at the end", component.UTF16, stringType, []byte{0x00, 0xd8}, []uint64{64, 1}, "lone surrogate"},
		{"high surrogate alone", component.UTF16, stringType, []byte{0, 0xd8, 'a', 0}, []uint64{64, 2}, "lone surrogate"},
		{"low surrogate first", component.UTF16, stringType, []byte{0, 0xdc, 0, 0xd8}, []uint64{64, 2}, "lone surrogate"},
		{"tagged lone surrogate", component.Latin1OrUTF16, stringType, []byte{0, 0xd8}, []uint64{64, 1<<31 | 1}, "lone surr"},
		{"odd address of Latin-1", component.Latin1OrUTF16, stringType, nil, []uint64{65, 1}, "not a multiple of 2"},
		{"list of 4 GiB", 0, listOf(u64Type), nil, []uint64{0, 0xffffffff}, "more than a value can have"},
		{"list whose size overflows 32 bits", 0, listOf(u64Type), nil, []uint64{0, 1 << 29}, "more than a value can have"},
		{"list outside", 0, listOf(u32Type), nil, []uint64{page - 4, 2}, "outside of the guest's memory"},
		{"unaligned list", 0, listOf(u32Type), nil, []uint64{66, 1}, "not a multiple of 4"},
		{"bytes outside", 0, listOf(u8Type), nil, []uint64{page - 4, 5}, "outside of the guest's memory"},
		{"surrogate as char", 0, charType, nil, []uint64{0xd800}, "not a Unicode character"},
		{"char beyond Unicode", 0, charType, nil, []uint64{0x110000}, "not a Unicode character"},
		{"negative char", 0, charType, nil, []uint64{0xffffffff}, "not a Unicode character"},
		{"unknown case", 0, labels(component.KindEnum, 3), nil, []uint64{3}, "case 3 of a type with 3 cases"},
		{"case beyond 32 bits", 0, labels(component.KindEnum, 3), nil, []uint64{0xffffffff}, "case 4294967295"},
		{"unknown case in memory", 0, listOf(option(u8Type)), []byte{2, 0}, []uint64{64, 1}, "[0]: case 2"},
		{"string in a list outside", 0, listOf(stringType), []byte{255, 255, 255, 255, 1, 0, 0, 0}, []uint64{64, 1}, "[0]: a string"},
		{"tuple in memory outside", 0, fixed(u64Type, 17), nil, []uint64{page - 8}, "outside of the guest's memory"},
		{"unaligned tuple in memory", 0, fixed(u64Type, 17), nil, []uint64{4}, "not a multiple of 8"},
		{"stream", 0, scalar(component.KindStream), nil, []uint64{1}, "WASI 0.3"},
		{"handle without table", 0, scalar(component.KindOwn), nil, []uint64{1}, "without handle table"},
		{"unknown kind", 0, scalar(99), nil, []uint64{1}, "unknown kind"},
		{"record without fields", 0, scalar(component.KindRecord), nil, []uint64{1}, "a type of 0 bytes"},
		{"33 flags", 0, labels(component.KindFlags, 33), nil, []uint64{1}, "33 labels"},
		{"too deep", 0, nested(300), nil, make([]uint64, 20), "nested more than"},
	} {
		t.Run(test.name, func(t *testing.T) {
			memory := newFakeMemory(page)
			memory.put(64, test.memory...)
			_, err := memory.frame(test.encoding).LiftParams(function(nil, test.param), test.flat)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// nested returns a type that is nested depth deep and refers to each of its parts twice.
func nested(depth int) *component.Type {
	t := u8Type
	for range depth {
		t = tupleOf(t, t)
	}
	return t
}

// A type whose parts are shared has few nodes and many values. It is refused by its size, fast.
func TestTypeBomb(t *testing.T) {
	_, err := new(Layouts).of(nested(90))
	if err == nil || !strings.Contains(err.Error(), "types have 1 to") {
		t.Error(err)
	}
	options := u8Type
	for range 90 {
		options = variantOf(options, options)
	}
	if _, err := new(Layouts).of(options); err != nil {
		t.Error(err)
	}
}

// A guest whose realloc lies cannot make the host write elsewhere.
func TestReallocThatLies(t *testing.T) {
	failure := errors.New("the guest trapped")
	for _, test := range []struct {
		name    string
		pointer uint32
		err     error
		want    string
	}{
		{"unaligned", 66, nil, "the guest's realloc: address 0x42 is not a multiple of 4"},
		{"outside", 1 << 20, nil, "the guest's realloc: 8 bytes at 0x100000 are outside"},
		{"at the end", 1<<16 - 4, nil, "outside of the guest's memory"},
		{"wraps around", 0xfffffffc, nil, "outside of the guest's memory"},
		{"trap", 0, failure, failure.Error()},
	} {
		memory := newFakeMemory(1 << 16)
		before := bytes.Clone(memory.data)
		frame := memory.frame(component.UTF8)
		frame.Realloc = func(uint32, uint32) (uint32, error) { return test.pointer, test.err }
		_, err := frame.LowerParams(function(nil, listOf(u32Type)), []any{[]any{uint64(1), uint64(2)}})
		if err == nil || !strings.Contains(err.Error(), test.want) || !bytes.Equal(memory.data, before) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	frame := newFakeMemory(1 << 16).frame(component.UTF8)
	frame.Realloc = nil
	if _, err := frame.LowerParams(function(nil, stringType), []any{"a"}); err == nil {
		t.Error("no error without realloc")
	}
	err := frame.LowerResult(function(stringType), "a", []uint64{1 << 16})
	if err == nil || !strings.Contains(err.Error(), "the result: ") {
		t.Error(err)
	}
}

// Values of the host that are not of the type are errors and do not panic.
func TestValuesOfTheWrongType(t *testing.T) {
	types := []*component.Type{u8Type, scalar(component.KindS8), scalar(component.KindS64), u64Type, f32Type, f64Type,
		charType, stringType, scalar(component.KindBool), listOf(u8Type), listOf(stringType), fixed(u8Type, 2),
		fixed(u64Type, 2), tupleOf(u8Type), variantOf(u8Type), labels(component.KindFlags, 3),
		labels(component.KindEnum, 3), option(u8Type), scalar(component.KindBorrow), scalar(component.KindFuture)}
	for _, typ := range types {
		for _, value := range []any{nil, struct{}{}, 1, "\xff", []any{}, []any{nil}, []byte{1}, uint64(1 << 40),
			int64(-1 << 40), uint32(8), rune(0xd800), component.Case{Number: 9}, component.Case{Number: 1}} {
			if value, ok := value.([]any); ok && len(value) == 0 && typ.Kind == component.KindList && typ.Length == 0 &&
				typ.Elem.Kind != component.KindU8 {
				continue
			}
			frame := newFakeMemory(1 << 16).frame(component.UTF8)
			valid := false
			switch value := value.(type) {
			case []byte:
				valid = typ.Kind == component.KindList && typ.Length == 0 && typ.Elem.Kind == component.KindU8
			case uint64:
				valid = typ == u64Type
			case int64:
				valid = typ.Kind == component.KindS64
			case component.Case:
				valid = typ.Kind == component.KindEnum && value.Number < 3
			}
			if _, err := frame.LowerParams(function(nil, typ), []any{value}); (err == nil) != valid {
				t.Errorf("%#v as %+v: %v", value, typ, err)
			}
		}
	}
	if _, err := new(Frame).LowerParams(function(nil, u8Type), nil); err == nil {
		t.Error("no error for a missing argument")
	}
}

// Host memory is reserved before it is allocated, in proportion to what a guest can make the host allocate.
func TestListsAreReservedBeforeTheyAreAllocated(t *testing.T) {
	refused := errors.New("no room")
	const n = 1 << 20
	for _, test := range []struct {
		name string
		typ  *component.Type
		min  int64
	}{
		{"bytes", listOf(u8Type), n},
		{"booleans", listOf(scalar(component.KindBool)), 16 * n},
		{"options", listOf(option(u8Type)), 40 * n / 2},
		{"string", stringType, n},
	} {
		memory := newFakeMemory(n)
		frame := memory.frame(component.UTF8)
		reserved := int64(0)
		frame.Reserve = func(bytes int64) error {
			if reserved += bytes; reserved > 1<<16 {
				return refused
			}
			return nil
		}
		length := uint64(n)
		if l, err := new(Layouts).of(test.typ); err == nil && l.elem != nil {
			length /= uint64(l.elem.size)
		}
		allocated := testing.AllocsPerRun(1, func() {
			reserved = 0
			if _, err := frame.LiftParams(function(nil, test.typ), []uint64{0, length}); !errors.Is(err, refused) {
				t.Errorf("%s: %v", test.name, err)
			}
		})
		if reserved < test.min || allocated > 50 {
			t.Errorf("%s: reserved %d, want %d; %v allocations", test.name, reserved, test.min, allocated)
		}
	}
}

// TestHostileTexts: what is reserved and counted for a text is its size in UTF-8, which its encoding in the guest's
// memory may fall short of, and is all that is allocated.
func TestHostileTexts(t *testing.T) {
	const units = 1 << 20
	for name, test := range map[string]struct {
		encoding component.Encoding
		unit     []byte // fills the memory
		length   uint64
		want     int64
	}{
		"UTF-8":                     {component.UTF8, []byte("a"), units, units},
		"UTF-16, one byte":          {component.UTF16, []byte{'a', 0}, units, units},
		"UTF-16, three bytes":       {component.UTF16, []byte{0xb1, 0x7b}, units, 3 * units},
		"UTF-16, surrogates":        {component.UTF16, []byte{0x3d, 0xd8, 0x42, 0xde}, units, 2 * units},
		"Latin-1, one byte":         {component.Latin1OrUTF16, []byte("a"), units, units},
		"Latin-1, two bytes":        {component.Latin1OrUTF16, []byte{0xe9}, units, 2 * units},
		"UTF-16 in place of Latin1": {component.Latin1OrUTF16, []byte{0xb1, 0x7b}, units | utf16Tag, 3 * units},
	} {
		t.Run(name, func(t *testing.T) {
			memory := newFakeMemory(2 * units)
			copy(memory.data, bytes.Repeat(test.unit, 2*units/len(test.unit)))
			frame := memory.frame(test.encoding)
			reserved, counted := int64(0), int64(0)
			frame.Reserve = func(n int64) error { reserved += n; return nil }
			frame.Count = func(n int64) error { counted += n; return nil }
			args, err := frame.LiftParams(function(nil, stringType), []uint64{0, test.length})
			if err != nil {
				t.Fatal(err)
			}
			size := int64(len(args[0].(string)))
			if size != test.want || counted != size || reserved < size || reserved > size+100 {
				t.Errorf("a text of %d bytes, want %d: %d reserved, %d counted", size, test.want, reserved, counted)
			}
			refused := errors.New("no room")
			frame.Reserve = func(n int64) error {
				if n > 1<<16 {
					return refused
				}
				return nil
			}
			if n := testing.AllocsPerRun(1, func() {
				if _, err := frame.LiftParams(function(nil, stringType), []uint64{0, test.length}); !errors.Is(err, refused) {
					t.Error(err)
				}
			}); n > 20 {
				t.Errorf("%v allocations without room", n)
			}
		})
	}
}

// TestHostileEmptyTypes: no type has values without size, of which a list could have 2^32 in no memory.
func TestHostileEmptyTypes(t *testing.T) {
	for name, elem := range map[string]*component.Type{
		"tuple": tupleOf(), "record": {Kind: component.KindRecord}, "flags": labels(component.KindFlags, 0),
		"enum": labels(component.KindEnum, 0), "variant": variantOf(), "tuple of a tuple": tupleOf(tupleOf()),
	} {
		if _, err := newFakeMemory(64).frame(component.UTF8).LiftParams(function(nil, listOf(elem)),
			[]uint64{0, math.MaxUint32}); err == nil {
			t.Errorf("a list of 2^32-1 values of an empty %s is lifted", name)
		}
	}
}

// Long lists are charged in parts, so that a call ends soon after its deadline.
func TestWorkIsCharged(t *testing.T) {
	const n = 10_000
	memory := newFakeMemory(n * 8)
	frame := memory.frame(component.UTF8)
	total, largest := int64(0), int64(0)
	frame.Charge = func(steps int64) { total, largest = total+steps, max(largest, steps) }
	args, err := frame.LiftParams(function(nil, listOf(u64Type)), []uint64{0, n})
	if err != nil || total < 5*n || largest > 10_000 {
		t.Errorf("lifting: %v, %d steps, at most %d at once", err, total, largest)
	}
	memory.next, total, largest = 0, 0, 0
	if _, err := frame.LowerParams(function(nil, listOf(u64Type)), args); err != nil || total < 5*n || largest > 10_000 {
		t.Errorf("lowering: %v, %d steps, at most %d at once", err, total, largest)
	}
}

// A mebibyte crosses with one copy.
func BenchmarkMebibyte(b *testing.B) {
	text := strings.Repeat("0123456789abcdef", 1<<16)
	for name, value := range map[string]any{"string": text, "bytes": []byte(text)} {
		typ := stringType
		if name == "bytes" {
			typ = listOf(u8Type)
		}
		f := function(nil, typ)
		memory := newFakeMemory(2 << 20)
		frame := memory.frame(component.UTF8)
		frame.Layouts = new(Layouts)
		b.Run(name+"/lower", func(b *testing.B) {
			b.SetBytes(1 << 20)
			b.ReportAllocs()
			for b.Loop() {
				memory.next = 0
				if _, err := frame.LowerParams(f, []any{value}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/lift", func(b *testing.B) {
			b.SetBytes(1 << 20)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := frame.LiftParams(f, []uint64{0, 1 << 20}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// FuzzLift lifts from random core values and memory, with random types. What it accepts, it lowers and lifts again.
func FuzzLift(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, byte(seed), []byte("\x40\x00\x00\x00\x02\x00\x00\x00 text and numbers \x01\x02\x03"))
	}
	f.Fuzz(func(t *testing.T, seed uint64, encoding byte, data []byte) {
		r := rand.New(rand.NewPCG(seed, 1))
		fn := &component.Func{Result: randomType(r, 3)}
		for range r.IntN(4) {
			fn.Params = append(fn.Params, component.Field{Type: randomType(r, 4)})
		}
		memory := newFakeMemory(1 << 12)
		copy(memory.data[64:], data)
		flat := make([]uint64, component.MaxFlatParams+1)
		for i := range flat {
			switch r.IntN(3) {
			case 0:
				flat[i] = uint64(r.IntN(9))
			case 1:
				flat[i] = uint64(r.IntN(1 << 12))
			default:
				flat[i] = r.Uint64()
			}
			if len(data) >= 8*(i+1) && r.IntN(4) == 0 {
				flat[i] = binary.LittleEndian.Uint64(data[8*i:])
			}
		}
		frame := memory.frame(component.Encoding(encoding % 3))
		reserved := int64(0)
		frame.Reserve = func(bytes int64) error {
			if reserved += bytes; bytes < 0 || reserved > 16<<20 {
				return errors.New("no room")
			}
			return nil
		}
		if value, err := frame.LiftResult(fn, flat); err == nil {
			again(t, &component.Func{Params: []component.Field{{Type: fn.Result}}}, []any{value})
		}
		if args, err := frame.LiftParams(fn, flat); err == nil {
			again(t, fn, args)
		}
	})
}

func again(t *testing.T, f *component.Func, args []any) {
	t.Helper()
	frame := newFakeMemory(1 << 20).frame(component.UTF8)
	flat, err := frame.LowerParams(f, args)
	if err != nil {
		if err.Error() == "out of memory" {
			return
		}
		t.Fatal(err)
	}
	got, err := frame.LiftParams(f, flat)
	if err != nil {
		t.Fatal(err)
	}
	// Equal but for NaN, which lowers to one bit pattern: compare what both lower to.
	other := newFakeMemory(1 << 20).frame(component.UTF8)
	flat2, err := other.LowerParams(f, got)
	if err != nil || !reflect.DeepEqual(flat, flat2) ||
		!bytes.Equal(frame.Memory.(*fakeMemory).data, other.Memory.(*fakeMemory).data) {
		t.Fatalf("%#v became %#v, %v", args, got, err)
	}
}
