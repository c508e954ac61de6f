package canon

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/wasm/component"
)

// file is a resource of the host.
type file struct{ dropped int }

func (f *file) Drop() { f.dropped++ }

// console is a resource of the host without state of a call.
type console struct{}

func (console) Lasting() {}

// world has two component instances with a resource of the host and one of the second instance.
type world struct {
	fileName, pairName component.Resource
	file, pair         *ResourceType
	destroyed          []uint32
	user, definer      *Handles
}

func newWorld() *world {
	w := &world{fileName: component.Resource{Name: "file"}, pairName: component.Resource{Name: "pair"}}
	types := func(r *component.Resource) *ResourceType {
		return map[*component.Resource]*ResourceType{&w.fileName: w.file, &w.pairName: w.pair}[r]
	}
	total := new(int)
	w.user, w.definer = NewHandles(types, total), NewHandles(types, total)
	w.file = &ResourceType{Name: "file"}
	w.pair = &ResourceType{Name: "pair", Handles: w.definer, Destructor: func(_ context.Context, rep uint32) error {
		w.destroyed = append(w.destroyed, rep)
		return nil
	}}
	return w
}

func handleType(kind component.Kind, r *component.Resource) *component.Type {
	return &component.Type{Kind: kind, Resource: r}
}

func own(r *component.Resource) *component.Func {
	return function(nil, handleType(component.KindOwn, r))
}

func borrow(r *component.Resource) *component.Func {
	return function(nil, handleType(component.KindBorrow, r))
}

// mustLower passes a resource to an instance and returns the handle.
func mustLower(t *testing.T, frame *Frame, f *component.Func, value any) uint32 {
	t.Helper()
	flat, err := frame.LowerParams(f, []any{value})
	if err != nil {
		t.Fatal(err)
	}
	return uint32(flat[0])
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want %q", err, want)
	}
}

func TestOwnedHandles(t *testing.T) {
	w := newWorld()
	frame := &Frame{Handles: w.user}
	value := &file{}
	index := mustLower(t, frame, own(&w.fileName), value)
	if index != 1 {
		t.Errorf("the first handle is %d", index)
	}
	_, err := w.user.Rep(w.file, index)
	wantError(t, err, "does not define")
	_, err = frame.LiftParams(own(&w.pairName), []uint64{1})
	wantError(t, err, "handle 1 is of resource file, not pair")
	args, err := frame.LiftParams(own(&w.fileName), []uint64{1})
	if err != nil || args[0] != value {
		t.Fatalf("%v, %v", args, err)
	}
	_, err = frame.LiftParams(own(&w.fileName), []uint64{1})
	wantError(t, err, "handle 1 is unknown")
	for _, forged := range []uint64{0, 2, 0xffffffff} {
		_, err = frame.LiftParams(borrow(&w.fileName), []uint64{forged})
		wantError(t, err, "is unknown")
	}
	if index = mustLower(t, frame, own(&w.fileName), value); index != 1 {
		t.Errorf("the free index is not used again: %d", index)
	}
	if err := w.user.Drop(t.Context(), w.file, index); err != nil || value.dropped != 1 {
		t.Errorf("%v, dropped %d times", err, value.dropped)
	}
	wantError(t, w.user.Drop(t.Context(), w.file, index), "handle 1 is unknown")
}

func TestResourcesOfAGuest(t *testing.T) {
	w := newWorld()
	index, err := w.definer.New(w.pair, 77)
	if err != nil {
		t.Fatal(err)
	}
	definer, user := &Frame{Handles: w.definer}, &Frame{Handles: w.user}
	args, err := definer.LiftParams(own(&w.pairName), []uint64{uint64(index)})
	if err != nil {
		t.Fatal(err)
	}
	index = mustLower(t, user, own(&w.pairName), args[0])
	// The instance that defines the resource gets its representation for a borrowed handle.
	lent, err := user.LiftParams(borrow(&w.pairName), []uint64{uint64(index)})
	if err != nil {
		t.Fatal(err)
	}
	if rep := mustLower(t, definer, borrow(&w.pairName), lent[0]); rep != 77 {
		t.Errorf("rep %d", rep)
	}
	wantError(t, w.user.Drop(t.Context(), w.pair, index), "is lent to a call that has not ended")
	_, err = user.LiftParams(own(&w.pairName), []uint64{uint64(index)})
	wantError(t, err, "is lent to a call that has not ended")
	if err := user.EndCall(); err != nil {
		t.Fatal(err)
	}
	if rep, err := w.user.Rep(w.pair, index); err != nil || rep != 77 {
		t.Errorf("rep %d, %v", rep, err)
	}
	if err := w.user.Drop(t.Context(), w.pair, index); err != nil || !reflect.DeepEqual(w.destroyed, []uint32{77}) {
		t.Errorf("%v, destroyed %v", err, w.destroyed)
	}
}

