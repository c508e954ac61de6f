// Package component reads WebAssembly components: the binary format of the Component Model, with the types of WIT.
// Decode validates a component and returns its definitions in order. Nothing runs here: package canon below it converts
// values between guests and the host, and package link links their core modules and calls them.
//
// Source: https://github.com/WebAssembly/component-model, design/mvp/Binary.md and Explainer.md.
package component

import "errors"

// ErrAsync is the error for a component, function or type of WASI 0.3.
var ErrAsync = errors.New("it needs WASI 0.3 (asynchronous functions, streams, futures, error contexts), " +
	"and WASI 0.2 is supported: build the component for WASI 0.2 (componentize-qjs: with --sync)")

// Component is a decoded component. It is immutable, and its core modules and Docs alias the bytes that it was decoded
// from.
type Component struct {
	// Imports and Exports are in the order of the binary, each name once.
	Imports, Exports []Extern
	// Definitions are the steps of instantiation, in order. Each adds one item to an index space of the component.
	// Types have no index space at run time: Decode has resolved them, and lists none of their definitions and aliases
	// but those that matter to resources.
	Definitions []Definition
	// Docs is the custom section package-docs, with the comments of the WIT. It is nil if there is none. Decode does
	// not look into it.
	Docs []byte
}

// Sort is an index space of a component.
type Sort byte

// Sorts, in the numbers of the binary format.
const (
	SortCore Sort = iota // see CoreSort
	SortFunc
	SortValue
	SortType
	SortComponent
	SortInstance
)

// CoreSort is an index space of core items.
type CoreSort byte

// Core sorts, in the numbers of the binary format.
const (
	CoreFunc     CoreSort = 0x00
	CoreTable    CoreSort = 0x01
	CoreMemory   CoreSort = 0x02
	CoreGlobal   CoreSort = 0x03
	CoreTag      CoreSort = 0x04
	CoreType     CoreSort = 0x10
	CoreModule   CoreSort = 0x11
	CoreInstance CoreSort = 0x12
)

func (s Sort) String() string {
	return [...]string{"core item", "function", "value", "type", "component", "instance"}[s]
}

func (s CoreSort) String() string {
	switch s {
	case CoreType:
		return "core type"
	case CoreModule:
		return "core module"
	case CoreInstance:
		return "core instance"
	}
	return [...]string{"core function", "core table", "core memory", "core global", "core tag"}[s]
}

// Extern is an import or export with its type. The field of its sort is set; none for a core module. For SortType, it
// is one of Type, Resource, Func, Instance and Component: what it is a type of.
type Extern struct {
	Name string
	// Implements is the interface that an instance with a plain name implements. It may be empty.
	Implements string
	Sort       Sort
	Func       *Func
	Type       *Type     // a type that is not a resource
	Resource   *Resource // a resource type
	Instance   *InstanceType
	Component  *ComponentType

	module *moduleType
}

// InstanceType is the type of an instance.
type InstanceType struct {
	Exports []Extern

	measure
	scope int            // its own resources have this scope: each instance has others
	index map[string]int // of Exports by name
}

// ComponentType is the type of a component.
type ComponentType struct {
	Imports, Exports []Extern

	measure
	scope    int         // its own resources have this scope: each instance has others
	imported []*Resource // those of its own resources that come from the arguments
}

// Ref names an item of an index space.
type Ref struct {
	Name  string // of the argument or export that the item becomes
	Sort  Sort
	Core  CoreSort // if Sort is SortCore
	Index uint32
	// Resource is set if Sort is SortType and it is a resource type. Other types need nothing at run time.
	Resource *Resource
}

// Definition is one of the types below.
type Definition interface{ definition() }

type (
	// Module defines a core module.
	Module struct {
		Code []byte
		// ID numbers the modules of a component and of those nested in it, in the order of the binary.
		ID int
	}
	// Instantiate defines a core instance of a core module. Args are core instances, by the name that the module
	// imports.
	Instantiate struct {
		Module uint32
		Args   []Ref
	}
	// CoreExports defines a core instance of items that exist.
	CoreExports struct{ Exports []Ref }
	// CoreAlias defines a core item as the export of a core instance.
	CoreAlias struct {
		Sort     CoreSort
		Instance uint32
		Name     string
	}
	// Nested defines a component.
	Nested struct{ Component *Component }
	// InstantiateNested defines an instance of a component. Type is its type as the enclosing component sees it (see
	// Resource).
	InstantiateNested struct {
		Component uint32
		Args      []Ref
		Type      *InstanceType
	}
	// Exports defines an instance of items that exist.
	Exports struct{ Exports []Ref }
	// Alias defines an item as the export of an instance. It is never a type.
	Alias struct {
		Sort     Sort
		Core     CoreSort
		Instance uint32
		Name     string
	}
	// OuterAlias defines an item as one of an enclosing component: Count components further out. It is a core module or
	// a component.
	OuterAlias struct {
		Sort         Sort
		Core         CoreSort
		Count, Index uint32
	}
	// Lift defines a function as a core function.
	Lift struct {
		Func    uint32
		Options Options
		Type    *Func
	}
	// Lower defines a core function as a function.
	Lower struct {
		Func    uint32
		Options Options
		Type    *Func
	}
	// Builtin defines a core function that the host implements.
	Builtin struct {
		Op       Op
		Resource *Resource // of OpResourceNew, OpResourceDrop and OpResourceRep
		// Name is the built-in's name in the specification. Those other than the resource built-ins are decoded, and
		// refused when they are called.
		Name string
		// Params and Results are its core signature, as core value types.
		Params, Results []byte
	}
	// DefineResource defines a resource type of the component itself. Destructor is a core function, -1 for none.
	DefineResource struct {
		Resource   *Resource
		Destructor int
	}
	// Import defines an item as the argument of that name.
	Import struct{ Extern Extern }
	// Export exports an item, and defines it again under its new name.
	Export struct {
		Ref    Ref
		Extern Extern
	}
)

func (*Module) definition()            {}
func (*Instantiate) definition()       {}
func (*CoreExports) definition()       {}
func (*CoreAlias) definition()         {}
func (*Nested) definition()            {}
func (*InstantiateNested) definition() {}
func (*Exports) definition()           {}
func (*Alias) definition()             {}
func (*OuterAlias) definition()        {}
func (*Lift) definition()              {}
func (*Lower) definition()             {}
func (*Builtin) definition()           {}
func (*DefineResource) definition()    {}
func (*Import) definition()            {}
func (*Export) definition()            {}

// Op is a built-in of the canonical ABI.
type Op byte

// Built-ins that are implemented, in the numbers of the binary format.
const (
	OpResourceNew  Op = 0x02
	OpResourceDrop Op = 0x03
	OpResourceRep  Op = 0x04
)

// Encoding is the encoding of strings in a guest's memory.
type Encoding byte

// Encodings, in the numbers of the binary format.
const (
	UTF8 Encoding = iota
	UTF16
	Latin1OrUTF16
)

// Options are the options of a lifted or lowered function. Indexes are of core items; -1 means none.
type Options struct {
	Encoding   Encoding
	Memory     int
	Realloc    int
	PostReturn int
	Callback   int
	Async      bool
}

// CoreModules returns the core modules of the component and of those nested in it, in the order of their IDs.
func (c *Component) CoreModules() (modules []*Module) {
	for _, definition := range c.Definitions {
		switch d := definition.(type) {
		case *Module:
			modules = append(modules, d)
		case *Nested:
			modules = append(modules, d.Component.CoreModules()...)
		}
	}
	return modules
}
