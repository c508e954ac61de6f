package canon

import (
	"context"
	"fmt"

	"github.com/hako-run/hako/host/wasm/component"
)

// ResourceType is a resource type of a running component. Two are the same if their addresses are.
type ResourceType struct {
	// Name is for errors.
	Name string
	// Handles is the table of the component instance that defines the resource; nil for a resource of the host.
	Handles *Handles
	// Destructor is called with the representation of a resource when its owner drops it. Nil means none. The host's
	// resources have the method Drop instead (component.Dropper).
	Destructor func(ctx context.Context, rep uint32) error
}

// Resource is a resource that a guest defines.
type Resource struct {
	Type *ResourceType
	// Rep represents the resource to the component instance that defines it.
	Rep uint32
}

// Handles is the handle table of a component instance. It must not be used by two goroutines at once.
type Handles struct {
	resourceType func(*component.Resource) *ResourceType
	entries      []handle // the first is never used
	free         []uint32 // indexes of unused entries; the last is used next
	added        uint64
	total        *int // entries of the tables that are bounded together
}

// maxHandles bounds the handles that the instances of a component and of those nested in it hold at once.
const maxHandles = 1 << 16

type handle struct {
	typ *ResourceType // nil: unused
	// value is a *Resource, or any value of the host.
	value any
	own   bool
	// frame is the call for which the handle was borrowed.
	frame *Frame
	// lends counts the calls that have borrowed the handle.
	lends int
	// serial distinguishes the handle from others at its index.
	serial uint64
}

// NewHandles returns an empty table. resourceType returns the type that a resource of the component's types stands for.
// total, which starts at 0, counts the entries of all tables that are bounded together.
func NewHandles(resourceType func(*component.Resource) *ResourceType, total *int) *Handles {
	return &Handles{resourceType: resourceType, entries: make([]handle, 1), total: total}
}

// New adds a resource of the guest, as the built-in resource.new does, and returns its handle.
func (h *Handles) New(t *ResourceType, rep uint32) (uint32, error) {
	return h.add(handle{typ: t, value: &Resource{t, rep}, own: true})
}

// Rep returns the representation of a resource, as the built-in resource.rep does.
func (h *Handles) Rep(t *ResourceType, index uint32) (uint32, error) {
	entry, err := h.get(t, index)
	if err != nil {
		return 0, err
	}
	resource, ok := entry.value.(*Resource)
	if !ok {
		return 0, fmt.Errorf("handle %d is of resource %s, which the guest does not define", index, t.Name)
	}
	return resource.Rep, nil
}

// Drop drops a handle, as the built-in resource.drop does. If it owned the resource, the resource is destroyed.
func (h *Handles) Drop(ctx context.Context, t *ResourceType, index uint32) error {
	entry, err := h.remove(t, index)
	if err != nil {
		return err
	}
	if !entry.own {
		entry.frame.borrowed--
		return nil
	}
	if resource, ok := entry.value.(*Resource); ok {
		if t.Destructor == nil {
			return nil
		}
		return t.Destructor(ctx, resource.Rep)
	}
	dropValue(entry.value)
	return nil
}

func dropValue(value any) {
	if dropper, ok := value.(component.Dropper); ok {
		dropper.Drop()
	}
}

// Snapshot is the content of a table between two calls.
type Snapshot struct {
	entries []handle
	free    []uint32
}

// Snapshot returns the content of the table.
func (h *Handles) Snapshot() Snapshot {
	return Snapshot{append([]handle(nil), h.entries...), append([]uint32(nil), h.free...)}
}

// Restore replaces the content of the table with that of a snapshot, of this table or of the same one in another
// instance of the component. translate returns the resource type for one of the snapshot's; nil changes none. Resources
// of the host that the snapshot does not have are dropped.
func (h *Handles) Restore(s Snapshot, translate func(*ResourceType) *ResourceType) {
	old := h.entries
	*h.total += len(s.entries) - len(old)
	h.entries, h.free = append([]handle(nil), s.entries...), append(h.free[:0], s.free...)
	for i := range h.entries {
		if entry := &h.entries[i]; translate != nil && entry.typ != nil {
			entry.typ = translate(entry.typ)
			if resource, ok := entry.value.(*Resource); ok {
				entry.value = &Resource{entry.typ, resource.Rep}
			}
		}
	}
	for i := range old {
		kept := i < len(s.entries) && s.entries[i].serial == old[i].serial
		if _, guest := old[i].value.(*Resource); old[i].own && !guest && !kept {
			dropValue(old[i].value)
		}
	}
}

// Close drops all resources of the host.
func (h *Handles) Close() { h.Restore(Snapshot{entries: make([]handle, 1)}, nil) }

