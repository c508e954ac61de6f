package pipeline

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// TestRecordIsDetached fills every text and every list of a Record with parts of one large text, and checks that the
// copy for observers shares memory with neither. A new field that is not copied makes it fail, and so does one of a type
// that may hold anything.
func TestRecordIsDetached(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("abcdefgh", 1<<17)
	r := new(openRecord)
	fill(t, reflect.ValueOf(&r.Record).Elem(), large, "Record")
	r.Error = large
	given := r.Record
	_, running := begin(t.Context(), r)
	defer running.end()
	got := r.detached()
	if len(got.Error) != maxRecorded {
		t.Errorf("a text has %d bytes", len(got.Error))
	}
	shared(t, reflect.ValueOf(given), reflect.ValueOf(*got), large, "Record")
	got.Error = given.Error
	if !reflect.DeepEqual(*got, given) {
		t.Errorf("the copy is %+v, want %+v", *got, given)
	}
	shared(t, reflect.ValueOf(given.Caller), reflect.ValueOf(running.Caller), large, "Caller")
	shared(t, reflect.ValueOf([]string{given.ID, given.Parent, given.Method, given.TraceID}),
		reflect.ValueOf([]string{running.ID, running.Parent, running.Method, running.TraceID}), large, "Running")
}

// part is where a part of the large text begins; each has its own length.
const part = 100

var raw, instant = reflect.TypeFor[json.RawMessage](), reflect.TypeFor[time.Time]()

// fill sets a value and all in it.
func fill(t *testing.T, v reflect.Value, large, path string) {
	t.Helper()
	switch {
	case v.Type() == instant:
		v.Set(reflect.ValueOf(time.Unix(1, 0)))
		return
	case v.Type() == raw:
		v.SetBytes(unsafe.Slice(unsafe.StringData(large), len(large))[part : part+len(path)])
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(large[part : part+len(path)])
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), large, path)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), large, path+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i), large, path+"[]")
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, large, path+"{key}")
		fill(t, value, large, path+"{}")
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	default:
		t.Fatalf("%s is a %s, which may hold a request: records have copies of texts only", path, v.Type())
	}
}

// shared reports the parts of two equal values that have the same memory.
func shared(t *testing.T, a, b reflect.Value, large, path string) {
	t.Helper()
	within := func(data unsafe.Pointer) bool {
		start := uintptr(unsafe.Pointer(unsafe.StringData(large)))
		return uintptr(data) >= start && uintptr(data) < start+uintptr(len(large))
	}
	switch b.Kind() {
	case reflect.String:
		if within(unsafe.Pointer(unsafe.StringData(b.String()))) {
			t.Errorf("%s is a part of the larger text", path)
		}
	case reflect.Pointer:
		if a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", path)
		}
		shared(t, a.Elem(), b.Elem(), large, path)
	case reflect.Struct:
		if b.Type() == instant {
			return
		}
		for i := range b.NumField() {
			shared(t, a.Field(i), b.Field(i), large, path+"."+b.Type().Field(i).Name)
		}
	case reflect.Slice:
		if a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", path)
		}
		if b.Type() == raw {
			return
		}
		for i := range b.Len() {
			shared(t, a.Index(i), b.Index(i), large, path+"[]")
		}
	case reflect.Map:
		if a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", path)
		}
		ours, theirs := b.MapKeys()[0], a.MapKeys()[0]
		shared(t, theirs, ours, large, path+"{key}")
		shared(t, a.MapIndex(theirs), b.MapIndex(ours), large, path+"{}")
	}
}
