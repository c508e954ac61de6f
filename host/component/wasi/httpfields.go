package wasi

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/fuel"
)

// maxFields bounds the headers that a call holds at once, with the texts of its requests, in bytes.
const maxFields = 1 << 20

// fieldBytes is the approximate memory of a field besides its name and value.
const fieldBytes = 64

// fields is wasi:http/types.fields.
type fields struct {
	web       *web
	list      []field
	immutable bool
	size      int64
}

type field struct {
	name  string
	value []byte
}

// Drop implements component.Dropper. A component that imports functions with other types than WASI's may still hold f.
func (f *fields) Drop() {
	f.web.fields -= f.size
	f.size, f.list, f.immutable = 0, nil, true
}

// Cases of header-error.
var (
	errSyntax    = component.Failed(component.Case{Number: 0})
	errForbidden = component.Failed(component.Case{Number: 1})
	errImmutable = component.Failed(component.Case{Number: 2})
)

// forbiddenFields are the fields that a component cannot set, because they belong to a connection. The http broker
// drops further fields that the host sets, or that servers trust.
var forbiddenFields = []string{"connection", "host", "http2-settings", "keep-alive", "proxy-authenticate",
	"proxy-authorization", "proxy-connection", "transfer-encoding", "upgrade"}

// add adds a field and counts its size. The name is not copied.
func (f *fields) add(c caller, name string, value []byte) {
	size := int64(len(name)+len(value)) + fieldBytes
	c.Charge(broker.EntrySteps + size*fuel.TextSteps)
	f.count(size)
	f.list = append(f.list, field{name, value})
}

// count counts bytes that f holds.
func (f *fields) count(size int64) {
	f.web.hold(size)
	f.size += size
}

// hold counts bytes of headers.
func (w *web) hold(size int64) {
	if w.fields+size > maxFields {
		panic(fmt.Errorf("it holds headers of more than %d bytes at once", maxFields))
	}
	w.fields += size
}

// search charges for a search for a name.
func (f *fields) search(c caller) {
	c.Charge(int64(len(f.list))*broker.EntrySteps + f.size*fuel.TextSteps)
}

// checkField returns why a field cannot be set, or a success.
func checkField(name string, values ...[]byte) component.Case {
	if !httpguts.ValidHeaderFieldName(name) {
		return errSyntax
	}
	for _, value := range values {
		if !httpguts.ValidHeaderFieldValue(string(value)) {
			return errSyntax
		}
	}
	if slices.Contains(forbiddenFields, strings.ToLower(name)) {
		return errForbidden
	}
	return component.OK(nil)
}

func (h *host) fieldFunctions() functions {
	return functions{
		"[constructor]fields":      func0(func(c caller) any { return &fields{web: h.web(c)} }),
		"[static]fields.from-list": func1(h.fieldsFromList),
		"[method]fields.get":       func2(getField),
		"[method]fields.has": func2(func(c caller, f *fields, name string) any {
			f.search(c)
			return slices.ContainsFunc(f.list, func(own field) bool { return strings.EqualFold(own.name, name) })
		}),
		"[method]fields.set":     func3(setField),
		"[method]fields.delete":  func2(deleteField),
		"[method]fields.append":  func3(appendField),
		"[method]fields.entries": func1(entries),
		"[method]fields.clone":   func1(cloneFields),
	}
}

func (h *host) fieldsFromList(c caller, list []any) any {
	f := &fields{web: h.web(c)}
	for i := range list {
		entry := arg[[]any](list, i)
		name, value := arg[string](entry, 0), arg[[]byte](entry, 1)
		if failure := checkField(name, value); failure.Number != 0 {
			f.Drop()
			return failure
		}
		f.add(c, name, value)
	}
	return component.OK(f)
}

func getField(c caller, f *fields, name string) any {
	f.search(c)
	values := []any{}
	for _, own := range f.list {
		if strings.EqualFold(own.name, name) {
			values = append(values, own.value)
		}
	}
	return values
}

func setField(c caller, f *fields, name string, values []any) any {
	texts := make([][]byte, len(values))
	for i := range values {
		texts[i] = arg[[]byte](values, i)
	}
	failure := checkField(name, texts...)
	switch {
	case f.immutable:
		return errImmutable
	case failure.Number != 0:
		return failure
	}
	f.search(c)
	f.remove(name)
	for _, text := range texts {
		f.add(c, name, text)
	}
	return component.OK(nil)
}

func deleteField(c caller, f *fields, name string) any { return setField(c, f, name, nil) }

func (f *fields) remove(name string) {
	f.list = slices.DeleteFunc(f.list, func(own field) bool {
		equal := strings.EqualFold(own.name, name)
		if equal {
			size := int64(len(own.name)+len(own.value)) + fieldBytes
			f.size, f.web.fields = f.size-size, f.web.fields-size
		}
		return equal
	})
}

func appendField(c caller, f *fields, name string, value []byte) any {
	failure := checkField(name, value)
	switch {
	case f.immutable:
		return errImmutable
	case failure.Number != 0:
		return failure
	}
	f.add(c, name, value)
	return component.OK(nil)
}

func entries(c caller, f *fields) any {
	c.Charge(int64(len(f.list))*broker.EntrySteps + fuel.CopySteps(uint64(f.size)))
	list := make([]any, len(f.list))
	for i, own := range f.list {
		list[i] = []any{own.name, own.value}
	}
	return list
}

func cloneFields(c caller, f *fields) any {
	clone := &fields{web: f.web}
	for _, own := range f.list {
		clone.add(c, own.name, bytes.Clone(own.value))
	}
	return clone
}

// frozen returns an immutable view of f for a guest. It counts the bytes too, because f may be dropped first.
func (f *fields) frozen() *fields {
	view := &fields{web: f.web, list: f.list, immutable: true}
	view.count(f.size)
	return view
}

// responseFields returns the header of a response.
func responseFields(c caller, w *web, header http.Header) *fields {
	f := &fields{web: w, immutable: true}
	names := make([]string, 0, len(header))
	for name := range header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range header[name] {
			f.add(c, strings.ToLower(name), []byte(value))
		}
	}
	return f
}

// header returns the fields as package httpbroker takes them.
func (f *fields) header() map[string][]string {
	header := map[string][]string{}
	for _, own := range f.list {
		header[own.name] = append(header[own.name], string(own.value))
	}
	return header
}