func TestBorrowedHandles(t *testing.T) {
	w := newWorld()
	frame, value := &Frame{Handles: w.user}, &file{}
	index := mustLower(t, frame, borrow(&w.fileName), value)
	wantError(t, frame.EndCall(), "1 borrowed handles were not dropped")
	_, err := frame.LiftParams(own(&w.fileName), []uint64{uint64(index)})
	wantError(t, err, "only its owner")
	if err := w.user.Drop(t.Context(), w.file, index); err != nil || value.dropped != 0 {
		t.Errorf("%v, dropped %d times", err, value.dropped)
	}
	if err := frame.EndCall(); err != nil {
		t.Error(err)
	}
}

func TestResourcesOfTheWrongType(t *testing.T) {
	w := newWorld()
	frame := &Frame{Handles: w.user}
	other := &Resource{Type: &ResourceType{Name: "other", Handles: w.definer}}
	for _, test := range []struct {
		f     *component.Func
		value any
		want  string
	}{
		{own(&w.fileName), nil, "is not a resource of type file"},
		{own(&w.fileName), other, "is not a resource of type file"},
		{own(&w.pairName), &file{}, "is not a resource of type pair"},
		{own(&w.pairName), other, "of type other is passed as one of type pair"},
		{own(&component.Resource{Name: "unheard-of"}), &file{}, "resource unheard-of, which the instance does not have"},
	} {
		_, err := frame.LowerParams(test.f, []any{test.value})
		wantError(t, err, test.want)
	}
}

func TestHandlesAreBounded(t *testing.T) {
	w := newWorld()
	for range maxHandles {
		if _, err := w.definer.New(w.pair, 1); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.definer.New(w.pair, 1)
	wantError(t, err, "more than 65536 handles at once")
	_, err = (&Frame{Handles: w.user}).LowerParams(own(&w.fileName), []any{&file{}})
	wantError(t, err, "more than 65536 handles at once")
	if err := w.definer.Drop(t.Context(), w.pair, 5); err != nil {
		t.Fatal(err)
	}
	if index, err := w.definer.New(w.pair, 1); err != nil || index != 5 {
		t.Errorf("%d, %v", index, err)
	}
}

// A restored table is as it was, and what came after the snapshot is dropped, once.
func TestRestore(t *testing.T) {
	w := newWorld()
	frame := &Frame{Handles: w.user}
	kept := &file{}
	first, second := mustLower(t, frame, own(&w.fileName), kept), mustLower(t, frame, own(&w.fileName), &file{})
	if err := w.user.Drop(t.Context(), w.file, second); err != nil {
		t.Fatal(err)
	}
	snapshot := w.user.Snapshot()
	for range 2 {
		later := []*file{{}, {}, {}}
		for _, value := range later {
			mustLower(t, frame, own(&w.fileName), value)
		}
		if err := w.user.Drop(t.Context(), w.file, 3); err != nil {
			t.Fatal(err)
		}
		w.user.Restore(snapshot, nil)
		if fmt.Sprint(*later[0], *later[1], *later[2], *kept) != "{1} {1} {1} {0}" {
			t.Errorf("dropped: %v %v %v %v", *later[0], *later[1], *later[2], *kept)
		}
		if args, err := (&Frame{Handles: w.user}).LiftParams(borrow(&w.fileName), []uint64{uint64(first)}); err != nil ||
			args[0] != kept {
			t.Errorf("%v, %v", args, err)
		}
		_, err := frame.LiftParams(borrow(&w.fileName), []uint64{uint64(second)})
		wantError(t, err, "is unknown")
	}
	w.user.Close()
	w.user.Close()
	if kept.dropped != 1 {
		t.Errorf("dropped %d times", kept.dropped)
	}
}

func TestRestoreInAnotherInstance(t *testing.T) {
	w, other := newWorld(), newWorld()
	if _, err := w.definer.New(w.pair, 7); err != nil {
		t.Fatal(err)
	}
	other.definer.Restore(w.definer.Snapshot(), func(typ *ResourceType) *ResourceType {
		if typ != w.pair {
			t.Errorf("type %v", typ)
		}
		return other.pair
	})
	args, err := (&Frame{Handles: other.definer}).LiftParams(own(&other.pairName), []uint64{1})
	if err != nil || *args[0].(*Resource) != (Resource{other.pair, 7}) {
		t.Errorf("%v, %v", args, err)
	}
	if rep, err := w.definer.Rep(w.pair, 1); err != nil || rep != 7 {
		t.Errorf("the original: %d, %v", rep, err)
	}
}

func TestPassing(t *testing.T) {
	w := newWorld()
	frame := &Frame{Handles: w.user}
	mustLower(t, frame, own(&w.fileName), console{})
	if _, err := w.definer.New(w.pair, 7); err != nil {
		t.Fatal(err)
	}
	if name := w.user.CallScoped() + w.definer.CallScoped(); name != "" {
		t.Errorf("passing %q", name)
	}
	mustLower(t, frame, own(&w.fileName), &file{})
	if name := w.user.CallScoped(); name != "file" {
		t.Errorf("passing %q", name)
	}
}