// CallScoped returns the name of the type of a resource of the host that the table holds and that belongs to one call
// (it is not component.Lasting), or "". An instance with such a resource cannot be copied.
func (h *Handles) CallScoped() string {
	for i := range h.entries {
		entry := &h.entries[i]
		if entry.typ == nil {
			continue
		}
		_, guest := entry.value.(*Resource)
		if _, lasting := entry.value.(component.Lasting); !guest && !lasting {
			return entry.typ.Name
		}
	}
	return ""
}

// DropCallScoped drops the resources that CallScoped finds.
func (h *Handles) DropCallScoped() {
	for i := range h.entries {
		entry := h.entries[i]
		_, guest := entry.value.(*Resource)
		if _, lasting := entry.value.(component.Lasting); entry.typ == nil || guest || lasting {
			continue
		}
		h.entries[i] = handle{}
		h.free = append(h.free, uint32(i))
		if entry.own {
			dropValue(entry.value)
		}
	}
}

func (h *Handles) add(entry handle) (uint32, error) {
	h.added++
	entry.serial = h.added
	if n := len(h.free); n > 0 {
		index := h.free[n-1]
		h.free = h.free[:n-1]
		h.entries[index] = entry
		return index, nil
	}
	if *h.total == maxHandles {
		return 0, fmt.Errorf("more than %d handles at once: drop those that are no longer used", maxHandles)
	}
	*h.total++
	h.entries = append(h.entries, entry)
	return uint32(len(h.entries) - 1), nil
}

// get returns the entry of a handle of type t.
func (h *Handles) get(t *ResourceType, index uint32) (*handle, error) {
	if uint64(index) >= uint64(len(h.entries)) || h.entries[index].typ == nil {
		return nil, fmt.Errorf("handle %d is unknown: it was dropped or passed on, or never existed", index)
	}
	entry := &h.entries[index]
	if entry.typ != t {
		return nil, fmt.Errorf("handle %d is of resource %s, not %s", index, entry.typ.Name, t.Name)
	}
	return entry, nil
}

// remove removes a handle of type t.
func (h *Handles) remove(t *ResourceType, index uint32) (handle, error) {
	entry, err := h.get(t, index)
	if err != nil {
		return handle{}, err
	}
	if entry.lends > 0 {
		return handle{}, fmt.Errorf("handle %d is lent to a call that has not ended", index)
	}
	removed := *entry
	*entry = handle{}
	h.free = append(h.free, index)
	return removed, nil
}

// resourceType returns the type of a handle at run time.
func (f *Frame) resourceType(t *component.Type) (*ResourceType, error) {
	if f.Handles == nil || f.Handles.resourceType == nil {
		return nil, fmt.Errorf("a handle of %s, of an instance without handle table", resourceName(t))
	}
	if typ := f.Handles.resourceType(t.Resource); typ != nil {
		return typ, nil
	}
	return nil, fmt.Errorf("a handle of %s, which the instance does not have", resourceName(t))
}

func resourceName(t *component.Type) string {
	if t.Resource == nil {
		return "a resource"
	}
	return "resource " + t.Resource.Name
}

// liftHandle returns the resource of a handle that the guest passes. An owning handle moves to the host, a borrowed one
// is lent until EndCall.
func (f *Frame) liftHandle(t *component.Type, index uint32) (any, error) {
	typ, err := f.resourceType(t)
	if err != nil {
		return nil, err
	}
	if t.Kind == component.KindBorrow {
		entry, err := f.Handles.get(typ, index)
		if err != nil {
			return nil, err
		}
		entry.lends++
		f.lent = append(f.lent, index)
		return entry.value, nil
	}
	if entry, err := f.Handles.get(typ, index); err == nil && !entry.own {
		return nil, fmt.Errorf("handle %d is borrowed: only its owner can pass it on", index)
	}
	entry, err := f.Handles.remove(typ, index)
	return entry.value, err
}

// lowerHandle returns a handle for the guest to a resource. The instance that defines the resource gets its
// representation for a borrowed one.
func (f *Frame) lowerHandle(t *component.Type, value any) (uint64, error) {
	typ, err := f.resourceType(t)
	if err != nil {
		return 0, err
	}
	resource, guest := value.(*Resource)
	switch {
	case value == nil || guest != (typ.Handles != nil):
		return 0, fmt.Errorf("a %T is not a resource of type %s", value, typ.Name)
	case guest && resource.Type != typ:
		return 0, fmt.Errorf("a resource of type %s is passed as one of type %s", resource.Type.Name, typ.Name)
	}
	entry := handle{typ: typ, value: value, own: t.Kind == component.KindOwn}
	if !entry.own {
		if typ.Handles == f.Handles {
			return uint64(resource.Rep), nil
		}
		entry.frame = f
	}
	index, err := f.Handles.add(entry)
	if err == nil && !entry.own {
		f.borrowed++
	}
	return uint64(index), err
}
