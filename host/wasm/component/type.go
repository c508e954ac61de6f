package component

// Kind is the kind of a value type.
type Kind uint8

// Kinds.
const (
	KindBool Kind = iota
	KindS8
	KindU8
	KindS16
	KindU16
	KindS32
	KindU32
	KindS64
	KindU64
	KindF32
	KindF64
	KindChar
	KindString
	KindErrorContext
	KindRecord
	KindVariant
	KindList
	KindTuple
	KindFlags
	KindEnum
	KindOption
	KindResult
	KindOwn
	KindBorrow
	KindStream
	KindFuture
	KindMap
)

// Type is a value type. The values of a type are, in Go:
//
//	bool                          bool
//	u8, u16, u32, u64             uint64
//	s8, s16, s32, s64             int64
//	f32, f64                      float32, float64
//	char                          rune
//	string                        string, valid UTF-8
//	list<u8>                      []byte
//	list, tuple, record           []any
//	map                           []any of a key and a value as []any each
//	variant, enum, option, result Case
//	flags                         uint32, the first label in the lowest bit
//	own, borrow                   any: what the host made the resource of, or a *canon.Resource of a guest
type Type struct {
	Kind Kind
	// Name is the name under which the type was imported or exported; empty for a type without one.
	Name string
	// Fields are the fields of a record, the cases of a variant, the elements of a tuple (without names), or the labels
	// of flags and enums (without types).
	Fields []Field
	// Elem is the element of a list, option, stream or future, the success of a result, or the key of a map. It is nil
	// for a result, stream or future without one.
	Elem *Type
	// Err is the error of a result, or the value of a map.
	Err *Type
	// Length is the length of a list with a fixed length. Zero means any.
	Length uint32
	// Resource is the resource of own and borrow.
	Resource *Resource

	measure
	unnamed      bool   // own and borrow: of a resource by its definition, which is no import or export
	alias        *Type  // the type with a name that this one is another name of, if there is one
	bytes, align int64  // of a value in memory with pointers of 64 bits
	flat         string // its core types, or the first ones of more than MaxFlatParams
}

// Field is a field, case, element, label or parameter. Type is nil for a case without payload, and for a label.
type Field struct {
	Name string
	Type *Type
}

// Func is the type of a function. Result is nil if there is none.
type Func struct {
	Params []Field
	Result *Type
	Async  bool

	measure
}

// Resource is a resource type as one component sees it; equal pointers mean equal types. At run time each instance maps
// it to a host type: DefineResource creates one; an imported one is taken from the first item that carries it (argument
// of an Import, instance of an InstantiateNested, original of an Export). Later mentions do not change the mapping.
type Resource struct {
	// Name is the name under which it was imported or exported.
	Name string
	// Imported reports whether the resource is not defined by the component itself.
	Imported bool

	scope int // in which it came into being
}

// Case is a value of a variant, enum, option or result: the number of its case, and the payload. Value is nil for a
// case without payload.
type Case struct {
	Number uint32
	Value  any
}

// None is the option without a value. OK and Failed make results, Some makes options.
var None = Case{}

// Some returns the option with a value.
func Some(value any) Case { return Case{1, value} }

// OK returns the successful result; value is nil if it has none.
func OK(value any) Case { return Case{0, value} }

// Failed returns the failed result; value is nil if it has none.
func Failed(value any) Case { return Case{1, value} }
